"""Exercise: Adam whose moments live on the host; results, device bytes and host bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.content.lab03.adam import Model
from autograder.content.lab03.adam_step import MISTAKES, NO_TORCH_OPTIM, judge_models, path_cases
from autograder.content.lab03.lean_adam_step import (
    FLOAT32_TOLERANCE,
    SLACK_BYTES,
    watched_model,
    watched_places,
)
from autograder.content.lab03.paths import paths_in
from autograder.content.lab06.hiding import NO_HIDING
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab03 import gradients_of

__all__ = ["offloaded_adam"]

_EQUAL, _DEVICE, _HOST = "equals Adam", "device bytes during step", "bytes on the host"
_SLACK_BYTES = 64 * 1024
_EXPLAINS_NO_STEP = {"not_in_place", "state_outside", "flat_copies"}
_LARGE_OPTIONS = {"lr": 0.1}  # far enough in one step for float32


def _cases(rng: np.random.Generator) -> list[Case]:
    # Layouts in memory are lab 3's business: here every parameter is contiguous.
    small = [replace(case, parts=(_EQUAL,)) for case in path_cases(rng)]
    return [*small, _large(rng)]


def _large(rng: np.random.Generator) -> Case:
    """Vectors of which all moments are far more than the device may hold; two have one size."""
    sizes = [int(n) for n in rng.integers(380_000, 420_000, 9)]
    sizes.append(sizes[2])
    large = {
        "shapes": [[n] for n in sizes],
        "seed": int(rng.integers(2**32)),
        "factors": [1.0, -0.5],
        "watched": [watched_places(rng, n) for n in sizes],
    }
    most_bytes = 2 * _bytes_of(large) + _most_bytes(large) + SLACK_BYTES
    budget = Budget(most_bytes, window_bytes=4 * max(sizes), files=True)
    return Case((_DEVICE, _HOST), {"large": large, "options": _LARGE_OPTIONS}, budget=budget)


def _bytes_of(large: Mapping[str, Any]) -> int:
    return 4 * sum(int(n) for (n,) in large["shapes"])


def _most_bytes(large: Mapping[str, Any]) -> int:
    """What the device may hold beside parameters and gradients: the moments of one, and as much."""
    return 4 * 4 * max(int(n) for (n,) in large["shapes"]) + _SLACK_BYTES


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    inputs = case.inputs
    if "models" in inputs:
        finding = judge_models(inputs["models"], inputs["options"], answer.value)
        if finding.said:
            if _forgets(inputs["models"], inputs["options"], answer.value):
                finding = replace(finding, mistakes=("not_written_back",))
            elif _stops_after_one(inputs["models"], answer.value):
                finding = replace(finding, mistakes=("params_used_up",))
        return {_EQUAL: finding}
    value, large = answer.value if isinstance(answer.value, dict) else {}, inputs["large"]
    if not _steps_like_adam(large, value.get("models")):
        other = Finding(False, "On large vectors the steps are not those of your small ones.")
        return dict.fromkeys(case.parts, other)
    return {_DEVICE: _device(large, value, answer), _HOST: _host(value, 2 * _bytes_of(large))}


def _steps_like_adam(large: Mapping[str, Any], said: Any) -> bool:
    """Tell whether the measured steps are Adam's, or such as the other part judges for itself."""
    models = [watched_model(large)]
    finding = judge_models(models, _LARGE_OPTIONS, said, FLOAT32_TOLERANCE)
    return (
        finding.ok
        or bool({*finding.mistakes} - _EXPLAINS_NO_STEP)
        or _forgets(models, _LARGE_OPTIONS, said, FLOAT32_TOLERANCE)
        or (_stops_after_one(models, said) and _steps_like_adam(*_first_step_only(large, said)))
    )


def _first_step_only(large: Mapping[str, Any], said: Any) -> tuple[dict[str, Any], Any]:
    first = [{**one, "parameters": [rows[:1] for rows in one["parameters"]]} for one in said]
    return {**large, "factors": large["factors"][:1]}, first


def _forgets(
    models: Sequence[Model], options: Mapping[str, Any], said: Any, tolerance: float = 1e-8
) -> bool:
    """Tell whether the steps are Adam's with moments that are zero before each of them."""
    got = paths_in(models, said)
    if got is None:
        return False
    (beta1, beta2), lr = options.get("betas", (0.9, 0.999)), options.get("lr", 1e-3)
    for model, path in zip(models, got, strict=True):
        values, counts = list(model["parameters"]), [0] * len(model["parameters"])
        for call, after in enumerate(path):
            for i, gradient in enumerate(gradients_of(model, call)):
                if gradient is not None:
                    counts[i] += 1
                    first = (1 - beta1) / (1 - beta1 ** counts[i]) * gradient
                    root = np.sqrt((1 - beta2) / (1 - beta2 ** counts[i])) * np.abs(gradient)
                    values[i] = values[i] - lr * first / (root + options.get("eps", 1e-8))
            pairs = zip(after, values, strict=True)
            if not all(np.allclose(a, b, rtol=1e-5, atol=tolerance) for a, b in pairs):
                return False
    return True


def _stops_after_one(models: Sequence[Model], said: Any) -> bool:
    """Tell whether the first step moved something, and no later one anything."""
    got = paths_in(models, said)
    if got is None or all(len(path) == 1 for path in got):
        return False
    return all(
        not all(map(np.array_equal, path[0], model["parameters"]))
        and all(map(np.array_equal, path[0], path[-1]))
        for model, path in zip(models, got, strict=True)
    )


def _device(large: Mapping[str, Any], value: Mapping[str, Any], answer: Answer) -> Finding:
    if value.get("cleared") is not True:
        return Finding(False, "", ("zero_grad_does_nothing",))
    rise_bytes = answer.metered("rise_bytes", "numpy_rise_bytes")
    keeps = (answer.metered("kept_bytes") or 0) > _SLACK_BYTES
    too_much = answer.breaks_budget(rise_bytes, _most_bytes(large))
    if not too_much and not (keeps and not answer.memory):
        return Finding(True)
    if keeps:
        # What the device holds between steps would have to be on the host instead.
        live = value.get("live_bytes")
        nowhere = isinstance(live, list) and not any(type(x) is not int or x for x in live)
        return Finding(False, _KEPT, ("nothing_on_the_host" if nowhere else "keeps_on_the_device",))
    all_at_once = (rise_bytes or 0) >= 2 * _bytes_of(large)
    return Finding(False, _RISE, ("all_moments_at_once",) if all_at_once else ("temporaries",))


def _host(value: Mapping[str, Any], state_bytes: int) -> Finding:
    live = value.get("live_bytes")
    if not isinstance(live, list) or len(live) != 3 or any(type(x) is not int for x in live):
        return Finding(False, "The answers came back garbled.")
    if live == [0, state_bytes, state_bytes]:
        return Finding(True)
    said = (
        f"For {state_bytes // 8:,} float32 parameters: expected {[0, state_bytes, state_bytes]} "
        f"bytes on the host before the first step and after the first two, but got {live}."
    )
    explains = {
        "made_too_early": live[0] == state_bytes,
        "puts_again": live[2] > live[1] > 0,
        "nothing_on_the_host": live[1] == 0,
        "gradients_too": live[1] == live[2] == state_bytes * 3 // 2,
    }
    return Finding(False, said, tuple(name for name, made in explains.items() if made))


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
        names=NO_TORCH_OPTIM.names | NO_HIDING.names,
        modules=NO_TORCH_OPTIM.modules | NO_HIDING.modules,
    ),
    mistakes={
        "keeps_on_the_device": "Your optimizer keeps tensors on the device between steps. Keep "
        "handles only: what `get` gave is a new tensor on the device, so let it go after use.",
        "all_moments_at_once": "Your step has the moments of all parameters on the device at "
        "once. Bring those of one parameter, use them, write them back, then go on to the next.",
        "temporaries": "Your step makes too many tensors of a parameter's size at once. Work in "
        "place: m.mul_(beta1).add_(grad, alpha=1 - beta1) makes none.",
        "zero_grad_does_nothing": "After zero_grad() the old gradients are still there. Set each "
        "param.grad to None.",
        "made_too_early": "Your moments are made with the optimizer. Make them in the first step "
        "that a parameter takes: one that never gets a gradient needs none.",
        "puts_again": "Each step of yours puts new moments on the host and leaves the old ones "
        "there. Overwrite them with host.write(handle, tensor).",
        "nothing_on_the_host": "Nothing is on the host after a step. m and v live there, each "
        "under a handle.",
        "gradients_too": "Your host holds 12 bytes per parameter: more than the two moments.",
        "params_used_up": "Your optimizer moves nothing after its first step. `params` may be a "
        "generator, as model.parameters() is, which can be gone through once: keep list(params).",
        "not_written_back": "Your moments are zero again in each step: what `get` gives is a "
        "copy, so write the new values back with host.write(handle, tensor).",
        **MISTAKES,
    },
)
