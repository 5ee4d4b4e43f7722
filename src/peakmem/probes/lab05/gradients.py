"""Probes of lab 5's accumulated gradients: a batch in micro-batches, and a mean over tokens."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.probes import Namespace
from peakmem.probes.arrays import gradient_arrays
from peakmem.probes.hooks import hooks_on
from peakmem.probes.lab05.forwards import note_forwards
from peakmem.probes.lab05.models import large_run, small_model, token_model
from peakmem.probes.metering import rise_of

__all__ = ["LOSSES", "accumulate_gradients", "accumulate_token_mean", "without_options"]

Array = np.ndarray[Any, np.dtype[Any]]
LossFunction = Callable[[Tensor, Tensor], Tensor]


def without_options(loss_fn: Callable[..., Tensor]) -> LossFunction:
    """Return the loss function with two arguments, as the exercise's text promises.

    torch's own loss functions have options, such as `reduction`, which answers could rely on.
    """
    return lambda outputs, targets: loss_fn(outputs, targets)


LOSSES: dict[str, LossFunction] = {
    "mse": without_options(F.mse_loss),
    "cross_entropy": without_options(F.cross_entropy),
}


def accumulate_gradients(
    student: Namespace,
    micro_batch: int,
    small: Mapping[str, Any] | None = None,
    large: Mapping[str, Any] | None = None,
    metered: bool = True,
) -> dict[str, Any]:
    """Call `accumulate_gradients` on a `small` model, or on a `large` one.

    `small` has the `weights` of a perceptron, their gradients `before` the call (each may be
    None), `inputs`, `targets`, the name of a `loss`, and whether the model is in `training`
    mode. Returns `value` (the result), `sizes` (of the model's batches), `waiting` (the number of
    graphs waiting for their backward when a forward began), `changed` (objects that changed but
    shouldn't have) and the `gradients`; for a `large` model, if `metered`, also `rise_bytes`, the
    rise of live bytes.
    """
    if large is not None:
        # A warm-up, because the matrix library allocates about 10 MiB of buffers at its first use.
        _large(student, micro_batch, {**large, "samples": micro_batch}, metered=False)
        gc.collect()
        return _large(student, micro_batch, large, metered=metered)
    if small is None:
        raise ValueError("expected a small or a large model")
    model = small_model(small["weights"]).train(small["training"])
    _set_gradients(model, small["before"])
    given = (torch.tensor(small["inputs"]), torch.tensor(small["targets"]))
    report = _watched(model, given)
    return report(student.accumulate_gradients(model, LOSSES[small["loss"]], *given, micro_batch))


def accumulate_token_mean(
    student: Namespace,
    embedding: Array,
    head: Array,
    before: Sequence[Array | None],
    tokens: Array,
    labels: Array,
    micro_batch: int,
    ignore_index: int | None,
    training: bool,
) -> dict[str, Any]:
    """Call `accumulate_token_mean`; return what `accumulate_gradients` returns.

    If `ignore_index` is None, the student's default applies.
    """
    model = token_model(embedding, head).train(training)
    _set_gradients(model, before)
    given = (torch.tensor(tokens), torch.tensor(labels))
    options = {} if ignore_index is None else {"ignore_index": ignore_index}
    report = _watched(model, given)
    return report(student.accumulate_token_mean(model, *given, micro_batch, **options))


def _set_gradients(model: nn.Module, before: Sequence[Array | None]) -> None:
    for parameter, gradient in zip(model.parameters(), before, strict=True):
        parameter.grad = None if gradient is None else torch.tensor(gradient)


def _watched(model: nn.Module, given: tuple[Tensor, ...]) -> Callable[[Any], dict[str, Any]]:
    """Watch a model and its training tensors; return a function that makes the report.

    Student code can't find the log as an attribute of the model.
    """
    before = _state(model, given)
    forwards = note_forwards(model)

    def report(value: Any) -> dict[str, Any]:
        after = _state(model, given)
        torch.set_grad_enabled(True)  # no later call suffers if the function switched it off
        sizes, waiting = forwards()
        return {
            "value": "a tensor" if isinstance(value, Tensor) else value,
            "sizes": sizes,
            "waiting": waiting,
            "changed": [name for name, old in before.items() if not _alike(old, after[name])],
            "gradients": gradient_arrays(model.parameters()),
        }

    return report


def _state(model: nn.Module, given: tuple[Tensor, ...]) -> dict[str, list[Any]]:
    return {
        "parameters": [p.detach().clone() for p in model.parameters()],
        "inputs or targets": [t.clone() for t in given],
        "mode": [module.training for module in model.modules()],
        "requires_grad": [t.requires_grad for t in (*model.parameters(), *given)],
        "recording of gradients": [torch.is_grad_enabled()],
        "hooks": [hooks_on(model)],
    }


def _alike(old: Sequence[Any], new: Sequence[Any]) -> bool:
    return all(
        bool((a == b).all()) if isinstance(a, Tensor) else a == b
        for a, b in zip(old, new, strict=True)
    )


def _large(
    student: Namespace, micro_batch: int, large: Mapping[str, Any], *, metered: bool
) -> dict[str, Any]:
    model, inputs, targets = large_run(**large)
    report = _watched(model, (inputs[:1], targets[:1]))
    given = (model, LOSSES["mse"], inputs, targets, micro_batch)
    values: list[Any] = []
    rise = rise_of(
        lambda: values.append(student.accumulate_gradients(*given)),
        *(model, inputs, targets),
        metered=metered,
    )
    return {**report(values[0]), **rise}
