"""What lab 3's self-checks call: a student's function on inputs that reveal its mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from peakmem.labs.lab03.metered import LEAK_P, LEAK_SIZES, metered_backward
from peakmem.measure.meter import MemoryMeter
from peakmem.probes.lab03.leak import staged_training
from peakmem.probes.leak import measured_run

__all__ = [
    "budget_of",
    "from_backward_to_step",
    "in_turns",
    "on_transposed",
    "or_refused",
    "peak_of",
    "results_of",
    "rise_of",
    "values_after",
]

Step = Callable[..., object]

_MIB = 2**20
_DIGITS = 9  # of a value that moves by 0.1: intermediate float32 shows, float64's rounding doesn't


def values_after(step: Step) -> Callable[..., object]:
    """Return a function that gives a parameter's value after each of some gradients.

    It takes the value at the start, the gradients, and the step's options. Returns a sentence
    instead if the step changes a gradient or a list, leaves a parameter that requires none, leaves
    gradients switched off, or moves a parameter at the end with an lr of 0.
    """

    @torch.enable_grad()  # at the end all is as before, whatever a step switches off
    def values(start: float, gradients: Sequence[float | None], **options: Any) -> object:
        param = torch.tensor([start], dtype=torch.float64, requires_grad=True)
        state: dict[Any, Any] = {}
        found = []
        for gradient in gradients:
            grad = None if gradient is None else torch.tensor([gradient], dtype=torch.float64)
            params, grads = [param], [grad]
            step(params, grads, state, **options)
            if params[0] is not param or grads[0] is not grad:
                return "a list was changed"
            if grad is not None and grad.item() != gradient:
                return "a gradient was changed"
            if not (param.requires_grad and param.is_leaf):
                return "the parameter no longer requires a gradient"
            if not torch.is_grad_enabled():
                return "torch no longer records gradients: use `with torch.no_grad():`"
            found.append(round(param.item(), _DIGITS))
        last = param.item()
        step([param], grads, state, **{**options, "lr": 0.0})
        moved = param.item() != last and not math.isnan(last)
        return "the step uses an earlier call's lr" if moved else tuple(found)

    return values


def in_turns(step: Step) -> Callable[[], object]:
    """Return a function that trains two models in turn, and gives their parameters' values.

    Each has two parameters at 1.0, and the first one's first gradient is None; lr is 0.1. Returns a
    sentence instead if the same parameters take another path with two new states in turns.
    """

    @torch.enable_grad()
    def values() -> object:
        models = [[torch.ones(1, dtype=torch.float64).requires_grad_() for _ in "ab"] for _ in "xy"]
        first = trained(models)
        with torch.no_grad():
            for param in (*models[0], *models[1]):
                param.fill_(1.0)
        again = trained(models, n_states=2)
        return first if again == first else "something is kept outside `state`"

    def trained(models: list[list[torch.Tensor]], n_states: int = 1) -> tuple[float, ...]:
        states: list[list[dict[Any, Any]]] = [[{} for _ in range(n_states)] for _ in models]
        for round_, gradients in enumerate(((0.5, 3.0), (-2.0, 1.0))):
            for params, own, gradient in zip(models, states, gradients, strict=True):
                starts = [param.item() for param in params]
                for state in own:
                    put_back(params, starts)
                    grad = torch.tensor([gradient], dtype=torch.float64)
                    step(params, [grad if round_ else None, grad.clone()], state, lr=0.1)
        return tuple(round(param.item(), _DIGITS) for params in models for param in params)

    @torch.no_grad()
    def put_back(params: list[torch.Tensor], starts: list[float]) -> None:
        for param, start in zip(params, starts, strict=True):
            param.fill_(start)

    return values


def on_transposed(step: Step) -> Callable[[], object]:
    """Return a function that gives the moves of a parameter that is not contiguous in memory."""

    @torch.enable_grad()
    def moves() -> object:
        tall = torch.zeros(3, 2, dtype=torch.float64).T.requires_grad_()
        gradient = torch.arange(1.0, 7.0, dtype=torch.float64).view(2, 3)
        step([tall], [gradient], {}, lr=0.1)
        return tuple({round(value, 6) for row in tall.tolist() for value in row})

    return moves


def or_refused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives "refused" if `function` raises ValueError or KeyError."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (ValueError, KeyError):
            return "refused"

    return call


def budget_of(step: Step) -> Callable[[], str]:
    """Return a function that says whether `step` stays within the diet's budget on large tensors.

    All their values are equal, so all have to make the same step.
    """

    @torch.enable_grad()
    def budget() -> str:
        shapes = [(700_000,), (2, 500_000)]  # a vector, and rows, of over 1 MiB
        params = [torch.zeros(shape, requires_grad=True) for shape in shapes]
        grads = [torch.ones(shape) for shape in shapes]
        state: dict[Any, Any] = {}
        moments_bytes = 2 * sum(param.nbytes for param in params)
        meter = MemoryMeter("cpu", count_numpy=True, history=False).track(params, grads)
        with meter:
            step(params, grads, state)
        if any((param.max() - param.min()).item() > 1e-8 for param in params):
            return "not every value made one step"
        rise = meter.peak_bytes + (meter.numpy_peak_bytes or 0) - meter.baseline_bytes
        over = rise - moments_bytes - _MIB
        kept = meter.live_bytes - meter.baseline_bytes - moments_bytes - 64 * 1024
        if over > 0:
            return f"{over / _MIB:.2f} MiB over the budget during the call"
        return (
            f"{kept / _MIB:.2f} MiB too much kept between calls"
            if kept > 0
            else "within the budget"
        )

    return budget


def from_backward_to_step(step_in_backward: Callable[..., Any]) -> Callable[[], object]:
    """Return a function that runs backward of 3 * (a + b), from 1.0 with lr 0.1, and once more.

    It gives (a, b, whether gradients are left) after the first backward, the same after remove()
    and a second one. A later call steps a parameter with the default lr: its value comes last,
    after two backwards. Returns a sentence instead if a hook from before no longer runs.
    """

    def run() -> object:
        params = [torch.ones(1, requires_grad=True) for _ in "ab"]

        def backward() -> tuple[Any, ...]:
            (3 * (params[0] + params[1])).sum().backward()  # type: ignore[no-untyped-call]
            values = [round(param.item(), 6) for param in params]
            return (*values, any(param.grad is not None for param in params))

        hooked: list[torch.Tensor] = []
        params[0].register_post_accumulate_grad_hook(hooked.append)  # type: ignore[no-untyped-call]
        other = torch.ones(1, requires_grad=True)
        # Both objects are kept: hooks may live as long as theirs does.
        handles = [step_in_backward(params, lr=0.1), step_in_backward([other])]
        first = backward()
        handles[0].remove()
        second = backward()
        for _ in range(2):
            (3 * other).sum().backward()  # type: ignore[no-untyped-call]
        if len(hooked) != 2:
            return "a hook from before is gone"
        return (*first, *second, round(other.item(), 6))

    return run


def rise_of(step_in_backward: Callable[..., Any]) -> Callable[[], str]:
    """Return a function that says how far live memory rises in that backward."""

    def rise() -> str:
        found = metered_backward(step_in_backward)
        allowed = 2 * _MIB + 64 * 1024
        return "at most 2.06 MiB" if found <= allowed else f"{found / _MIB:.2f} MiB"

    return rise


def results_of(train: Callable[..., Any]) -> Callable[[], tuple[float, ...]]:
    """Return a function that gives losses and weights of two small trainings."""

    def run() -> tuple[float, ...]:
        sizes = {"width": 4, "n_layers": 2, "seed": 0}
        odd, even = (staged_training(train, n_batches=n, **sizes) for n in (9, 6))
        return (*odd["losses"], *odd["weights"], *even["losses"], *even["weights"])

    return run


def peak_of(train: Callable[..., Any]) -> Callable[[], str]:
    """Return a function that says whether a large training's peak is within the bound."""

    def run() -> str:
        found = measured_run(staged_training, train, LEAK_SIZES, metered=True)
        peak = (found["rise_bytes"] + found["numpy_rise_bytes"]) / LEAK_P
        return "within 3.5 P" if peak <= 3.5 else f"{peak:.1f} P"

    return run
