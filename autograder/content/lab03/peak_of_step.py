"""Exercise: the peak of a training step, compared with the meter's on the trusted side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.optim.adam import adam as torch_adam

from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.compare import show
from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding, Task
from peakmem.measure.meter import MemoryMeter

__all__ = ["measured_peak", "peak_of_step"]

_PHASE, _NEAR, _NEARER = "phase", "within 5%", "within 1%"
_PARTS = {_NEAR: 0.05, _NEARER: 0.01}

_NO_BYTES = 2**100  # more than any peak, and small enough for a float

Shapes = Sequence[tuple[int, ...]]
Peak = tuple[int, str]


def measured_peak(shapes: Shapes, activation_bytes: int, optimizer: str) -> Peak:
    """Return the metered peak, in bytes, of one step after the first, and the phase it occurs in.

    Backward is simulated: it makes all gradients while a block of activations is live. The step is
    torch's own.
    """
    parameters, firsts, seconds = ([torch.ones(shape) for shape in shapes] for _ in range(3))
    counters = [torch.tensor(1.0) for _ in shapes]
    activations = torch.zeros(activation_bytes, dtype=torch.uint8)
    meter = MemoryMeter("cpu").track(parameters, firsts, seconds, activations)
    with torch.no_grad(), meter:
        gradients = [torch.ones(shape) for shape in shapes]
        in_backward = meter.peak_bytes
        del activations
        torch_adam(
            parameters,
            gradients,
            firsts,
            seconds,
            [],
            counters,
            foreach=optimizer == "foreach",
            fused=optimizer == "fused",
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=1e-3,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
    return meter.peak_bytes, "step" if meter.peak_bytes > in_backward else "backward"


def _sizes(shapes: Shapes) -> list[int]:
    return [4 * math.prod(shape) for shape in shapes]


def _temporaries(shapes: Shapes, optimizer: str) -> int:
    sizes = _sizes(shapes)
    if optimizer == "for-loop":
        return max(2 * own + last for own, last in zip(sizes, [0, *sizes], strict=False))
    return sum(sizes) if optimizer == "foreach" else 0


def _peak(total: int, activations: int, temporaries: int) -> Peak:
    if activations > temporaries:
        return 4 * total + activations, "backward"
    return 4 * total + temporaries, "step"


def _with(temporaries: Callable[[Shapes, str], int]) -> Callable[..., Peak]:
    """The reference, except for the step's temporaries."""
    return lambda shapes, a, name: _peak(sum(_sizes(shapes)), a, temporaries(shapes, name))


def _for_loop(temporaries: Callable[[list[int]], int]) -> Callable[..., Peak]:
    """The reference, except for the for-loop's temporaries."""
    return _with(
        lambda shapes, name: (
            temporaries(_sizes(shapes)) if name == "for-loop" else _temporaries(shapes, name)
        )
    )


def _wraps(sizes: list[int]) -> int:
    """The tensor before the first is at index -1, so it is the last."""
    return max(2 * own + sizes[i - 1] for i, own in enumerate(sizes))


def _at_the_largest(sizes: list[int]) -> int:
    """The largest tensor and the one before it, which needn't be the worst pair."""
    largest = sizes.index(max(sizes))
    return 2 * sizes[largest] + [0, *sizes][largest]


def _with_the_next(sizes: list[int]) -> int:
    return max(2 * own + after for own, after in zip(sizes, [*sizes[1:], 0], strict=True))


def _less(parameters: int) -> Callable[..., Peak]:
    """The reference minus a multiple of P."""

    def mutant(shapes: Shapes, activations: int, name: str) -> Peak:
        total = sum(_sizes(shapes))
        peak, phase = _peak(total, activations, _temporaries(shapes, name))
        return peak - parameters * total, phase

    return mutant


def _activations_stay(shapes: Shapes, activations: int, name: str) -> Peak:
    temporaries = _temporaries(shapes, name)
    phase = "step" if temporaries else "backward"
    return 4 * sum(_sizes(shapes)) + activations + temporaries, phase


def _no_gradients_in_backward(shapes: Shapes, activations: int, name: str) -> Peak:
    total = sum(_sizes(shapes))
    step = 4 * total + _temporaries(shapes, name)
    backward = 3 * total + activations
    return (backward, "backward") if backward > step else (step, "step")


_MUTANTS: Mapping[str, Callable[..., Peak]] = {
    "no_temporaries": _with(lambda shapes, name: 0),
    "foreach_everywhere": _with(lambda shapes, name: sum(_sizes(shapes))),
    "previous_forgotten": _for_loop(lambda sizes: 2 * max(sizes)),
    "one_temporary": _for_loop(max),
    "three_of_the_largest": _for_loop(lambda sizes: 3 * max(sizes)),
    "last_before_first": _for_loop(_wraps),
    "at_the_largest": _for_loop(_at_the_largest),
    "with_the_next": _for_loop(_with_the_next),
    "activations_stay": _activations_stay,
    "no_gradients_in_backward": _no_gradients_in_backward,
    "moments_forgotten": _less(2),
    "gradients_forgotten": _less(1),
}


def _cases(rng: np.random.Generator) -> list[Case]:
    calls = [
        _call(rng, name, above)
        for name in ("for-loop", "foreach", "fused")
        for above in (False, True)  # fused has no temporaries, so it peaks in backward either way
    ]
    n = int(rng.integers(10_000, 13_000))
    calls.append([[(rows * n,) for rows in (5, 1, 1, 3)], n, "for-loop"])  # peaks at the first
    calls.append([[(), (n % 5 + 2,), ()], 1, "foreach"])  # single numbers, hidden by larger ones
    others = {0: calls[0][0][1:], 1: 5 * calls[0][1], 2: "fused"}
    calls += one_at_a_time(calls[0], others)[1:]
    return [Case((_PHASE, *_PARTS), {"calls": [call]}) for call in calls]


def _call(rng: np.random.Generator, optimizer: str, above: bool) -> list[Any]:
    """Shapes whose for-loop peaks after the largest tensor, and activations that decide the phase.

    In blocks of n rows, the for-loop's temporaries take 10 of 14: the tensor of 3 comes after that
    of 4. The shares keep each mistake's phases and errors the same in every draw.
    """
    n = int(rng.integers(100, 130))
    columns = [int(rng.integers(99, 102)) for _ in range(4)]
    shapes: list[tuple[int, ...]] = [(rows * n, columns.pop()) for rows in (3, 1, 4)]
    shapes += [(3, n, columns.pop()), (3 * n, 100), (n,), ()]
    temporaries = _temporaries(shapes, optimizer) or sum(_sizes(shapes))
    share = float(rng.uniform(1.26, 1.33)) if above else float(rng.uniform(0.3, 0.35))
    return [shapes, int(share * temporaries), optimizer]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    (call,), outcomes = case.inputs["calls"], answer.value
    if not (isinstance(outcomes, list) and len(outcomes) == 1 and _is_outcome(outcomes[0])):
        return dict.fromkeys(case.parts, Finding(False, "The answers came back garbled."))
    kind, got = outcomes[0][:2]
    if kind == "raised" and show(got) == show("NotImplementedError"):
        return dict.fromkeys(case.parts, NOT_WRITTEN)
    expected = measured_peak(*call)
    written = f"For peak_of_step({call[0]}, {call[1]}, {call[2]!r}): measured {expected}"
    if kind != "value" or not _is_peak(got):
        said = f"{written}, but got {show(outcomes[0][1:] if kind != 'value' else got)}."
        return dict.fromkeys(case.parts, Finding(False, said))
    mistakes = tuple(name for name, mutant in _MUTANTS.items() if _same(mutant(*call), got))
    wrong = Finding(False, f"{written}, but got {show(got)}.", mistakes)
    off = abs(got[0] - expected[0]) / expected[0]
    found = {part: Finding(True) if off <= most else wrong for part, most in _PARTS.items()}
    return {_PHASE: Finding(True) if got[1] == expected[1] else wrong, **found}


def _is_outcome(outcome: Any) -> bool:
    return isinstance(outcome, (list, tuple)) and len(outcome) >= 2 and isinstance(outcome[0], str)


def _is_peak(got: Any) -> bool:
    return (
        isinstance(got, (list, tuple))
        and len(got) == 2
        and isinstance(got[0], (int, float))
        and not isinstance(got[0], bool)
        and abs(got[0]) < _NO_BYTES
        and isinstance(got[1], str)
    )


def _same(made: Peak, got: Sequence[Any]) -> bool:
    return bool(made[0] == got[0] and made[1] == got[1])


peak_of_step = Task(
    id="lab03-peak_of_step",
    parts={_PHASE: 1, _NEAR: 1, _NEARER: 1},
    defines=("peak_of_step",),
    probe="peak_of_step",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "no_temporaries": "Your step makes no temporaries, so it is never the peak. Add this "
        "optimizer's temporaries from the table.",
        "foreach_everywhere": "Your step makes temporaries of P bytes for every optimizer. That "
        "is true for foreach; a for-loop makes fewer bytes, and fused makes none.",
        "previous_forgotten": "Your for-loop makes two temporaries of the largest tensor's size. "
        "The previous tensor's quotient is still live, too.",
        "one_temporary": "Your for-loop makes one temporary of the largest tensor's size. torch's "
        "for-loop makes two, and the previous tensor's quotient is still live.",
        "three_of_the_largest": "Your for-loop makes three temporaries of the largest tensor's "
        "size. The third is as large as the previous tensor, which may be smaller.",
        "last_before_first": "Your for-loop treats the last tensor, sizes[-1], as the one before "
        "the first. There is no tensor before the first.",
        "at_the_largest": "Your for-loop peaks at the largest tensor. The peak can come at a "
        "smaller tensor right after it, because the large quotient is still live: take the "
        "maximum over all tensors.",
        "with_the_next": "Your for-loop adds the next tensor's size. The previous tensor's "
        "quotient is still live, so add the previous tensor's size.",
        "activations_stay": "Your step still holds the activations. Backward has freed them.",
        "no_gradients_in_backward": "Your backward leaves out the gradients. By this exercise's "
        "convention, all of them are live at its end together with the activations: 4P + A.",
        "moments_forgotten": "Your peaks are 2P too low: the two moments exist from the first "
        "step on.",
        "gradients_forgotten": "Your peaks take 12 bytes per parameter instead of 16: the "
        "gradients, P bytes, are missing.",
    },
)
