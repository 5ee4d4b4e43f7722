"""Probes of lab 3, the optimizer's state."""

from __future__ import annotations

import gc
import inspect
import itertools
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peakmem.measure import meter
from peakmem.probes import Namespace, call_each, earlier_objects_set_aside
from peakmem.probes.lab03.leak import find_the_leak

__all__ = [
    "adam_step",
    "bytes_per_parameter",
    "find_the_leak",
    "gradients_of",
    "is_view",
    "large_tensors",
    "largest_model",
    "lean_adam_step",
    "measured_state_bytes",
    "peak_of_step",
    "state_bytes",
    "step_in_backward",
    "step_timeline",
]

Array = npt.NDArray[Any]
Step = Callable[..., object]
Calls = Sequence[Sequence[Any]]
Outcomes = list[tuple[Any, ...]]


def adam_step(
    student: Namespace, models: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Train a few parameters with the student's `adam_step` and note them after every call.

    Each model has `parameters` (arrays), `layouts` (a word each, see `_leaf`), `gradients` (for
    each parameter an array with one row a call) and `skipped` (pairs of a call and a parameter
    whose gradient is None then). `options` are passed on. The models take turns: each makes its
    first call before any makes its second, with a state of its own.

    Returns one dict a model: `parameters` has for each parameter an array with one row a call, its
    values after it; `changed` names the first thing that a call changed and should not have, None
    if there is none; `state_used` tells whether anything is in the state in the end.
    """
    return _train(student.adam_step, models, options)


def bytes_per_parameter(student: Namespace, calls: Calls) -> Outcomes:
    """Call `bytes_per_parameter(recipe)` for each of `calls`, as `call_each` does."""
    return call_each(student.bytes_per_parameter, calls)


def lean_adam_step(
    student: Namespace,
    models: Sequence[Mapping[str, Any]] | None = None,
    large: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    metered: bool = True,
) -> Any:
    """Train with the student's `lean_adam_step`: small `models`, as `adam_step` does, or `large`.

    `large` has `shapes`, `seed` (for `large_tensors`), `factors` (the gradients of each call are
    those of the call before times one of these, the first 1) and `watched`: for each parameter,
    the flat positions of the values to be returned.

    Returns for `large` a dict: `models` has the one model's watched values, in the form above;
    `changed`, what a call changed and should not have. If `metered`, also `rise_bytes` and
    `numpy_rise_bytes`, the peaks over all calls above parameters and gradients, as the meter saw
    them; `kept_bytes` and `numpy_kept_bytes`, what was still live after the last call.
    """
    if large is None:
        return _train(student.lean_adam_step, models or [], options or {})
    return _large(student.lean_adam_step, options or {}, metered=metered, **large)


def state_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `state_bytes(shapes, optimizer)` for each of `calls`."""
    return call_each(student.state_bytes, calls)


def largest_model(student: Namespace, calls: Calls) -> Outcomes:
    """Call `largest_model(recipe, budget_bytes, activation_bytes)` for each of `calls`."""
    return call_each(student.largest_model, calls)


def step_timeline(student: Namespace, calls: Calls) -> Outcomes:
    """Call `step_timeline(param_bytes, activation_bytes, events)` for each of `calls`."""
    return call_each(student.step_timeline, calls)


def measured_state_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `measured_state_bytes(optimizer)` on an optimizer for each of `calls`.

    A call holds one state in plain data: `parameters` and `sizes` are the numbers of float32 values
    of the parameters and of some storages; `trees` has for each parameter a dict as an optimizer
    keeps it, with views of the storages as leaves (`is_view`). Fewer trees than parameters: the
    last ones have no state. Where the student's function changed the optimizer, the value is
    "changed".
    """

    def measure_one(state: Mapping[str, Any]) -> Any:
        optimizer = _StateOnly(state)
        before = optimizer.described()
        found = student.measured_state_bytes(optimizer)
        return found if optimizer.described() == before else "changed"

    return call_each(measure_one, calls)


def is_view(thing: Any) -> bool:
    """Tell whether plain data stands for a view, which is {"storage": i, "start": a, "stop": b}."""
    return isinstance(thing, dict) and thing.keys() == {"storage", "start", "stop"}


class _StateOnly(torch.optim.Optimizer):
    """An optimizer with a given state. It makes no steps."""

    # torch wraps these in what imports torch._dynamo at the first call, which takes seconds.
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)

    def __init__(self, state: Mapping[str, Any]) -> None:
        parameters = [torch.zeros(n, requires_grad=True) for n in state["parameters"]]
        super().__init__(parameters, {})
        storages = [torch.zeros(n) for n in state["sizes"]]
        for parameter, tree in zip(parameters, state["trees"], strict=False):
            self.state[parameter] = _built(tree, storages)

    def described(self) -> list[Any]:
        """All that is in the state, object by object, with the values of tensors."""
        return [(id(parameter), _described(own)) for parameter, own in self.state.items()]


def _built(tree: Any, storages: Sequence[torch.Tensor]) -> Any:
    if is_view(tree):
        return storages[tree["storage"]][tree["start"] : tree["stop"]]
    if isinstance(tree, dict):
        return {key: _built(part, storages) for key, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_built(part, storages) for part in tree)
    return tree


def _described(thing: Any) -> Any:
    if isinstance(thing, torch.Tensor):
        return id(thing), thing.untyped_storage().data_ptr(), thing.tolist()
    if isinstance(thing, dict):
        return id(thing), [(key, _described(part)) for key, part in thing.items()]
    if isinstance(thing, (list, tuple)):
        return id(thing), [_described(part) for part in thing]
    return thing


def step_in_backward(
    student: Namespace,
    lr: float | None,
    weights: Sequence[Array] | None = None,
    widths: Sequence[int] | None = None,
    metered: bool = True,
) -> dict[str, Any]:
    """Run backward with the student's `step_in_backward`, on three `weights` or a wide chain.

    Where `lr` is None, the student's default counts. Of three weights a, b, c, the loss is the sum
    of ones @ a @ b @ b @ c. Returns `stepped`, the weights after backward; `gradients_left`,
    whether each has a gradient then; and after remove() and one more backward, the weights
    (`after_remove`) and their `gradients`.

    `widths` are those of a chain of float32 layers, each filled with 1 / its number of rows.
    Returns the first and the last value of each weight after backward (`ends`), and if `metered`,
    `rise_bytes`, by how much live bytes rose in it.
    """
    options = {} if lr is None else {"lr": lr}
    if weights is None:
        return _chain(student.step_in_backward, widths or [], options, metered=metered)
    a, b, c = tensors = [torch.tensor(array, requires_grad=True) for array in weights]

    def backward() -> list[Array]:
        (torch.ones(1, len(a), dtype=a.dtype) @ a @ b @ b @ c).sum().backward()  # type: ignore[no-untyped-call]
        return [tensor.detach().numpy().copy() for tensor in tensors]

    handle = student.step_in_backward(tensors, **options)
    stepped = backward()
    gradients_left = [tensor.grad is not None for tensor in tensors]
    handle.remove()
    after_remove = backward()
    return {
        "stepped": stepped,
        "gradients_left": gradients_left,
        "after_remove": after_remove,
        "gradients": [None if t.grad is None else t.grad.numpy().copy() for t in tensors],
    }


def _chain(
    step_in_backward: Callable[..., Any],
    widths: Sequence[int],
    options: Mapping[str, float],
    *,
    metered: bool,
) -> dict[str, Any]:
    shapes = list(itertools.pairwise(widths))
    weights = [torch.full(shape, 1 / shape[0], requires_grad=True) for shape in shapes]
    handle = step_in_backward(weights, **options)
    x = torch.ones(1, widths[0])
    for weight in weights:
        x = x @ weight
    loss = x.sum()
    figures = {}
    if metered:
        meter_ = meter.MemoryMeter("cpu", history=False).track(weights, x, loss)
        with earlier_objects_set_aside(), meter_ as measured:
            loss.backward()  # type: ignore[no-untyped-call]
        figures["rise_bytes"] = measured.peak_bytes - measured.baseline_bytes
    else:
        loss.backward()  # type: ignore[no-untyped-call]
    handle.remove()
    return {"ends": [[w[0, 0].item(), w[-1, -1].item()] for w in weights], **figures}


def peak_of_step(student: Namespace, calls: Calls) -> Outcomes:
    """Call `peak_of_step(shapes, activation_bytes, optimizer)` for each of `calls`."""
    return call_each(student.peak_of_step, calls)


def gradients_of(model: Mapping[str, Any], call: int) -> list[Array | None]:
    """Return what a model's parameters are given in one call: an array each, or None."""
    skipped = {tuple(pair) for pair in model["skipped"]}
    rows = [gradients[call] for gradients in model["gradients"]]
    return [None if (call, i) in skipped else row for i, row in enumerate(rows)]


def large_tensors(shapes: Sequence[Sequence[int]], seed: int) -> tuple[list[Array], list[Array]]:
    """Return float32 parameters and gradients of these shapes, the same for the same seed."""
    rng = np.random.default_rng(seed)

    def draw() -> list[Array]:
        drawn = [rng.random(tuple(shape), dtype=np.float32) for shape in shapes]
        for array in drawn:
            array -= np.float32(0.5)  # in place: a budget has no room for a copy
        return drawn

    return draw(), draw()


def _train(
    step: Step, models: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    runs = [_Run(model) for model in models]
    for number in range(max(run.calls for run in runs)):
        for run in runs:
            run.call(step, number, options)
    return [run.report() for run in runs]


class _Run:
    """One model, its state, and what it looked like after each call."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        pairs = zip(model["parameters"], model["layouts"], strict=True)
        self.parameters = [_leaf(array, layout) for array, layout in pairs]
        self.model = model
        self.calls = len(model["gradients"][0])
        self.state: dict[Any, Any] = {}
        self.noted: list[list[Array]] = []
        self.changed: str | None = None

    def call(self, step: Step, number: int, options: Mapping[str, Any]) -> None:
        """Make the call `number`, if this model has as many."""
        if number >= self.calls:
            return
        arrays = gradients_of(self.model, number)
        gradients = [None if a is None else torch.tensor(a) for a in arrays]
        given = (list(self.parameters), list(gradients))
        step(*given, self.state, **options)
        self.noted.append([p.detach().numpy().copy() for p in self.parameters])
        if self.changed is None:
            self.changed = self._change(given, gradients, arrays)

    def report(self) -> dict[str, Any]:
        return _report(self.noted, self.changed, self.state)

    def _change(
        self,
        given: tuple[list[Any], list[Any]],
        gradients: list[torch.Tensor | None],
        arrays: Sequence[Array | None],
    ) -> str | None:
        for gradient, array in zip(gradients, arrays, strict=True):
            if gradient is None or array is None:
                continue
            if not np.array_equal(gradient.numpy(), array):
                return "gradients"
        if not (_same_objects(given[0], self.parameters) and _same_objects(given[1], gradients)):
            return "lists"
        if not all(p.requires_grad and p.is_leaf for p in self.parameters):
            return "requires_grad"
        return None


def _report(noted: list[list[Array]], changed: str | None, state: object) -> dict[str, Any]:
    by_parameter = [np.stack(rows) for rows in zip(*noted, strict=True)]
    return {"parameters": by_parameter, "changed": changed, "state_used": bool(state)}


def _same_objects(a: Sequence[object], b: Sequence[object]) -> bool:
    return list(map(id, a)) == list(map(id, b))


def _leaf(array: Array, layout: str) -> torch.Tensor:
    """A parameter with the array's values: its memory is "contiguous", "transposed", "strided"."""
    if layout == "transposed":
        tensor = torch.tensor(array.T.copy()).T
    elif layout == "strided":  # every second value of a longer row
        tensor = torch.zeros(*array.shape[:-1], 2 * array.shape[-1], dtype=torch.float64)[..., ::2]
        tensor.copy_(torch.tensor(array))
    else:
        tensor = torch.tensor(array)
    return tensor.requires_grad_()


class _LargeRun:
    """Steps on large tensors, and what they led to at the watched places."""

    def __init__(
        self,
        step: Step,
        options: Mapping[str, Any],
        shapes: Sequence[Sequence[int]],
        seed: int,
        factors: Sequence[float],
        watched: Sequence[Array],
    ) -> None:
        self._step, self._options = step, options
        self._factors, self._watched = factors, watched
        self._arrays, self._gradient_arrays = large_tensors(shapes, seed)
        self.parameters = [torch.from_numpy(array).requires_grad_() for array in self._arrays]
        self.gradients = [torch.from_numpy(array) for array in self._gradient_arrays]
        self._state: dict[Any, Any] = {}
        self._noted: list[list[Array]] = []
        self._changed: str | None = None

    def train(self) -> None:
        for factor in self._factors:
            for gradient in self.gradients:
                gradient.mul_(factor)
            before = _at(self._watched, self._gradient_arrays)
            self._step(self.parameters, self.gradients, self._state, **self._options)
            self._noted.append(_at(self._watched, self._arrays))
            if not all(map(np.array_equal, before, _at(self._watched, self._gradient_arrays))):
                self._changed = "gradients"

    def report(self) -> dict[str, Any]:
        return {"models": [_report(self._noted, self._changed, self._state)]}


def _large(
    step: Step, options: Mapping[str, Any], *, metered: bool, **large: Any
) -> dict[str, Any]:
    _warm_up(step, len(large["factors"]))
    run = _LargeRun(step, options, **large)
    if not metered:
        run.train()
        return run.report()
    meter_ = meter.MemoryMeter("cpu", count_numpy=True, history=False)
    with earlier_objects_set_aside(), meter_.track(run.parameters, run.gradients) as measured:
        run.train()
        gc.collect()
    return {
        **run.report(),
        "rise_bytes": measured.peak_bytes - measured.baseline_bytes,
        "numpy_rise_bytes": measured.numpy_peak_bytes,
        "kept_bytes": measured.live_bytes - measured.baseline_bytes,
        "numpy_kept_bytes": _kept_by_python(_LargeRun(step, options, **large)),
    }


def _kept_by_python(run: _LargeRun) -> int:
    """What is live after a training, of numpy's and Python's: a run of its own, as tracing is slow.

    Blocks of up to 512 bytes are left out: of Python's small objects, some hundred come and go.
    """
    tracemalloc.start()
    try:
        run.train()
        gc.collect()
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    return sum(trace.size for trace in snapshot.traces if trace.size > 512)


def _at(watched: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
    """The watched values of some arrays; each array shares its memory with a tensor."""
    pairs = zip(arrays, watched, strict=True)
    return [array.reshape(-1)[where] for array, where in pairs]


def _warm_up(step: Step, calls: int) -> None:
    """Make the same calls on tiny tensors, so that imports, caches and code pages are there.

    They are no part of what an optimizer step costs, but a budget and the meter would count them.
    """
    parameters = [torch.zeros(shape, requires_grad=True) for shape in ((3,), (2, 2))]
    gradients = [torch.ones(shape) for shape in ((3,), (2, 2))]
    state: dict[Any, Any] = {}
    with meter.MemoryMeter("cpu", count_numpy=True, history=False).track(parameters, gradients):
        for _ in range(calls):
            step(parameters, gradients, state)
