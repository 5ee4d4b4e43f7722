"""Exercise: Adam with its moments in 8-bit codes, and one step for each block of 256."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.compare import same
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab09.adam8bit import large_steps, trained

__all__ = ["adam", "adam8bit_step"]

_MIB = 2**20
_NEAR = 0.02
_BLOCK = 256
_TENSORS, _N = 64, 2**14  # parameters and gradients take 4 MiB each
_SMALL_BYTES = 64  # per tensor, for a step counter
# Both, 2 MiB of state, as much again for a new state, and one tensor's temporaries.
_MOST_BYTES = 13 * _MIB


def adam(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    state: dict[Any, Any],
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    *,
    corrected: bool = True,
    second: bool = True,
    remembers: bool = True,
    eps_inside: bool = False,
    coded: bool = False,
) -> None:
    """Adam with moments in float64, or `coded` as in the exercise; other options are mistakes."""
    b1, b2 = betas
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        gradient = grad.double()
        old = state.get(i) if remembers else None
        step, m, v = old or (0, torch.zeros_like(gradient), torch.zeros_like(gradient))
        step, m, v = step + 1, b1 * m + (1 - b1) * gradient, b2 * v + (1 - b2) * gradient**2
        state[i] = (step, _decoded(m, 127), _decoded(v.sqrt(), 255) ** 2) if coded else (step, m, v)
        if corrected:
            m, v = m / (1 - b1**step), v / (1 - b2**step)
        root = (v + eps).sqrt() if eps_inside else v.sqrt() + eps
        param -= lr * m / root if second else lr * m


def _decoded(values: Tensor, top: int) -> Tensor:
    """Round to whole steps; the largest value of each block is `top` steps."""
    parts = []
    for block in torch.split(values.flatten(), _BLOCK):
        step = block.abs().max().clamp_min(1e-30) / top
        parts.append((block / step).round() * step)
    return torch.cat(parts).view_as(values)


def most_state_bytes(n_values: Sequence[int]) -> int:
    """Return two codes per value, two float32 steps per block, and a counter per tensor."""
    return sum(2 * n + 8 * -(-n // _BLOCK) + _SMALL_BYTES for n in n_values)


_MUTANTS: dict[str, dict[str, bool]] = {
    "no_bias_correction": {"corrected": False},
    "no_second_moment": {"second": False},
    "state_forgotten": {"remembers": False},
    "eps_inside": {"eps_inside": True},
}


def _cases(rng: np.random.Generator) -> list[Case]:
    small = functools.partial(_small_case, rng)
    large = {"n_tensors": _TENSORS, "n": _N, "seed": int(rng.integers(2**31))}
    return [
        *(small() for _ in range(2)),
        small(betas=(0.5, 0.8)),
        small(eps=float(rng.uniform(0.003, 0.01))),
        Case(("value",), {"large": large}, budget=Budget(_MOST_BYTES + _MIB)),
    ]


def _small_case(rng: np.random.Generator, **options: Any) -> Case:
    """Draw a training in which codes cost at most a quarter of the tolerance.

    If many second moments are below half a step, even a correct answer's losses are further off.
    """
    while True:
        width, rows = int(rng.integers(14, 19)), int(rng.integers(90, 110))
        sizes = {"width": width, "rows": rows, "steps": 25, "seed": int(rng.integers(2**31))}
        key = tuple(sorted(sizes.items())), tuple(sorted(options.items()))
        if _near(_losses(*key), _losses(*key, "coded"), _NEAR / 4):
            return Case(("value",), {**sizes, "options": options})


@functools.lru_cache(maxsize=64)
def _losses(
    sizes: tuple[tuple[str, int], ...], options: tuple[tuple[str, Any], ...], name: str = ""
) -> list[float]:
    if name == "options_ignored":
        options, name = (), ""
    slip: dict[str, Any] = {"coded": True} if name == "coded" else dict(_MUTANTS.get(name, {}))
    step = functools.partial(adam, **slip)
    losses: list[float] = trained(step, **dict(sizes), options=dict(options))["losses"]
    return losses


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    if case.budget is not None:
        return dict.fromkeys(case.parts, _large(case.inputs, answer))
    return dict.fromkeys(case.parts, _small(case.inputs, answer.value))


def _small(inputs: Mapping[str, Any], value: Any) -> Finding:
    sizes = {name: size for name, size in inputs.items() if name != "options"}
    key = tuple(sorted(sizes.items())), tuple(sorted(inputs["options"].items()))
    expected = _losses(*key)
    got = value.get("losses") if isinstance(value, dict) else None
    again = value.get("again") if isinstance(value, dict) else None
    if not (_are_floats(got, len(expected)) and _are_floats(again, len(expected))):
        return Finding(False, "The answers came back garbled.")
    shapes = [sizes["width"] * (4 * sizes["width"] + 1), 4 * sizes["width"] + 1]
    n_values = [*shapes, 8 * (4 * sizes["width"] + 1)]
    if not _is_report(value) or not same(value.get("n_values"), n_values):
        return Finding(False, "The answers came back garbled.")
    if value["changed"]:
        return Finding(False, "Your step changes the gradients.", ("gradients_changed",))
    if not _near(expected, got):
        names = (*_MUTANTS, *["options_ignored"] * bool(inputs["options"]))
        known = [name for name in names if _near(_losses(*key, name), got)]
        worst = max(range(len(got)), key=lambda i: abs(got[i] / expected[i] - 1))
        said = (
            f"After {worst} steps the loss is {got[worst]:.5g}. Adam's is {expected[worst]:.5g}: "
            f"yours has to be within {_NEAR:.0%} at every step."
        )
        known += ["outside_of_state"] * (value.get("repeats") is False)
        return Finding(False, said, tuple(known))
    if not _near(expected, again):
        said = "With a new state, the same training gives different losses."
        return Finding(False, said, ("outside_of_state",))
    if not inputs["options"] and value.get("defaults") is not True:
        said = (
            "Passing betas=(0.9, 0.999) and eps=1e-8 gives a different step than leaving them out."
        )
        return Finding(False, said, ("other_defaults",))
    most = most_state_bytes(n_values)
    if value["state_bytes"] > most:
        said = f"Your state keeps {value['state_bytes']:,} bytes here; expected at most {most:,}."
        return Finding(False, said, _larger(value["state_bytes"], sum(n_values)))
    return _has_room_for_codes(value["state_bytes"], sum(n_values))


def _has_room_for_codes(state_bytes: int, n: int) -> Finding:
    if state_bytes >= 2 * n:
        return Finding(True)
    return Finding(False, doubt="The state in `state` is too small to hold two codes per value.")


def _is_report(value: Mapping[str, Any]) -> bool:
    return type(value.get("state_bytes")) is int and type(value.get("changed")) is bool


def _larger(state_bytes: int, n: int) -> tuple[str, ...]:
    return ("moments_in_float32",) if state_bytes >= 8 * n else ("more_than_codes",)


def _are_floats(values: Any, count: int) -> TypeGuard[list[float]]:
    return (
        isinstance(values, list)
        and len(values) == count
        and all(isinstance(value, float) for value in values)
    )


def _near(
    expected: Sequence[float], got: Sequence[float], bound: float = _NEAR, least: float = 0.0
) -> bool:
    pairs = zip(expected, got, strict=True)
    return all(math.isclose(e, g, rel_tol=bound, abs_tol=bound * least) for e, g in pairs)


@functools.lru_cache(maxsize=64)
def _moved(n_tensors: int, n: int, seed: int, name: str = "") -> list[float]:
    slip: dict[str, Any] = dict(_MUTANTS.get(name, {}))
    step = functools.partial(adam, **slip)
    moved: list[float] = large_steps(step, n_tensors, n, seed)["moved"]
    return moved


def _large(inputs: Mapping[str, Any], answer: Answer) -> Finding:
    rise = answer.metered("rise_bytes", "numpy_rise_bytes")
    value = answer.value if isinstance(answer.value, dict) else {}
    if not answer.breaks_budget(rise, _MOST_BYTES):
        return _steps(inputs["large"], value)
    took = "" if rise is None else f" Your code took {rise / _MIB:.0f} MiB."
    said = (
        f"Three steps on {_TENSORS} vectors of {_N:,} values may take {_MOST_BYTES // _MIB} MiB, "
        f"including parameters and gradients.{took}"
    )
    held = value.get("state_bytes")
    if type(held) is int and held <= most_state_bytes([_N] * _TENSORS):
        return Finding(False, said, ("all_at_once",))
    return Finding(False, said, ("more_than_codes", "moments_in_float32"))


def _steps(sizes: Mapping[str, int], value: Mapping[str, Any]) -> Finding:
    """Judge how far the parameters moved, and the size of the state of many blocks."""
    expected, got = _moved(**sizes), value.get("moved")
    if not _are_floats(got, len(expected)) or not _is_report(value):
        return Finding(False, "The answers came back garbled.")
    if not _near(expected, got):
        lr = 1e-3  # a mistake's steps may cancel out
        known = [name for name in _MUTANTS if _near(_moved(**sizes, name=name), got, least=lr)]
        if abs(got[0]) > lr / 10 and _near([one * got[0] / expected[0] for one in expected], got):
            known.append("other_defaults")
        said = (
            f"On vectors of {_N:,} values, with larger gradients in some blocks of {_BLOCK} than "
            "in others, your step with the default lr doesn't move parameters as far as Adam's."
        )
        known += ["gradients_changed"] * value["changed"]
        known += ["outside_of_state"] * (value.get("repeats") is False)
        return Finding(False, said, tuple(known))
    if value["changed"]:
        return Finding(False, "Your step changes the gradients.", ("gradients_changed",))
    most = most_state_bytes([_N] * _TENSORS)
    if value["state_bytes"] > most:
        said = (
            f"For {_TENSORS} vectors of {_N:,} values your state keeps {value['state_bytes']:,} "
            f"bytes; expected at most {most:,}."
        )
        return Finding(False, said, ("more_than_codes", "moments_in_float32"))
    return _has_room_for_codes(value["state_bytes"], _N * _TENSORS)


adam8bit_step = Task(
    id="lab09-adam8bit",
    parts={"value": 3},
    defines=("adam8bit_step",),
    probe="adam8bit_step",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "no_bias_correction": "Your moments aren't corrected for their start at 0: divide them by "
        "1 - beta^t, t being the step's number.",
        "no_second_moment": "You don't divide by the square root of the second moment.",
        "options_ignored": "Your step ignores betas or eps.",
        "other_defaults": "Your defaults aren't Adam's: lr=1e-3, betas=(0.9, 0.999) and eps=1e-8.",
        "eps_inside": "Add eps to the root, not to the value under it.",
        "state_forgotten": "Each step starts from moments of 0. Keep the codes in `state`, and "
        "decode them in the next step.",
        "outside_of_state": "A second training run doesn't start over: you keep something, such "
        "as the number of steps, outside `state`. Each training run has its own state.",
        "gradients_changed": "Your step changes the gradients. Work on copies.",
        "all_at_once": "Your state is small, but the decoded moments of many parameters are alive "
        "at once. Decode one parameter's, update it, and free them before the next.",
        "more_than_codes": "You keep more than two codes per value and two steps per block. Look "
        "for decoded moments that stay alive.",
        "moments_in_float32": "Your moments are kept in float32. Keep the codes, uint8 or int8, "
        "and a step for each block of 256.",
    },
    ban=NO_METER_TAMPERING,
    trust="measured",
)
