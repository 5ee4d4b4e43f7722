"""Probes of lab 2, where the memory goes: each calls one function on many inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

from peakmem.probes import Calls, Namespace, Outcomes, call_each, calling
from peakmem.probes.leak import leaking

__all__ = [
    "LEAK_LAYERS",
    "activation_elements",
    "boundary_bytes",
    "evaluate_batches",
    "find_the_leak",
    "gpt_parameters",
    "inconsistent_rows",
    "largest_batch",
    "layer_activation_bytes",
    "lifetimes",
    "live_bytes",
    "losses_bound",
    "no_model_runs",
    "predict_training",
    "scatter_offset",
    "weight_bytes",
]

LEAK_LAYERS = 4  # linear layers of find_the_leak's model


weight_bytes = calling("weight_bytes")  # (n_params, dtype)
gpt_parameters = calling("gpt_parameters")  # (n_layers, d_model[, vocab, context, tied])


def inconsistent_rows(student: Namespace, calls: Calls) -> Outcomes:
    """Call `inconsistent_rows(table)` for each of `calls`.

    Whatever collection the student returns becomes a list of names. A string is returned unchanged,
    because it is a single name.
    """
    function = student.inconsistent_rows

    def names(table: Sequence[Mapping[str, Any]]) -> Any:
        found = function(table)
        return found if isinstance(found, str) else list(found)

    return call_each(names, calls)


def activation_elements(student: Namespace, calls: Calls) -> Outcomes:
    """Call `activation_elements(op, **dims)` for each (op, dims) of `calls`."""
    function = student.activation_elements
    return call_each(lambda op, dims: function(op, **dims), calls)


boundary_bytes = calling("boundary_bytes")  # (n_layers, tokens, d_model, bytes_per_element)
# (seq, batch, d_model, n_heads[, attention])
layer_activation_bytes = calling("layer_activation_bytes")
lifetimes = calling("lifetimes")  # (graph, training)
live_bytes = calling("live_bytes")  # (tensors, n_steps)


def largest_batch(student: Namespace, calls: Calls) -> Outcomes:
    """Call `largest_batch(seq, shape, budget_bytes)` for each of `calls`.

    The shape arrives as a dict, and the student gets an object with its items as attributes.
    """
    given = [(seq, SimpleNamespace(**shape), budget_bytes) for seq, shape, budget_bytes in calls]
    return call_each(student.largest_batch, given)


def predict_training(student: Namespace, calls: Calls) -> Outcomes:
    """Call `predict_training(shape, batch, seq)` for each of `calls`.

    The shape arrives as a dict, and the student gets an object with its items as attributes.
    Running a model raises RuntimeError.
    """
    given = [(SimpleNamespace(**shape), batch, seq) for shape, batch, seq in calls]
    with no_model_runs():
        return call_each(student.predict_training, given)


def no_model_runs() -> AbstractContextManager[None]:
    """Return a context in which operators of a language model raise RuntimeError."""
    from peakmem.probes.own_work import refusing_operators  # loads torch, which judges don't need

    because = "is part of running a model: work the bytes out from its shape"
    return refusing_operators("mm", "embedding", "backward", because=because)


def evaluate_batches(
    function: Callable[..., Any], *, count: int, rows: int, width: int, seed: int
) -> dict[str, Any]:
    """Return a report on `function(model, batches)`, while its result is alive.

    The model is an MLP with four layers of `width`; `batches` generates `count` batches of at most
    $2^{16}$ inputs each. Parameters and inputs are scattered around 0. They are the same for the
    same seed, and exact in float32, so that a judge can compute them without torch.

    A second call gets the model in evaluation mode with its first weight frozen, and only the first
    batch: `again` is its loss, `evaluation` tells whether the mode is unchanged, and `frozen`
    whether only that weight is still frozen.
    """
    import torch  # late, so that this lab's other probes don't load torch
    from torch import nn

    def scattered(count: int, number: int) -> torch.Tensor:
        values = torch.arange(count, dtype=torch.float32)  # all in place: no temporary
        values.mul_(251).add_(scatter_offset(seed, number)).remainder_(4093)
        return values.mul_(2**-11).sub_(1)

    layers = [module for _ in range(LEAK_LAYERS) for module in (nn.Linear(width, width), nn.Tanh())]
    model = nn.Sequential(*layers)
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            values = scattered(parameter.numel(), -1 - number).mul_((3 / width) ** 0.5)
            parameter.copy_(values.view_as(parameter))

    def batches(count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for number in range(count):
            targets = torch.arange(rows).mul_(7).add_(seed + number).remainder_(width)
            yield scattered(rows * width, number).view(rows, width), targets

    before = [parameter.sum().item() for parameter in model.parameters()]
    result = function(model, batches(count))
    losses = [torch.as_tensor(loss).detach().item() for loss in result]
    records = torch.is_grad_enabled()
    torch.set_grad_enabled(True)  # in case the function switched it off
    report = {
        "losses": losses,
        "gradients": sum(parameter.grad is not None for parameter in model.parameters()),
        "trainable": all(parameter.requires_grad for parameter in model.parameters()),
        "training": all(module.training for module in model.modules()),
        "unchanged": before == [parameter.sum().item() for parameter in model.parameters()],
        "grad_enabled": records,
    }
    layers[0].weight.requires_grad_(False)
    once_more = function(model.eval(), batches(1))
    again = [torch.as_tensor(loss).detach().item() for loss in once_more]
    torch.set_grad_enabled(True)
    still = not any(module.training for module in model.modules())
    frozen = [not parameter.requires_grad for parameter in model.parameters()]
    only_first = frozen[0] and not any(frozen[1:])
    return {**report, "again": again, "evaluation": still, "frozen": only_first}


find_the_leak = leaking(evaluate_batches, "evaluate", count=2, rows=4, width=8)


def scatter_offset(seed: int, number: int) -> int:
    """Return a number that distinguishes batch `number` of this seed in `evaluate_batches`.

    Parameter i counts as batch -1 - i.
    """
    return (1613 * seed + 523 * number) % 4093


def losses_bound(sizes: Mapping[str, int]) -> int:
    """Return the bytes that `evaluate` may take: the model, and two batches' activations."""
    rows, width = sizes["rows"], sizes["width"]
    model = LEAK_LAYERS * (width * width + width)
    # Input, targets, a linear output and a tanh output per layer, and the loss's temporaries.
    batch = rows * width * (2 * LEAK_LAYERS + 4)
    return 4 * (model + 2 * batch)
