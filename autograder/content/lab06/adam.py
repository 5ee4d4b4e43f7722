"""Exercise: Adam whose moments live on the host; results, device bytes and host bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.content.lab03.adam import Model, calls_of
from autograder.content.lab03.adam_step import MISTAKES, NO_TORCH_OPTIM, judge_models, path_cases
from autograder.content.lab03.lean_adam_step import (
    FLOAT32_TOLERANCE,
    SLACK_BYTES,
    UNEVEN,
    is_even,
    watched_model,
    watched_places,
)
from autograder.content.lab06.forgotten import forgotten, stops_after_one
from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab03 import gradients_of, large_tensors

__all__ = ["offloaded_adam"]

_EQUAL, _DEVICE, _HOST = "equals Adam", "device bytes during step", "bytes on the host"
_SLACK_BYTES = 64 * 1024
_EXPLAINS_NO_STEP = {"not_in_place", "state_outside", "flat_copies"}
_LARGE_OPTIONS = {"lr": 0.1}  # large enough for one float32 step to show


def _cases(rng: np.random.Generator) -> list[Case]:
    # Lab 3 tests memory layouts; here every parameter is contiguous.
    return [*(_small(case) for case in path_cases(rng)), _medium(rng), _large(rng)]


def _small(case: Case) -> Case:
    models = [{**model, "layouts": []} for model in case.inputs["models"]]
    return replace(case, parts=(_EQUAL, _HOST), inputs={**case.inputs, "models": models})


def _medium(rng: np.random.Generator) -> Case:
    """Vectors without a budget: the meter decides how much may stay between steps.

    The kernel's budget would allow as much as a step takes. One vector's gradient comes late, and
    one vector never has one. All values of a vector take the same step.
    """
    sizes = [int(n) for n in rng.integers(40_000, 50_000, 5)]
    medium = _vectors(rng, sizes, [np.array([0]) for _ in sizes])
    medium |= {"skipped": [(0, 1), (0, 3), (1, 3)], "even": True}
    return Case((_DEVICE, _HOST), {"large": medium, "options": _LARGE_OPTIONS})


def _large(rng: np.random.Generator) -> Case:
    """Vectors whose moments far exceed the device's limit; two have the same size.

    Each takes more bytes than the budget's slack, so that one tensor too many is refused.
    """
    sizes = [int(n) for n in rng.integers(680_000, 720_000, 5)]
    sizes.append(sizes[2])
    large = _vectors(rng, sizes, [watched_places(rng, n) for n in sizes])
    most_bytes = 2 * _bytes_of(large) + _most_bytes(large) + SLACK_BYTES
    budget = Budget(most_bytes, window_bytes=4 * max(sizes), files=True)
    return Case((_DEVICE, _HOST), {"large": large, "options": _LARGE_OPTIONS}, budget=budget)


def _vectors(rng: np.random.Generator, sizes: list[int], watched: list[Any]) -> dict[str, Any]:
    return {
        "shapes": [[n] for n in sizes],
        "seed": int(rng.integers(2**32)),
        "factors": [1.0, -0.5],
        "watched": watched,
    }


def _bytes_of(large: Mapping[str, Any]) -> int:
    return 4 * sum(int(n) for (n,) in large["shapes"])


def _most_bytes(large: Mapping[str, Any]) -> int:
    """Extra bytes that the device may hold: one parameter's moments, and as much again."""
    return 4 * 4 * max(int(n) for (n,) in large["shapes"]) + _SLACK_BYTES


def _host_bytes(large: Mapping[str, Any]) -> list[int]:
    """The host's bytes before the first step and after each: two moments from a gradient on."""
    skipped = {tuple(pair) for pair in large.get("skipped", ())}
    expected = [0]
    for call in range(len(large["factors"])):
        had = (
            n
            for i, (n,) in enumerate(large["shapes"])
            if any((earlier, i) not in skipped for earlier in range(call + 1))
        )
        expected.append(8 * sum(had))
    return expected


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    inputs = case.inputs
    if "models" in inputs:
        path = _path_finding(inputs["models"], inputs["options"], answer.value)
        if path.said and _are_narrow(inputs["models"], answer.value):
            path = replace(path, mistakes=("narrow_moments",))
        after = _host_after(inputs["models"], answer.value) if path.ok else Finding(True)
        return {_EQUAL: path, _HOST: after}
    value, large = answer.value if isinstance(answer.value, dict) else {}, inputs["large"]
    steps = _steps(large, value.get("models"))
    if not steps.ok and not steps.mistakes:
        return dict.fromkeys(case.parts, steps)
    if large.get("even") and steps.ok and not is_even(value.get("spread")):
        return dict.fromkeys(case.parts, Finding(False, UNEVEN))
    # If gradients are None, mishandling them also shows on the host.
    host = Finding(True) if "skipped" in large and not steps.ok else _host(value, large)
    return {_DEVICE: _device(large, value, answer), _HOST: host}


def _path_finding(
    models: Sequence[Model], options: Mapping[str, Any], said: Any, tolerance: float = 1e-9
) -> Finding:
    finding = judge_models(models, options, said, tolerance)
    if finding.said and (name := forgotten(models, options, said, tolerance)):
        return replace(finding, mistakes=(name,))
    if finding.said and stops_after_one(models, said):
        return replace(finding, mistakes=("params_used_up",))
    return finding


def _steps(large: Mapping[str, Any], said: Any) -> Finding:
    """Return the finding on the measured steps, with mistakes if the other part penalises them."""
    tensors = large_tensors(large["shapes"], large["seed"], bool(large.get("even")))
    models = [{**watched_model(large, tensors), "skipped": large.get("skipped", ())}]
    finding = _path_finding(models, _LARGE_OPTIONS, said, FLOAT32_TOLERANCE)
    excused = {*finding.mistakes} - _EXPLAINS_NO_STEP
    if "params_used_up" in excused and not _steps(*_first_step_only(large, said)).ok:
        excused.clear()
    return finding if finding.ok or excused else Finding(False, _OTHER_STEPS)


def _first_step_only(large: Mapping[str, Any], said: Any) -> tuple[dict[str, Any], Any]:
    first = [{**one, "parameters": [rows[:1] for rows in one["parameters"]]} for one in said]
    return {**large, "factors": large["factors"][:1]}, first


def _device(large: Mapping[str, Any], value: Mapping[str, Any], answer: Answer) -> Finding:
    if value.get("cleared") is not True:
        return Finding(False, "", ("zero_grad_does_nothing",))
    medium = bool(large.get("even"))
    kept_bytes = answer.metered("kept_bytes", *["numpy_kept_bytes"] * medium)
    keeps = (kept_bytes or 0) > _SLACK_BYTES
    rise_bytes = answer.metered("rise_bytes", "numpy_rise_bytes")
    # numpy and torch may peak at different times, so the kernel judges a step better.
    too_much = (
        kept_bytes is None if medium else answer.breaks_budget(rise_bytes, _most_bytes(large))
    )
    if not too_much and not (keeps and not answer.memory):
        return Finding(True)
    if keeps:
        # Bytes that the device holds between steps should be on the host instead.
        live = value.get("live_bytes")
        nowhere = isinstance(live, list) and not any(type(x) is not int or x for x in live)
        return Finding(False, _KEPT, ("nothing_on_the_host" if nowhere else "keeps_on_the_device",))
    all_at_once = (rise_bytes or 0) >= 2 * _bytes_of(large)
    wide = ("wide_moments",) if _are_wide(value.get("live_bytes"), _host_bytes(large)) else ()
    likely = "all_moments_at_once" if all_at_once else "temporaries"
    return Finding(False, _RISE, (likely, *wide))


def _host_after(models: Sequence[Model], said: Any) -> Finding:
    """Judge the host's bytes after small models' last calls. A moment has 5 to 12 values here."""
    for model, report in zip(models, said, strict=True):
        state_bytes = 2 * sum(array.nbytes for array in model["parameters"])
        live, expected = report.get("host_bytes"), _moment_bytes(model)
        if type(live) is not int:
            return Finding(False, "The answers came back garbled.")
        if live == expected:
            continue
        text = f"After the last step on float64 values, expected {expected:,} bytes on the host, "
        explains = {
            "made_too_early": live == state_bytes,
            "made_without_gradient": live == state_bytes,
            "puts_again": live > state_bytes,
            "nothing_on_the_host": live == 0,
            "gradients_too": 2 * live == 3 * expected,
            "small_ones_stay": 0 <= live < expected,
        }
        mistakes = tuple(name for name, fits in explains.items() if fits)
        return Finding(False, f"{text}but got {live:,}.", mistakes)
    return Finding(True)


def _moment_bytes(model: Model) -> int:
    """The bytes of the moments of all parameters that ever had a gradient."""
    calls = [gradients_of(model, call) for call in range(calls_of(model))]
    had = [any(given is not None for given in column) for column in zip(*calls, strict=True)]
    pairs = zip(model["parameters"], had, strict=True)
    return 2 * sum(int(array.nbytes) for array, some in pairs if some)


def _are_narrow(models: Sequence[Model], said: Any) -> bool:
    """Tell whether the host holds half the bytes expected for moments of float64 parameters."""
    live = [report.get("host_bytes") for report in said]
    return bool(live == [_moment_bytes(model) // 2 for model in models])


def _host(value: Mapping[str, Any], large: Mapping[str, Any]) -> Finding:
    live, expected = value.get("live_bytes"), _host_bytes(large)
    if not isinstance(live, list) or len(live) != 3 or any(type(x) is not int for x in live):
        return Finding(False, "The answers came back garbled.")
    if live == expected:
        return Finding(True)
    state_bytes = 2 * _bytes_of(large)
    late = " Some parameters have no gradient at first." if "skipped" in large else ""
    said = (
        f"For {state_bytes // 8:,} float32 parameters: expected {expected} "
        f"bytes on the host before the first step and after the first two, but got {live}.{late}"
    )
    explains = {
        "made_too_early": live[0] == state_bytes,
        "made_without_gradient": live[1] == live[2] == state_bytes,
        "puts_again": live[2] > expected[2] and live[2] > live[1] > 0,
        "nothing_on_the_host": live[1] == 0,
        "gradients_too": [2 * count for count in live] == [3 * count for count in expected],
        "wide_moments": _are_wide(live, expected),
    }
    return Finding(False, said, tuple(name for name, made in explains.items() if made))


def _are_wide(live: Any, expected: Sequence[int]) -> bool:
    """Tell whether the host holds twice the bytes expected for moments of the parameters' dtype."""
    return bool(live == [2 * count for count in expected])


_OTHER_STEPS = "On large vectors the steps differ from Adam's."
_KEPT = "After a step the device held more than the parameters and their gradients."
_RISE = (
    "During a step the device held more than parameters, gradients and 4 times the largest "
    "parameter."
)

offloaded_adam = Task(
    id="lab06-offloaded_adam",
    parts={_EQUAL: 2, _DEVICE: 1, _HOST: 1},
    defines=("OffloadedAdam",),
    probe="offloaded_adam",
    cases=_cases,
    judge=_judge,
    trust="measured",
    ban=replace(
        NO_TORCH_OPTIM,
        names=NO_TORCH_OPTIM.names | NO_METER_TAMPERING.names,
        modules=NO_TORCH_OPTIM.modules | NO_METER_TAMPERING.modules,
    ),
    mistakes={
        "keeps_on_the_device": "Your optimizer keeps tensors on the device between steps. Keep "
        "only handles: `get` returns a new tensor on the device, so free it after use.",
        "all_moments_at_once": "Your step has all parameters' moments on the device at once. "
        "Fetch one parameter's moments, use them, write them back, then continue with the next "
        "parameter.",
        "temporaries": "Your step makes too many tensors of a parameter's size at once. Work in "
        "place: m.mul_(beta1).add_(grad, alpha=1 - beta1) makes no new tensor.",
        "zero_grad_does_nothing": "After zero_grad() the old gradients still exist. Set each "
        "param.grad to None.",
        "made_too_early": "You make the moments when you create the optimizer. Make a parameter's "
        "moments in its first step: a parameter that never gets a gradient needs none.",
        "made_without_gradient": "Your step makes moments for parameters without a gradient. Make "
        "a parameter's moments in the first step in which it has a gradient.",
        "puts_again": "Each of your steps puts new moments on the host and leaves the old ones "
        "there. Overwrite them with host.write(handle, tensor).",
        "small_ones_stay": "Moments of small parameters never reach the host. All moments belong "
        "there.",
        "nothing_on_the_host": "Nothing is on the host after a step. Put m and v there, and keep "
        "their handles.",
        "gradients_too": "Your host holds 1.5 times the bytes of the two moments. Put only m and "
        "v there.",
        "wide_moments": "Your moments take twice the bytes of the parameters. Give them the "
        "parameter's dtype, as torch.zeros_like(param) does.",
        "narrow_moments": "Your moments take half the bytes of the parameters, so they are "
        "rounded. Give them the parameter's dtype, as torch.zeros_like(param) does.",
        "params_used_up": "Your optimizer moves no parameter after its first step. `params` may "
        "be a generator, like model.parameters(), which can be iterated only once: keep "
        "list(params).",
        "not_written_back": "Your moments are zero again in each step: `get` returns a copy, so "
        "write the new values back with host.write(handle, tensor).",
        "m_not_written_back": "Your m is zero again in each step, while v lasts. Write both back.",
        "v_not_written_back": "Your v is zero again in each step, while m lasts. Write both back.",
        **MISTAKES,
    },
)
