"""step_timeline: live bytes from event to event in float32 training with Adam."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.compare import are_outcomes, by_reference, same, show
from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding, Task

__all__ = ["step_timeline"]

_FREE, _ZERO = "zero_grad(set_to_none=True)", "zero_grad(set_to_none=False)"


@dataclass
class _Live:
    """The live bytes other than parameters, and the two sizes that determine them."""

    parameters: int
    one_forward: int
    activations: int = 0
    gradients: int = 0
    state: int = 0

    def after(self, event: str) -> int:
        """Let an event happen, and return the bytes live after it."""
        if event == "forward":
            self.activations += self.one_forward
        elif event == "backward":
            self.backward()
        elif event == "step":
            self.step()
        elif event == _FREE:
            self.free()
        elif event == _ZERO:
            self.zero()
        return self.live()

    def backward(self) -> None:
        self.activations -= self.one_forward
        self.gradients = self.parameters

    def step(self) -> None:
        if self.gradients:
            self.state = 2 * self.parameters

    def free(self) -> None:
        self.gradients = 0

    def zero(self) -> None:
        pass

    def live(self) -> int:
        return self.parameters + self.activations + self.gradients + self.state


class _GradientsPileUp(_Live):
    def backward(self) -> None:
        self.activations -= self.one_forward
        self.gradients += self.parameters


class _ActivationsStay(_Live):
    def backward(self) -> None:
        self.gradients = self.parameters


class _AllActivationsFreed(_Live):
    def backward(self) -> None:
        self.activations = 0
        self.gradients = self.parameters


class _OneMoment(_Live):
    def step(self) -> None:
        if self.gradients:
            self.state = self.parameters


class _StateEachStep(_Live):
    def step(self) -> None:
        if self.gradients:
            self.state += 2 * self.parameters


class _StateFromTheStart(_Live):
    def live(self) -> int:
        return 3 * self.parameters + self.activations + self.gradients


class _StateWithoutGradients(_Live):
    def step(self) -> None:
        self.state = 2 * self.parameters


class _StepFreesGradients(_Live):
    def step(self) -> None:
        super().step()
        self.gradients = 0


class _ZeroFrees(_Live):
    def zero(self) -> None:
        self.gradients = 0


class _ZeroMakes(_Live):
    def zero(self) -> None:
        self.gradients = self.parameters


class _NothingFreesGradients(_Live):
    def free(self) -> None:
        pass


class _StateFreedToo(_Live):
    def free(self) -> None:
        self.gradients = self.state = 0


class _ParametersForgotten(_Live):
    def live(self) -> int:
        return super().live() - self.parameters


def _timeline(of: type[_Live]) -> Callable[[int, int, Sequence[str]], list[int]]:
    def timeline(param_bytes: int, activation_bytes: int, events: Sequence[str]) -> list[int]:
        live = of(param_bytes, activation_bytes)
        return [live.after(event) for event in events]

    return timeline


def _before(param_bytes: int, activation_bytes: int, events: Sequence[str]) -> list[int]:
    """The live bytes just before each event."""
    after = _timeline(_Live)(param_bytes, activation_bytes, events)
    return [param_bytes, *after][: len(events)]


def _cases(rng: np.random.Generator) -> list[Case]:
    def sizes() -> list[Any]:
        """Small sizes, chosen so that no small multiples of the two are equal."""
        while True:
            parameters, activations = (int(n) for n in rng.integers(10, 90, 2))
            ratios = {Fraction(a, b) for a in range(1, 8) for b in range(1, 8)}
            if Fraction(parameters, activations) not in ratios:
                return [parameters, activations]

    once = ["forward", "backward", "step", _FREE]
    zeroing = ["forward", "backward", "step", _ZERO]
    gathered = ["forward", "backward"] * 3 + ["step", _FREE]
    both = ["forward", "forward", "backward", "backward", "step"]
    early = ["step", _ZERO, "forward", _FREE, "step", "backward", "step", _FREE, "step", _ZERO]
    drawn = [[*sizes(), _draw(rng)] for _ in range(6)]
    freed = [*sizes(), ["forward", "backward", _FREE, "step", "forward"]]
    zeros = [*sizes(), ["forward", "backward", _ZERO, "step", _FREE]]
    between = [*sizes(), ["forward", "forward", "backward", "step", "backward"]]
    light = [[*sizes()[:1], 0, events] for events in (once, early)]  # activations of 0 bytes
    parameters, activations = sizes()
    others = {0: parameters + activations, 1: activations + parameters // 2, 2: both}
    alike = one_at_a_time([parameters, activations, once], others)
    return [
        Case(("value",), {"calls": [[*sizes(), 2 * once], [*sizes(), 3 * once]]}),
        *(
            Case(("value",), {"calls": [[*sizes(), events]]})
            for events in (2 * zeroing, 2 * gathered)
        ),
        *(Case(("value",), {"calls": [[*sizes(), 2 * events]]}) for events in (both, early)),
        Case(("value",), {"calls": light}),
        Case(
            ("value",),
            {"calls": [*drawn, freed, zeros, between, [*sizes(), []], *alike]},
            fixed=True,
        ),
    ]


_SHOWN = 4  # events shown before the one that differs


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    found = _compared(case, answer)
    said = _first_difference(case.inputs["calls"], answer.value)
    return {
        part: replace(one, said=said) if said and not one.ok and one != NOT_WRITTEN else one
        for part, one in found.items()
    }


def _first_difference(calls: Sequence[Sequence[Any]], outcomes: Any) -> str:
    """A sentence on the first wrong entry of a list of the right length; "" if none is wrong."""
    if not are_outcomes(outcomes, len(calls)):
        return ""
    for call, outcome in zip(calls, outcomes, strict=True):
        expected = _timeline(_Live)(*call)
        if outcome[0] != "value":
            return ""
        got = outcome[1].tolist() if isinstance(outcome[1], np.ndarray) else outcome[1]
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            return ""
        for step, (right, wrong) in enumerate(zip(expected, got, strict=True)):
            if not same(right, wrong):
                return _said(call, step, right, wrong)
    return ""


def _said(call: Sequence[Any], step: int, right: int, wrong: Any) -> str:
    parameters, activations, events = call
    before = ", ".join(events[max(0, step - _SHOWN) : step])
    after = f" (after {'..., ' if step > _SHOWN else ''}{before})" if before else ""
    return (
        f"P = {parameters}, A = {activations}: your list first differs at event {step + 1}, "
        f"{events[step]}{after}. Expected {right}, but got {show(wrong)}."
    )


def _draw(rng: np.random.Generator) -> list[str]:
    """Events in any order such that each backward follows a forward."""
    events: list[str] = []
    waiting = 0
    for _ in range(30):
        allowed = ["forward", "step", _FREE, _ZERO] + ["backward"] * 3 * bool(waiting)
        event = str(rng.choice(allowed))
        waiting += (event == "forward") - (event == "backward")
        events.append(event)
    return events


_compared = by_reference(
    _timeline(_Live),
    {
        "gradients_pile_up": _timeline(_GradientsPileUp),
        "activations_stay": _timeline(_ActivationsStay),
        "all_activations_freed": _timeline(_AllActivationsFreed),
        "one_moment": _timeline(_OneMoment),
        "state_each_step": _timeline(_StateEachStep),
        "state_from_the_start": _timeline(_StateFromTheStart),
        "state_without_gradients": _timeline(_StateWithoutGradients),
        "step_frees_gradients": _timeline(_StepFreesGradients),
        "zeroing_frees": _timeline(_ZeroFrees),
        "zeroing_makes": _timeline(_ZeroMakes),
        "gradients_never_freed": _timeline(_NothingFreesGradients),
        "state_freed_too": _timeline(_StateFreedToo),
        "parameters_forgotten": _timeline(_ParametersForgotten),
        "before_the_event": _before,
    },
    write=lambda p, a, events: f"step_timeline({p}, {a}, {events})",
)

step_timeline = Task(
    id="lab03-step_timeline",
    parts={"value": 2},
    defines=("step_timeline",),
    probe="step_timeline",
    cases=_cases,
    judge=_judge,
    mistakes={
        "before_the_event": "You record the bytes before each event. Apply the event first, then "
        "record the bytes.",
        "gradients_pile_up": "In your timeline each backward makes new gradients. If there are "
        "gradients already, backward adds to them in place: P in total.",
        "activations_stay": "In your timeline a backward frees no activations. It frees one "
        "forward's activations.",
        "all_activations_freed": "In your timeline a backward frees the activations of all "
        "forwards. It frees one forward's activations.",
        "one_moment": "Your Adam keeps one moment, P bytes. It has two: 2P.",
        "state_each_step": "In your timeline every step makes new moments. The first step with "
        "gradients makes them; later steps update them in place.",
        "state_from_the_start": "In your timeline the moments exist from the start. The first "
        "step with gradients makes them.",
        "state_without_gradients": "In your timeline a step without gradients makes the moments. "
        "It does nothing.",
        "step_frees_gradients": "In your timeline the step frees the gradients. They live until "
        "zero_grad.",
        "zeroing_frees": "In your timeline zero_grad(set_to_none=False) frees the gradients. It "
        "writes zeros into them, and they stay.",
        "zeroing_makes": "In your timeline zero_grad(set_to_none=False) makes gradients if there "
        "are none. It changes nothing then.",
        "gradients_never_freed": "In your timeline zero_grad(set_to_none=True) frees nothing. It "
        "frees the gradients.",
        "state_freed_too": "In your timeline zero_grad also frees the moments. They stay for the "
        "rest of the training.",
        "parameters_forgotten": "Your timeline leaves out the parameters, P bytes at all times.",
    },
)
