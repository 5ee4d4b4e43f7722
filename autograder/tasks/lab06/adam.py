"""Exercise: Adam whose moments live on the host; results, device bytes and host bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.task import Answer, Case, Finding, Task
from autograder.tasks.lab03.adam import Model
from autograder.tasks.lab03.adam_step import MISTAKES, NO_TORCH_OPTIM, judge_models, path_cases
from autograder.tasks.lab03.paths import paths_in
from autograder.tasks.lab06.outside import NO_HIDING, OUTSIDE, hides
from peakmem.probes.lab03 import gradients_of

__all__ = ["offloaded_adam"]

_EQUAL, _DEVICE, _HOST = "equals Adam", "device bytes during step", "bytes on the host"
_COUNTS = ("rise_bytes", "numpy_rise_bytes", "kept_bytes")
_SLACK_BYTES = 64 * 1024


def _cases(rng: np.random.Generator) -> list[Case]:
    # Layouts in memory are lab 3's business: here every parameter is contiguous.
    small = [replace(case, parts=(_EQUAL,)) for case in path_cases(rng)]
    sizes = [int(n) for n in rng.integers(380_000, 420_000, 5)]
    return [*small, Case((_DEVICE, _HOST), {"sizes": sizes, "seed": int(rng.integers(2**32))})]


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
    value, parameter_bytes = answer.value, [4 * n for n in inputs["sizes"]]
    if not isinstance(value, dict) or any(type(value.get(name)) is not int for name in _COUNTS):
        return dict.fromkeys(case.parts, Finding(False, "The answers came back garbled."))
    if value.get("moved") is not True:
        still = Finding(False, "After two steps not every parameter had moved.", ("not_in_place",))
        return dict.fromkeys(case.parts, still)
    return {
        _DEVICE: _device(value, parameter_bytes, answer),
        _HOST: _host(value, 2 * sum(parameter_bytes)),
    }


def _forgets(models: Sequence[Model], options: Mapping[str, Any], said: Any) -> bool:
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
            if not all(map(np.allclose, after, values)):
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


def _device(value: Mapping[str, Any], parameter_bytes: list[int], answer: Answer) -> Finding:
    if value.get("cleared") is not True:
        return Finding(False, "", ("zero_grad_does_nothing",))
    largest, state_bytes = max(parameter_bytes), 2 * sum(parameter_bytes)
    if value["kept_bytes"] > _SLACK_BYTES:
        # What the device holds between steps would have to be on the host instead.
        return Finding(False, _KEPT, ("keeps_on_the_device",))
    rise_bytes = value["rise_bytes"] + value["numpy_rise_bytes"]
    if rise_bytes > 4 * largest + _SLACK_BYTES:
        all_at_once = rise_bytes >= state_bytes
        return Finding(False, _RISE, ("all_moments_at_once",) if all_at_once else ("temporaries",))
    if hides(answer, rise_bytes, 2 * state_bytes):  # some write more than both moments
        return Finding(False, doubt=OUTSIDE)
    return Finding(True)


def _host(value: Mapping[str, Any], state_bytes: int) -> Finding:
    live = value.get("live_bytes")
    if live == [0, state_bytes, state_bytes]:
        return Finding(True)
    if not isinstance(live, list) or len(live) != 3 or any(type(x) is not int for x in live):
        return Finding(False, "The answers came back garbled.")
    said = (
        f"For {state_bytes // 8:,} float32 parameters: expected {[0, state_bytes, state_bytes]} "
        f"bytes on the host before the first step and after the first two, but got {live}."
    )
    explains = {
        "made_too_early": live[0] == state_bytes,
        "puts_again": live[2] > live[1] > 0,
        "nothing_on_the_host": live[1] == 0,
        "freed_after_the_step": live[1] == 0 and value["kept_bytes"] <= _SLACK_BYTES,
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
        "gradients_too": "Your host holds 12 bytes a parameter: more than the two moments.",
        "params_used_up": "Your optimizer moves nothing after its first step. `params` may be a "
        "generator, as model.parameters() is, which can be gone through once: keep list(params).",
        "not_written_back": "Your moments are zero again in each step: what `get` gives is a "
        "copy, so write the new values back with host.write(handle, tensor).",
        **MISTAKES,
    },
)
