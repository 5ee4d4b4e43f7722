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

from peakmem import meter
from peakmem.errors import OutOfMemory
from peakmem.probes import UNWATCH, WATCH, Namespace, call_each

__all__ = [
    "LOSSES",
    "Regression",
    "accumulate_gradients",
    "accumulate_token_mean",
    "batch_norm_gap",
    "large_run",
    "largest_micro_batch",
    "memory_line",
    "normed_perceptron",
    "perceptron",
    "token_model",
    "train_epoch",
]

Array = np.ndarray[Any, np.dtype[Any]]
LossFunction = Callable[[Tensor, Tensor], Tensor]

LOSSES: dict[str, LossFunction] = {"mse": F.mse_loss, "cross_entropy": F.cross_entropy}


def largest_micro_batch(student: Namespace, upper: int, ask: Callable[[Any], Any]) -> Any:
    """Let the student search for the largest micro-batch; the grader decides what fits.

    Returns ("value", answer), or ("raised", name of the error) where a run raised one of `_BUGS`
    and `largest_micro_batch` let it pass.
    """
    raised: list[Exception] = []

    def run(m: int) -> None:
        reply = ask(operator.index(m))  # a TypeError for 2.5: half a sample cannot be run
        if reply == "out of memory":
            raise OutOfMemory(f"{m} samples do not fit")
        if reply in _BUGS:
            raised.append(_BUGS[reply](f"this model has a bug, which shows with {m} samples"))
            raise raised[-1]

    try:
        return ("value", student.largest_micro_batch(run, upper))
    except tuple(_BUGS.values()) as error:
        if not any(error is bug for bug in raised):
            raise
        return ("raised", type(error).__name__)


# By the grader's reply: torch raises RuntimeError for most bugs.
_BUGS: dict[str, type[Exception]] = {"broken": ValueError, "broken otherwise": RuntimeError}


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


def token_model(embedding: Array, head: Array) -> nn.Sequential:
    """Return a model from tokens (B, T) to logits (B, T, V)."""
    tokens = nn.Embedding(len(embedding), embedding.shape[1], _weight=torch.tensor(embedding))
    return nn.Sequential(tokens, nn.Tanh(), *perceptron([head]))


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
    ask: Callable[[Any], Any],
    micro_batch: int,
    small: Mapping[str, Any] | None = None,
    large: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Call `accumulate_gradients` on a `small` model, or meter it on a `large` one.

    `small` has the `weights` of a perceptron, the gradients that are there `before` (None, or one
    for each weight), `inputs`, `targets` and the name of a `loss`. Returns `value` (what came
    back), `sizes` (of the batches that the model was given), `waiting` (how many graphs were kept,
    their backward still to come, when a forward began), `changed` (what was changed that should not
    have been) and the `gradients`; of a `large` one `rise_bytes` as well, by how much live bytes
    rose.
    """
    if large is not None:
        # The first run takes the buffers that the matrix library keeps, some 10 MiB.
        _large(student, lambda _: None, micro_batch, {**large, "samples": micro_batch})
        gc.collect()
        return _large(student, ask, micro_batch, large)
    if small is None:
        raise ValueError("expected a small or a large model")
    model = perceptron(small["weights"])
    for parameter, gradient in zip(model.parameters(), small["before"] or [], strict=False):
        parameter.grad = torch.tensor(gradient)
    given = (torch.tensor(small["inputs"]), torch.tensor(small["targets"]))
    watched = _Watched(model, given)
    value = student.accumulate_gradients(model, LOSSES[small["loss"]], *given, micro_batch)
    return watched.report(value)


def accumulate_token_mean(
    student: Namespace,
    embedding: Array,
    head: Array,
    before: Sequence[Array] | None,
    tokens: Array,
    labels: Array,
    micro_batch: int,
    ignore_index: int | None,
) -> dict[str, Any]:
    """Call `accumulate_token_mean`; return what `accumulate_gradients` returns.

    `ignore_index` is left to its default where it is None.
    """
    model = token_model(embedding, head)
    for parameter, gradient in zip(model.parameters(), before or [], strict=False):
        parameter.grad = torch.tensor(gradient)
    given = (torch.tensor(tokens), torch.tensor(labels))
    options = {} if ignore_index is None else {"ignore_index": ignore_index}
    watched = _Watched(model, given)
    return watched.report(student.accumulate_token_mean(model, *given, micro_batch, **options))


class _Watched:
    """A model and the tensors it is trained on: the batches it was given, and what changed."""

    def __init__(self, model: nn.Module, given: tuple[Tensor, ...]) -> None:
        self.sizes: list[int] = []
        self._model, self._given = model, given
        self._before = self._state()
        self._graphs = _Graphs(model)
        self._hook = model.register_forward_pre_hook(self._note)

    def report(self, value: Any) -> dict[str, Any]:
        self._hook.remove()
        self._graphs.stop()
        changed = [
            name for name, old in self._before.items() if not _alike(old, self._state()[name])
        ]
        return {
            "value": "a tensor" if isinstance(value, Tensor) else value,
            "sizes": self.sizes,
            "waiting": self._graphs.waiting,
            "changed": changed,
            "gradients": _gradients(self._model),
        }

    def _note(self, _: nn.Module, arguments: tuple[Any, ...]) -> None:
        self.sizes.append(len(arguments[0]))

    def _state(self) -> dict[str, list[Any]]:
        return {
            "parameters": [p.detach().clone() for p in self._model.parameters()],
            "inputs or targets": [t.clone() for t in self._given],
            "mode": [module.training for module in self._model.modules()],
        }


class _Graphs:
    """How many graphs of a model were kept, their backward still to come, when a forward began.

    One counts as long as something holds it; a loop's own variable holds the last one, so one that
    waits is no sign of anything.
    """

    def __init__(self, model: nn.Module) -> None:
        self.waiting = 0
        self._known: list[weakref.ref[_Backward]] = []
        self._hooks = [
            model.register_forward_pre_hook(self._forward_begins),
            model.register_forward_hook(self._forward_ends),
        ]

    def stop(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def _forward_begins(self, *_: Any) -> None:
        held = [backward for ref in self._known if (backward := ref()) is not None]
        self.waiting = max(self.waiting, sum(not backward.begun for backward in held))

    def _forward_ends(self, _module: nn.Module, _given: Any, output: Tensor) -> None:
        if output.requires_grad:
            backward = _Backward()  # held by the graph alone
            output.register_hook(backward)  # type: ignore[no-untyped-call]
            self._known.append(weakref.ref(backward))


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
    student: Namespace, ask: Callable[[Any], Any], micro_batch: int, large: Mapping[str, Any]
) -> dict[str, Any]:
    model, inputs, targets = large_run(**large)
    watched = _Watched(model, (inputs[:1], targets[:1]))
    ask(WATCH)
    with meter.MemoryMeter("cpu", history=False).track(model, inputs, targets) as measured:
        value = student.accumulate_gradients(model, F.mse_loss, inputs, targets, micro_batch)
    ask(UNWATCH)
    rise_bytes = measured.peak_bytes - measured.baseline_bytes
    return {**watched.report(value), "rise_bytes": rise_bytes}


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

    The scheduler, unless `lr_factor` is None, multiplies lr by it at each of its steps. Returns
    `value`, `events` ("update" and "schedule", in order), the `gradients` at each update, whether
    gradients were `clean` at the end, and `waiting`, as `accumulate_gradients` does. The loader is
    a generator; or, as a DataLoader is, one that `begins_anew` in each loop. It has no length.
    """
    model = Regression(weights)
    loader = _Loader(batches)
    graphs = _Graphs(model)
    events: list[str] = []
    optimizer = _NotingSGD(model, lr, events)
    scheduler = None if lr_factor is None else _Scheduler(optimizer, lr_factor, events)
    value = student.train_epoch(
        model, optimizer, loader if begins_anew else iter(loader), accumulation_steps,
        max_norm=max_norm, scheduler=scheduler,
    )  # fmt: skip
    graphs.stop()
    left = [gradient for gradient in _gradients(model) if gradient is not None]
    return {
        "value": value,
        "events": events,
        "gradients": optimizer.noted,
        "clean": not any(gradient.any() for gradient in left),
        "waiting": graphs.waiting,
    }


class _Loader:
    """Yields batches from the first one on in each loop over it; in the third, none, for an end."""

    def __init__(self, batches: Sequence[Sequence[Array]]) -> None:
        self._batches, self._loops = batches, 0

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        self._loops += 1
        for batch in self._batches if self._loops < 3 else []:
            yield tuple(torch.tensor(array) for array in batch)


class _NotingSGD(torch.optim.SGD):
    """torch's SGD, which notes the gradients of each of its steps."""

    def __init__(self, model: nn.Module, lr: float, events: list[str]) -> None:
        super().__init__(model.parameters(), lr=lr)
        self.noted: list[list[Array | None]] = []
        self._noting, self._events = model, events

    def step(self, closure: Any = None) -> Any:
        self._events.append("update")
        self.noted.append(_gradients(self._noting))
        return super().step(closure)


class _Scheduler:
    """A learning-rate scheduler: each step multiplies lr by a factor."""

    def __init__(self, optimizer: torch.optim.Optimizer, factor: float, events: list[str]) -> None:
        self._optimizer, self._factor, self._events = optimizer, factor, events

    def step(self) -> None:
        self._events.append("schedule")
        for group in self._optimizer.param_groups:
            group["lr"] *= self._factor


# Normalisation over the batch.


def batch_norm_gap(
    student: Namespace,
    weights: Sequence[Array],
    norm: str,
    training: bool,
    x: Array,
    micro_batch: int,
) -> dict[str, Any]:
    """Call `batch_norm_gap` on two layers with a norm between: "batch", "layer" or "none".

    The model looks as after some training: it has gradients, and its running statistics moved.
    Returns `value`, and what was `changed` of the model and its input.
    """
    model = normed_perceptron(weights, norm).train(training)
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
        "mode": any(module.training != training for module in model.modules()),
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
