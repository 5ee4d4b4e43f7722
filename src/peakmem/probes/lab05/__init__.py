"""Probes of lab 5, gradient accumulation."""

from __future__ import annotations

import gc
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.core.errors import OutOfMemory
from peakmem.measure import meter
from peakmem.probes import Namespace, call_each
from peakmem.probes.lab05.leak import find_the_leak

__all__ = [
    "LOSSES",
    "Louder",
    "Regression",
    "accumulate_gradients",
    "accumulate_token_mean",
    "batch_norm_gap",
    "find_the_leak",
    "large_run",
    "largest_micro_batch",
    "memory_line",
    "normed_perceptron",
    "perceptron",
    "small_model",
    "token_model",
    "train_epoch",
]

Array = np.ndarray[Any, np.dtype[Any]]
LossFunction = Callable[[Tensor, Tensor], Tensor]

LOSSES: dict[str, LossFunction] = {"mse": F.mse_loss, "cross_entropy": F.cross_entropy}


def largest_micro_batch(student: Namespace, upper: int, ask: Callable[[Any], Any]) -> Any:
    """Let the student search for the largest micro-batch; the grader decides what fits.

    Returns ("value", answer), or ("raised", name of the error) where a run raised OutOfMemory or
    one of `_BUGS` and `largest_micro_batch` let it pass. What an error says tells nothing: a full
    memory is known by the type.
    """
    raised: list[Exception] = []

    def run(m: int) -> None:
        reply = ask(operator.index(m))  # a TypeError for 2.5: half a sample cannot be run
        if reply == "out of memory":
            raised.append(OutOfMemory(_WORDS[m % len(_WORDS)]))
            raise raised[-1]
        if reply in _BUGS:
            raised.append(_BUGS[reply](f"out of memory? No, a bug: {m} samples do not fit a shape"))
            raise raised[-1]

    try:
        return ("value", student.largest_micro_batch(run, upper))
    except _PASSED_ON as error:
        if not any(error is bug for bug in raised):
            raise
        return ("raised", type(error).__name__)


_WORDS = ("", "the allocator has nothing left", "aten::bmm asked for 2,097,152 bytes")

# By the grader's reply: torch raises RuntimeError for most bugs.
_BUGS: dict[str, type[Exception]] = {"broken": ValueError, "broken otherwise": RuntimeError}
_PASSED_ON: tuple[type[Exception], ...] = (OutOfMemory, *_BUGS.values())


def memory_line(student: Namespace, calls: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Call `memory_line(batch_sizes, peaks)` for each of `calls`."""
    return call_each(student.memory_line, calls)


# Models, built alike here and by the grader.


def perceptron(weights: Sequence[Array]) -> nn.Sequential:
    """Return linear layers of these weights (out, in), without biases, with tanh between them."""
    layers: list[nn.Module] = []
    for weight in weights:
        layers += [nn.Linear(weight.shape[1], weight.shape[0], bias=False), nn.Tanh()]
        layers[-2].weight = nn.Parameter(torch.tensor(weight))
    return nn.Sequential(*layers[:-1])


class Louder(nn.Module):
    """Another layer in training than in evaluation, as dropout is, without its dice."""

    def forward(self, x: Tensor) -> Tensor:
        return 1.5 * x if self.training else x


def token_model(embedding: Array, head: Array) -> nn.Sequential:
    """Return a model from tokens (B, T) to logits (B, T, V)."""
    tokens = nn.Embedding(len(embedding), embedding.shape[1], _weight=torch.tensor(embedding))
    return nn.Sequential(tokens, nn.Tanh(), Louder(), *perceptron([head]))


def small_model(weights: Sequence[Array]) -> nn.Sequential:
    """Return a perceptron with a layer in it that its mode changes."""
    layers = list(perceptron(weights))
    return nn.Sequential(*layers[:2], Louder(), *layers[2:])


class Regression(nn.Module):
    """A perceptron that returns the mean loss of a batch: model(x, y) -> loss."""

    def __init__(self, weights: Sequence[Array]) -> None:
        super().__init__()
        self.layers = perceptron(weights)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(self.layers(x), y)


# Gradients.


def accumulate_gradients(
    student: Namespace,
    micro_batch: int,
    small: Mapping[str, Any] | None = None,
    large: Mapping[str, Any] | None = None,
    metered: bool = True,
) -> dict[str, Any]:
    """Call `accumulate_gradients` on a `small` model, or on a `large` one.

    `small` has the `weights` of a perceptron, the gradients that are there `before` (None, or one
    for each weight), `inputs`, `targets`, the name of a `loss`, and whether it is in `training`.
    Returns `value` (what came back), `sizes` (of the batches that the model was given), `waiting`
    (how many graphs were kept, their backward still to come, when a forward began), `changed` (what
    was changed that should not have been) and the `gradients`; of a `large` one, if `metered`,
    `rise_bytes` as well, by how much live bytes rose.
    """
    if large is not None:
        # The first run takes the buffers that the matrix library keeps, some 10 MiB.
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
    before: Sequence[Array] | None,
    tokens: Array,
    labels: Array,
    micro_batch: int,
    ignore_index: int | None,
    training: bool,
) -> dict[str, Any]:
    """Call `accumulate_token_mean`; return what `accumulate_gradients` returns.

    `ignore_index` is left to its default where it is None.
    """
    model = token_model(embedding, head).train(training)
    _set_gradients(model, before)
    given = (torch.tensor(tokens), torch.tensor(labels))
    options = {} if ignore_index is None else {"ignore_index": ignore_index}
    report = _watched(model, given)
    return report(student.accumulate_token_mean(model, *given, micro_batch, **options))


def _set_gradients(model: nn.Module, before: Sequence[Array] | None) -> None:
    if before is not None:
        for parameter, gradient in zip(model.parameters(), before, strict=True):
            parameter.grad = torch.tensor(gradient)


def _watched(model: nn.Module, given: tuple[Tensor, ...]) -> Callable[[Any], dict[str, Any]]:
    """Watch a model and the tensors that it is trained on; return what makes the report.

    What was noted is in no attribute of the model.
    """
    before = _state(model, given)
    forwards = _note_forwards(model)

    def report(value: Any) -> dict[str, Any]:
        after = _state(model, given)
        sizes, waiting = forwards()
        return {
            "value": "a tensor" if isinstance(value, Tensor) else value,
            "sizes": sizes,
            "waiting": waiting,
            "changed": [name for name, old in before.items() if not _alike(old, after[name])],
            "gradients": _gradients(model),
        }

    return report


def _state(model: nn.Module, given: tuple[Tensor, ...]) -> dict[str, list[Any]]:
    return {
        "parameters": [p.detach().clone() for p in model.parameters()],
        "inputs or targets": [t.clone() for t in given],
        "mode": [module.training for module in model.modules()],
    }


def _note_forwards(model: nn.Module) -> Callable[[], tuple[list[int], int]]:
    """Note each forward of the model; return what reads two figures.

    They are the sizes of the batches that it was given, and how many graphs were kept, their
    backward still to come, when a forward began. One counts as long as something holds it; a
    loop's own variable holds the last one, so one that waits is no sign of anything.
    """
    sizes: list[int] = []
    waiting = 0
    known: list[weakref.ref[_Backward]] = []
    kind: Any = type(model)

    class Noted(kind):  # type: ignore[misc]
        def forward(self, *batch: Any) -> Any:
            nonlocal waiting
            sizes.append(len(batch[0]))
            held = [backward for ref in known if (backward := ref()) is not None]
            waiting = max(waiting, sum(not backward.begun for backward in held))
            output = super().forward(*batch)
            if output.requires_grad:
                backward = _Backward()  # held by the graph alone
                output.register_hook(backward)
                known.append(weakref.ref(backward))
            return output

    Noted.__name__ = Noted.__qualname__ = kind.__name__
    model.__class__ = Noted
    return lambda: (sizes.copy(), waiting)


class _Backward:
    """Whether a graph's backward has begun."""

    def __init__(self) -> None:
        self.begun = False

    def __call__(self, _: Tensor) -> None:
        self.begun = True


def _alike(old: Sequence[Any], new: Sequence[Any]) -> bool:
    return all(
        bool((a == b).all()) if isinstance(a, Tensor) else a == b
        for a, b in zip(old, new, strict=True)
    )


def _gradients(model: nn.Module) -> list[Array | None]:
    return [None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()]


def large_run(
    samples: int, length: int, width: int, layers: int, seed: int
) -> tuple[nn.Sequential, Tensor, Tensor]:
    """Return a float32 model that keeps much, with its inputs and targets."""
    rng = np.random.default_rng(seed)
    shape = (samples, length, width)
    weights = [rng.normal(0, width**-0.5, (width, width)).astype(np.float32) for _ in range(layers)]
    pair = [torch.from_numpy(rng.random(shape, dtype=np.float32)) for _ in range(2)]
    return perceptron(weights), pair[0], pair[1]


def _large(
    student: Namespace, micro_batch: int, large: Mapping[str, Any], *, metered: bool
) -> dict[str, Any]:
    model, inputs, targets = large_run(**large)
    report = _watched(model, (inputs[:1], targets[:1]))
    given = (model, F.mse_loss, inputs, targets, micro_batch)
    if not metered:
        return report(student.accumulate_gradients(*given))
    with meter.MemoryMeter("cpu", history=False).track(model, inputs, targets) as measured:
        value = student.accumulate_gradients(*given)
    return {**report(value), "rise_bytes": measured.peak_bytes - measured.baseline_bytes}


# A training of many updates.


def train_epoch(
    student: Namespace,
    weights: Sequence[Array],
    batches: Sequence[Sequence[Array]],
    accumulation_steps: int,
    lr: float,
    max_norm: float | None,
    lr_factor: float | None,
    begins_anew: bool = False,
) -> dict[str, Any]:
    """Call `train_epoch` with an optimizer and a scheduler that note what they are asked to do.

    The scheduler, unless `lr_factor` is None, multiplies lr by it at each of its steps. What is
    None is left to its default. The optimizer has a group for each parameter. Returns `value`,
    `events` ("update" and "schedule", in order), the `gradients` at each update, whether gradients
    were `clean` at the end, `waiting`, as `accumulate_gradients` does, and how many `forwards`
    there were. The loader is a generator; or, as a DataLoader is, one that `begins_anew` in each
    loop. It has no length.
    """
    model = Regression(weights)
    loader = _Loader(batches)
    forwards = _note_forwards(model)
    optimizer, noted, events = _noting_sgd(model, lr)
    options: dict[str, Any] = {} if max_norm is None else {"max_norm": max_norm}
    if lr_factor is not None:
        options["scheduler"] = _scheduler(optimizer, lr_factor, events)
    value = student.train_epoch(
        model, optimizer, loader if begins_anew else iter(loader), accumulation_steps, **options
    )
    sizes, waiting = forwards()
    left = [gradient for gradient in _gradients(model) if gradient is not None]
    return {
        "value": value,
        "events": events,
        "gradients": noted,
        "clean": not any(gradient.any() for gradient in left),
        "waiting": waiting,
        "forwards": len(sizes),
    }


class _Loader:
    """Yields batches from the first one on in each loop over it; in the third, none, for an end."""

    def __init__(self, batches: Sequence[Sequence[Array]]) -> None:
        self._batches, self._loops = batches, 0

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        self._loops += 1
        for batch in self._batches if self._loops < 3 else []:
            yield tuple(torch.tensor(array) for array in batch)


def _noting_sgd(
    model: nn.Module, lr: float
) -> tuple[torch.optim.Optimizer, list[list[Array | None]], list[str]]:
    """Return torch's SGD, the gradients that each of its steps saw, and a list of its steps.

    The lists are in no attribute of the optimizer.
    """
    noted: list[list[Array | None]] = []
    events: list[str] = []

    class NotingSGD(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            events.append("update")
            noted.append(_gradients(model))
            return super().step(closure)

    groups = [{"params": [parameter]} for parameter in model.parameters()]
    return NotingSGD(groups, lr=lr), noted, events


def _scheduler(optimizer: torch.optim.Optimizer, factor: float, events: list[str]) -> Any:
    """Return a learning-rate scheduler: each step multiplies lr by a factor, and is noted."""

    class Scheduler:
        def step(self) -> None:
            events.append("schedule")
            for group in optimizer.param_groups:
                group["lr"] *= factor

    return Scheduler()


# Normalisation over the batch.


def batch_norm_gap(
    student: Namespace,
    weights: Sequence[Array],
    norm: str,
    training: str,
    x: Array,
    micro_batch: int,
) -> dict[str, Any]:
    """Call `batch_norm_gap` on two layers with a norm between: "batch", "layer" or "none".

    The model looks as after some training: it has gradients, and its running statistics moved.
    With `training` "mixed" the norm is in evaluation mode, the rest in training, as a norm is that
    was frozen. Returns `value`, and what was `changed` of the model and its input.
    """
    model = normed_perceptron(weights, norm).train(training != "off")
    if training == "mixed":
        model[1].eval()
    modes = [module.training for module in model.modules()]
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for buffer in model.buffers():
        buffer.fill_(3)
    given = torch.tensor(x)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    value = student.batch_norm_gap(model, given, micro_batch)
    after = model.state_dict()
    changed = {
        "state": after.keys() != state.keys()
        or not all(bool((after[name] == state[name]).all()) for name in state),
        "mode": [module.training for module in model.modules()] != modes,
        "gradients": any(
            p.grad is None or not bool((p.grad == 1).all()) for p in model.parameters()
        ),
        "x": not bool((given == torch.tensor(x)).all()),
    }
    return {
        "value": "a tensor" if isinstance(value, Tensor) else value,
        "changed": [name for name, is_changed in changed.items() if is_changed],
    }


def normed_perceptron(weights: Sequence[Array], norm: str) -> nn.Sequential:
    """Return two linear layers with a norm and tanh between: norm "batch", "layer" or "none"."""
    first, last = perceptron(weights[:1]), perceptron(weights[1:])
    width = weights[0].shape[0]
    between: dict[str, Callable[[], nn.Module]] = {
        "batch": lambda: nn.BatchNorm1d(width, dtype=torch.float64),
        "layer": lambda: nn.LayerNorm(width, dtype=torch.float64),
        "none": nn.Identity,
    }
    return nn.Sequential(*first, between[norm](), nn.Tanh(), *last)
