"""Exercise: a class that scales the loss, so that small gradients survive float16.

Long because the exercise's cases, a correct scaler's steps in them, and the message for each
mistake belong together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autograder.content.lab07.master_weights import AUTOCASTS
from autograder.content.lab07.scalers import MUTANTS, TorchScaler
from autograder.model.compare import show
from autograder.model.restrictions import Ban
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes import lab07 as probes

__all__ = ["loss_scaler"]

_TRAJECTORY, _SKIPS, _UNSCALE = "trajectory", "skipped steps", "unscale before clipping"
_SHAPE = (2, 3, 1)  # values of each parameter

Gradients = list[list[list[float]]]  # indexed by step, parameter and value


def _cases(rng: np.random.Generator) -> list[Case]:
    trained = [_trained(rng, int(rng.integers(2, 4))), _trained(rng, int(rng.integers(4, 6)))]
    clipped = [_clipped(rng), _mixed(rng), _counted(rng)]
    return [*trained, *clipped, *_defaults(rng), *_fixed()]


def _trained(rng: np.random.Generator, interval: int) -> Case:
    """Steps with two overflows, each of which cuts a run of good steps short."""
    good = [1, interval - 1, 2 * interval + 1]
    rng.shuffle(good)
    overflows = [math.inf, math.nan]
    rng.shuffle(overflows)
    steps: Gradients = []
    for count, overflow in zip(good, [*overflows, None], strict=True):
        steps += [_finite(rng) for _ in range(count)]
        steps += [] if overflow is None else [_spoiled(rng, overflow)]
    inputs = {"settings": _settings(rng, interval), "gradients": steps}
    return Case((_TRAJECTORY, _SKIPS), inputs)


def _clipped(rng: np.random.Generator) -> Case:
    # Every parameter overflows; other cases find out whether a scaler checks all of them.
    overflow = [[math.inf, *values[1:]] for values in _finite(rng)]
    steps = [_finite(rng), _finite(rng), overflow, _finite(rng)]
    settings = _settings(rng, interval=2)
    return Case((_UNSCALE,), {"settings": settings, "gradients": steps, "max_norm": 1.0})


def _mixed(rng: np.random.Generator) -> Case:
    """Some steps call unscale_ and some don't; the overflow comes before the first that does."""
    steps = [_finite(rng) for _ in range(6)]
    steps.insert(1, [[math.inf, *values[1:]] for values in _finite(rng)])
    clipped = [False, False, True, False, True, True, False]
    inputs = {"settings": _settings(rng, interval=3), "gradients": steps, "max_norm": 1.0}
    return Case((_UNSCALE,), {**inputs, "clipped": clipped})


def _counted(rng: np.random.Generator) -> Case:
    """Good steps, some of which call unscale_; all of them must count."""
    clipped = [False, True, True, False, True]
    inputs = {"settings": _settings(rng, interval=2), "gradients": [_finite(rng) for _ in clipped]}
    return Case((_TRAJECTORY,), {**inputs, "max_norm": 1.0, "clipped": clipped})


def _defaults(rng: np.random.Generator) -> list[Case]:
    """Growth, backoff and interval keep their defaults; step 2000 is the last."""
    steps = [_finite(rng), _finite(rng), _spoiled(rng, math.inf), _finite(rng)]
    given = {"initial": 2.0 ** int(rng.integers(3, 15)), "interval": 2}
    late = [_finite(rng) for _ in range(2)]
    return [
        Case((_TRAJECTORY, _SKIPS), {"settings": given, "gradients": steps}),
        # The earlier steps belong to another optimizer.
        Case((_TRAJECTORY, _SKIPS), {"settings": {}, "gradients": late, "good_steps": 1998}),
    ]


def _fixed() -> list[Case]:
    """Corner cases: an overflow in each place alone, growth at every step, the defaults."""

    def case(about: str, settings: dict[str, float], *steps: list[list[float]]) -> Case:
        inputs = {"settings": settings, "gradients": list(steps)}
        return Case((_TRAJECTORY, _SKIPS), inputs, fixed=True, about=about)

    good = [[0.5, -1.0], [2.0, 0.25, -0.5], [1.5]]
    spoiled = [
        [[value if (p, i) == at else 1.0 for i in range(n)] for p, n in enumerate(_SHAPE)]
        for value, at in [(math.nan, (0, 1)), (-math.inf, (1, 2)), (math.inf, (2, 0))]
    ]
    every_step = {"initial": 4.0, "growth": 2.0, "backoff": 0.25, "interval": 1}
    return [
        case(
            "one value of one gradient overflows, and the scale grows after every good step.",
            every_step,
            *(good, good, spoiled[0], good, spoiled[1], spoiled[2], good),
        ),
        case("the settings are the defaults.", {}, good, spoiled[2], good),
        case(
            "the scale and the gradients are large, but finite. The scale has no upper limit.",
            {"initial": 2.0**24, "interval": 1},
            *([[2.0**17, -1.0], *good[1:]], good),
        ),
        case(
            "gradients overflow at a tiny scale. The scale has no lower limit.",
            {"initial": 2.0**-20},
            *(spoiled[2], good, spoiled[0], good),
        ),
    ]


def _settings(rng: np.random.Generator, interval: int) -> dict[str, float]:
    return {
        "initial": 2.0 ** int(rng.integers(3, 16)),
        "growth": float(rng.choice([1.5, 4.0])),  # the defaults have their own cases
        "backoff": float(rng.choice([0.25, 0.75])),
        "interval": interval,
    }


def _finite(rng: np.random.Generator) -> list[list[float]]:
    # Quarters are exact in float32, scaled or not. None is 0, so every step moves every value.
    return [
        [float(rng.choice([-1, 1]) * rng.integers(2, 13) / 4) for _ in range(n)] for n in _SHAPE
    ]


def _spoiled(rng: np.random.Generator, value: float) -> list[list[float]]:
    gradients = _finite(rng)
    parameter = int(rng.integers(len(_SHAPE)))
    gradients[parameter][int(rng.integers(_SHAPE[parameter]))] = value
    return gradients


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    """Compare with the same steps under torch's own scaler, part by part."""
    expected = _run(TorchScaler, case)
    findings: dict[str, Finding] = {}
    mutants: dict[str, list[dict[str, Any]]] = {}
    for part in case.parts:
        if answer.value == "changed":
            said = "Afterwards the loss itself had changed."
            findings[part] = Finding(False, said, ("changes_the_loss",))
        elif not _readable(answer.value, len(expected)):
            findings[part] = Finding(False, "The steps' records came back garbled.")
        elif _agree(part, expected, answer.value):
            findings[part] = Finding(True)
        else:
            mutants = mutants or {name: _run(mutant, case) for name, mutant in MUTANTS.items()}
            alike = [name for name, run in mutants.items() if _agree(part, run, answer.value)]
            said = _SAY[part](case, expected, answer.value)
            findings[part] = Finding(False, f"{_situation(case)} {said}", tuple(alike))
    return findings


def _run(scaler: type, case: Case) -> list[dict[str, Any]]:
    inputs = dict(case.inputs)
    good_steps = inputs.pop("good_steps", 0)

    def made(**settings: float) -> Any:
        made = scaler(**settings)
        made.begin_after(good_steps)
        return made

    steps = probes.train_scaled(made, **inputs)
    if isinstance(steps, str):
        raise TypeError(f"{scaler.__name__} changes the loss, which no scaler here may do")
    return steps


def _readable(steps: Any, count: int) -> bool:
    def numbers(values: Any) -> bool:
        return (
            isinstance(values, list)
            and len(values) == sum(_SHAPE)
            and all(type(value) is float for value in values)
        )

    return (
        isinstance(steps, list)
        and len(steps) == count
        and all(isinstance(step, dict) for step in steps)
        and all(type(step.get(name)) is float for step in steps for name in ("before", "scale"))
        and all(type(step.get("calls")) is int for step in steps)
        and all(type(step.get("left")) is bool for step in steps)
        and all(numbers(step.get("parameters")) for step in steps)
        and all(step.get("unscaled") is None or numbers(step["unscaled"]) for step in steps)
    )


def _agree(part: str, expected: Sequence[Any], got: Sequence[Any]) -> bool:
    return all(_agree_in_step(part, e, g) for e, g in zip(expected, got, strict=True))


def _agree_in_step(part: str, expected: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    if part == _TRAJECTORY:
        return all(_close(expected[name], got[name]) for name in ("before", "scale"))
    if part == _SKIPS and any(expected[name] != got[name] for name in ("calls", "left")):
        return False
    if part == _UNSCALE and not _same_unscaled(expected["unscaled"], got["unscaled"]):
        return False
    return _close(expected["parameters"], got["parameters"])


def _same_unscaled(expected: Any, got: Any) -> bool:
    """Tell whether unscaled gradients agree; without a call of unscale_ there are none."""
    return got is None if expected is None else _close(expected, got)


def _close(expected: Any, got: Any) -> bool:
    """Equal up to float32 rounding, because a scale of 1.5 has no exact reciprocal."""
    if got is None:
        return False
    left: npt.NDArray[Any] = np.asarray(expected)
    return bool(np.allclose(left, np.asarray(got), rtol=1e-4, atol=1e-6, equal_nan=True))


def _situation(case: Case) -> str:
    settings = ", ".join(f"{name}={value:g}" for name, value in case.inputs["settings"].items())
    kinds = ", ".join(_kind(step) for step in case.inputs["gradients"])
    earlier = case.inputs.get("good_steps", 0)
    after = f", after {earlier} good steps" if earlier else ""
    return f"With LossScaler({settings}){after} and gradients that are, step by step, {kinds}:"


def _kind(step: Sequence[Sequence[float]]) -> str:
    values = [value for parameter in step for value in parameter]
    if any(math.isnan(value) for value in values):
        return "NaN"
    return "inf" if any(math.isinf(value) for value in values) else "finite"


def _say_trajectory(case: Case, expected: Sequence[Any], got: Sequence[Any]) -> str:
    """All scales: the pattern shows in the whole sequence, not in any single one."""
    right, yours = ([step["scale"] for step in steps] for steps in (expected, got))
    if _close(right, yours):
        return "your scale changes before update() is called. Only update() changes it."
    return f"expected the scales {_list(right)} after update(), but got {_list(yours)}."


def _say_skips(case: Case, expected: Sequence[Any], got: Sequence[Any]) -> str:
    index = _first_difference(_SKIPS, expected, got)
    kind = _kind(case.inputs["gradients"][index])
    if not got[index]["left"]:
        return f"a parameter without a gradient has one after step {index + 1}."
    before = got[index - 1]["parameters"] if index else [1.0] * sum(_SHAPE)
    right, yours = expected[index]["parameters"], got[index]["parameters"]
    if kind != "finite":
        what = "optimizer.step() was called" if _close(before, yours) else "the parameters changed"
        return f"expected step {index + 1} ({kind}) to be skipped, but {what}."
    if _close(before, yours):
        return f"expected step {index + 1} ({kind}) to be taken, but the parameters stayed."
    return (
        f"expected the parameters {_list(right)} after step {index + 1}, but got {_list(yours)}. "
        "The optimizer has to see the true gradients, divided by the scale."
    )


def _say_unscale(case: Case, expected: Sequence[Any], got: Sequence[Any]) -> str:
    index = _first_difference(_UNSCALE, expected, got)
    right, yours = expected[index], got[index]
    if not _same_unscaled(right["unscaled"], yours["unscaled"]):
        values = "none" if yours["unscaled"] is None else _list(yours["unscaled"])
        wanted = "none" if right["unscaled"] is None else _list(right["unscaled"])
        return (
            f"expected the gradients {wanted} after unscale_ in step {index + 1}, but got {values}."
        )
    return (
        f"expected the parameters {_list(right['parameters'])} after step {index + 1}, "
        f"{_clips(case, index)}, but got {_list(yours['parameters'])}."
    )


def _clips(case: Case, index: int) -> str:
    clipped = case.inputs.get("clipped")
    unscales = not clipped or clipped[index]
    return "with unscale_ and clipping to norm 1" if unscales else "without unscale_"


_SAY = {_TRAJECTORY: _say_trajectory, _SKIPS: _say_skips, _UNSCALE: _say_unscale}


def _first_difference(part: str, expected: Sequence[Any], got: Sequence[Any]) -> int:
    pairs = enumerate(zip(expected, got, strict=True))
    return next(index for index, (e, g) in pairs if not _agree_in_step(part, e, g))


def _list(values: Sequence[float]) -> str:
    return show([float(f"{value:.5g}") for value in values], limit=200)


# What torch's GradScaler calls.
_KERNELS = ("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_")

loss_scaler = Task(
    id="lab07-loss_scaler",
    parts={_TRAJECTORY: 2, _SKIPS: 2, _UNSCALE: 1},
    defines=("LossScaler",),
    probe="loss_scaler",
    cases=_cases,
    judge=_judge,
    ban=Ban(
        names=frozenset({"GradScaler", "autocast", *AUTOCASTS, *_KERNELS}),
        modules=frozenset({"torch.amp", "torch.autocast", "torch.cuda.amp"}),
        reason="This exercise asks you to write the scaler yourself: use tensors and the "
        "optimizer, not torch.amp.",
    ),
    mistakes={
        "shares_its_state": "Two of your scalers share their state: the newer one sets the older "
        "one's scale. Keep the state in self, not in the class or in a global variable.",
        "unscales_twice": "The gradients are divided by the scale twice: once in unscale_ and "
        "again in step. Remember that unscale_ was called, until update.",
        "unscales_only_in_step": "Your unscale_ doesn't change the gradients, so clipping sees "
        "scaled gradients. Divide in unscale_, and let step call it if the loop hasn't.",
        "step_does_not_unscale": "If unscale_ wasn't called first, your step passes scaled "
        "gradients to the optimizer. Unscale them in step.",
        "unscales_only_once": "You unscale only the first step's gradients. In update, reset the "
        "record that unscale_ was called: the next step has new gradients.",
        "never_forgets_unscale": "Once unscale_ has been called, your step never unscales again. "
        "In update, reset the record of that call: the loop may not call unscale_ in the next "
        "step.",
        "forgets_overflow_after_unscale": "After unscale_ is called, your step no longer knows "
        "that the gradients overflowed. Keep unscale_'s finding until update.",
        "changes_the_loss": "Your scale changes its argument. Return a new tensor, loss * scale: "
        "the loop may still need the loss.",
        "multiplies_by_scale": "unscale_ multiplies the gradients by the scale once more. The "
        "loss was multiplied, so divide the gradients.",
        "ignores_nan": "Your scaler looks for inf only. An overflow may also leave NaN (inf - "
        "inf), which must be skipped too.",
        "ignores_inf": "Your scaler looks for NaN only. An overflow leaves inf first.",
        "looks_at_the_loss": "Your scaler finds no overflow in the gradients. Look at every .grad, "
        "not at the loss: gradients overflow while the loss is still finite.",
        "last_gradient_decides": "In your loop over the gradients, only the last gradient "
        "decides. One inf or NaN anywhere spoils the whole step.",
        "first_group_only": "Your scaler looks only at the optimizer's first parameter group. Go "
        "through all of optimizer.param_groups.",
        "steps_anyway": "Your scale backs off, but the step is still taken, so inf or NaN gets "
        "into the parameters. Don't call optimizer.step() after an overflow.",
        "clears_instead_of_skipping": "After an overflow your scaler steps with cleared "
        "gradients. Momentum still moves the parameters: don't call optimizer.step() at all.",
        "skips_for_ever": "After one overflow you skip all later steps. Reset the record of the "
        "overflow in update.",
        "keeps_count_after_skip": "Your count of good steps continues after a skipped step. Only "
        "consecutive good steps count: reset the count to 0 after an overflow.",
        "keeps_count_after_growth": "Once your scale has grown, it grows at every step. Reset the "
        "count to 0 each time it grows.",
        "grows_early": "Your scale grows one step too early: `interval` good steps come first.",
        "grows_late": "Your scale grows one step too late: the update after good step number "
        "`interval` is the one that grows.",
        "never_backs_off": "Your scale doesn't shrink after an overflow, so the next step "
        "overflows as well. Multiply it by `backoff`.",
        "changes_before_update": "Your scale changes in step or in unscale_. Change it only in "
        "update: until then, the gradients have the old scale.",
        "backs_off_late": "Your scale backs off one update too late. It must back off in the "
        "update right after the skipped step.",
    },
)
