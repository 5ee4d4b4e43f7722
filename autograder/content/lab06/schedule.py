"""Exercise: a schedule of copies under a budget, judged by the simulator against the least time.

Every drawn problem can be solved within 5% by the methods that the lab suggests: choose a set of
stages, send each out after its forward, and bring them back in the order of need. An exhaustive
search (`search`) proves how long the best schedule takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.content.lab06.methods import best_set, fewest_bytes, first_ones, late
from autograder.content.lab06.search import TooHard, least_makespan, lower_bound
from autograder.model.compare import are_outcomes, raised_text, show
from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding, Task
from peakmem.core.errors import Infeasible
from peakmem.plan.swapping import Run, Stage, simulate

__all__ = ["after_a_small_one", "schedule"]

_FEASIBLE, _NEAR, _CLOSE = "feasible everywhere", "within 1.25x", "within 1.05x"
_PARTS = (_FEASIBLE, _NEAR, _CLOSE)
_ROUNDING = 1e-9
_FIGURES = ("forward_time", "backward_time", "saved_bytes")  # of a stage, as students know it

Problem = tuple[list[Stage], int, float]


def _chain(rng: np.random.Generator, n: int) -> Problem:
    """A random chain, with times and bytes whose sums are exact in any order."""
    stages = [
        Stage(
            forward_time=float(rng.integers(1, 13)) / 2,
            backward_time=float(rng.integers(2, 17)) / 2,
            saved_bytes=int(rng.integers(1, 13)) * 8,
        )
        for _ in range(n)
    ]
    total = sum(stage.saved_bytes for stage in stages)
    largest = max(stage.saved_bytes for stage in stages)
    budget = max(largest, int(rng.uniform(0.35, 0.8) * total))
    return stages, budget, float(rng.choice([8, 16, 32]))


def _solved(
    rng: np.random.Generator, n: int, slow: Callable[..., float], ratio: float
) -> tuple[Problem, float]:
    """Draw a chain on which the `slow` method takes over `ratio` times the least; return both.

    Swapping the leading stages takes at most 1.25 times the least, which earns all but the last
    points.
    """
    while True:
        problem = _chain(rng, n)
        slow_span = slow(*problem)
        if slow_span <= ratio * lower_bound(*problem):
            continue
        found = best_set(*problem)
        if slow_span <= ratio * found:
            continue
        try:
            least = least_makespan(*problem, known=found, most_states=20_000)
        except TooHard:
            continue
        if found <= 1.05 * least and first_ones(*problem) <= 1.25 * least:
            return problem, least


def _case(parts: tuple[str, ...], problem: Problem, least: float, *, about: str = "") -> Case:
    """A case; with `about`, the same one for everybody."""
    stages, budget, link = problem
    plain = [{name: getattr(stage, name) for name in _FIGURES} for stage in stages]
    return Case(
        parts,
        {"calls": [[plain, budget, link]]},
        secret={"least": least},
        fixed=bool(about),
        about=about,
    )


def after_a_small_one(case: Case) -> Case:
    """The same case after a chain of as many stages that fits under the same budget."""
    stages, *limits = case.inputs["calls"][0]
    small = [{**s, **{name: 1 for name in s if name.endswith("_bytes")}} for s in stages]
    return replace(case, inputs={**case.inputs, "before": [[small, *limits]]})


def _cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for n in (3, 4, 5, 6):
        problem, least = _solved(rng, n, late, 1.25)
        cases.append(_case(_PARTS[:2], problem, least))
    for n, way in ((4, first_ones), (4, first_ones), (5, fewest_bytes)):
        problem, least = _solved(rng, n, way, 1.1)
        cases.append(_case((_FEASIBLE, _CLOSE), problem, least))
    stages, _, link = _chain(rng, 8)
    total = sum(stage.saved_bytes for stage in stages)
    compute = sum(stage.forward_time + stage.backward_time for stage in stages)
    roomy = (stages, total, 1 / 16)  # no copy hides behind compute
    tight = (stages, max(stage.saved_bytes for stage in stages), link)
    slow = (stages, max(tight[1], total // 2), 1.0)
    too_small = (stages, tight[1] - 1, link)
    alone = ([Stage(1.0, 2.0, 24)], 24, 8.0)
    # One stage has to go. Sending out more never ends: backward overtakes the slow link.
    overtaken = ([Stage(1.0, 2.0, 8)] * 4, 31, 0.5)
    # The first stage has to go, and would come back into the room that the last one still needs.
    # In whole seconds all schedules are equal.
    short = 1 / 16
    room_for_the_last = ([Stage(short, short, 8 * size) for size in (1, 10, 10, 1)], 168, 256.0)
    cases[0] = after_a_small_one(cases[0])
    return [
        *cases,
        _case(_PARTS, roomy, compute),
        *(_case((_FEASIBLE,), problem, float("inf")) for problem in (tight, slow, too_small)),
        _case(_PARTS, alone, 3.0, about="there is a single stage, and it fits."),
        _case(_PARTS[:2], overtaken, 38.0, about="the link is slow, and a single stage has to go."),
        _case(
            _PARTS,
            room_for_the_last,
            8 * short,
            about="the last stages need the room that the first one would come back into, and all "
            "times are fractions of a second.",
        ),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    (plain, budget, link) = case.inputs["calls"][0]
    problem = [Stage(**stage) for stage in plain], budget, link
    findings = _findings(problem, case.secret["least"], answer.value)
    return {part: findings[part] for part in case.parts}


def _all(finding: Finding) -> dict[str, Finding]:
    return dict.fromkeys(_PARTS, finding)


def _findings(problem: Problem, least: float, outcomes: Any) -> Mapping[str, Finding]:
    if not are_outcomes(outcomes, 1):
        return _all(Finding(False, "The answer came back garbled."))
    kind, value = outcomes[0][:2]
    stages, budget, link = problem
    where = _where(problem)
    fits = max(stage.saved_bytes for stage in stages) <= budget
    if kind == "raised":
        if value == "NotImplementedError":
            return _all(NOT_WRITTEN)
        gives_up = value in ("ValueError", Infeasible.__name__)  # which is a ValueError
        if not fits and gives_up:
            return _all(Finding(True))
        said = f"{where} {raised_text(outcomes[0])}"
        said += ", although a schedule exists." if fits else ""
        return _all(Finding(False, said, ("gives_up",) if gives_up else ()))
    if kind == "changed":
        return _all(Finding(False, f"{where} your function changed the stages."))
    if not fits:
        said = f"{where} one stage alone exceeds the budget: expected a ValueError, but got "
        return _all(Finding(False, f"{said}{show(value)}.", ("no_value_error",)))
    if kind != "value" or not isinstance(value, (list, tuple)):
        return _all(Finding(False, f"{where} expected a list of copies, but got {show(value)}."))
    try:
        run = simulate(stages, budget, link, value)
    except (Infeasible, ValueError, TypeError, OverflowError) as error:
        said = f"{where} your schedule {show(value)}: {error}."
        return _all(Finding(False, said, tuple(_why(value, len(stages)))))
    return {_FEASIBLE: Finding(True), **_times(problem, run, least, value)}


def _times(problem: Problem, run: Run, least: float, copies: Any) -> Mapping[str, Finding]:
    said = (
        f"{_where(problem)} your schedule {show(copies)} takes {run.makespan:g}, and "
        f"{least:g} is possible."
    )
    mistakes = tuple(_why(copies, len(problem[0])))
    slow = Finding(False, said, mistakes)
    # These are said of all schedules that swap something, so one that doesn't do so refutes them.
    refuted = tuple(name for name in _OF_ALL if copies and name not in mistakes)
    good = Finding(True, refuted=refuted)
    limits = ((_NEAR, 1.25), (_CLOSE, 1.05))
    return {
        part: good if run.makespan <= ratio * least + _ROUNDING else slow for part, ratio in limits
    }


_OF_ALL = ("swaps_everything", "first_ones_only")


def _why(copies: Any, n: int) -> Iterable[str]:
    """Every mistake that this schedule shows."""
    try:
        out, back = _places(copies)
    except (TypeError, ValueError, IndexError, KeyError, OverflowError):  # OverflowError: int(inf)
        return
    kinds = [kind for kind, _, _ in copies]
    shows = {
        "swaps_nothing": not copies,
        "never_comes_back": out and not back,
        "in_before_out": back and kinds == sorted(kinds),
        "first_out_first_in": len(back) > 1 and list(back) == sorted(back),
        "last_stage_too": n - 1 in out,
        "no_prefetch": back and all(after == 2 * n - 2 - i for i, after in back.items()),
        "comes_back_at_once": any(after < n - 1 for after in back.values()),
        "swaps_everything": out.keys() >= set(range(n - 1)),
        "first_ones_only": set(out) == set(range(len(out))),
    }
    yield from (name for name, shown in shows.items() if shown)


def _places(copies: Sequence[Any]) -> tuple[dict[int, int], dict[int, int]]:
    """Stage -> `after`, for copies out and for copies back, in the list's order."""
    by_kind: dict[str, dict[int, int]] = {"out": {}, "in": {}}
    for kind, stage, after in copies:
        by_kind[kind][int(stage)] = int(after)
    return by_kind["out"], by_kind["in"]


def _where(problem: Problem) -> str:
    stages, budget, link = problem
    rows = ", ".join(f"({s.forward_time:g}, {s.backward_time:g}, {s.saved_bytes})" for s in stages)
    return (
        f"For stages (forward_time, backward_time, saved_bytes) {rows}, a budget of {budget} and "
        f"a link of {link:g} bytes/s:"
    )


schedule = Task(
    id="lab06-schedule",
    parts={_FEASIBLE: 2, _NEAR: 2, _CLOSE: 1},
    defines=("schedule",),
    probe="schedule",
    cases=_cases,
    judge=_judge,
    mistakes={
        "swaps_nothing": "Your schedule is empty, but not all stages fit. Send some stages out.",
        "never_comes_back": "Your schedule sends stages out and never brings them back, but their "
        "backward needs them.",
        "in_before_out": "Your list copies stages in before it copies them out. The link works "
        "through the list in order, so it waits forever for bytes that haven't left.",
        "first_out_first_in": "Your schedule brings the stages back in the order of forward. "
        "Backward needs the last stage first: bring stages back in reverse order.",
        "last_stage_too": "Your schedule sends the last stage out. Its backward comes right after "
        "its forward, so swapping it only loses time and often blocks the link forever.",
        "no_prefetch": "Your schedule brings a stage back only when its backward is next, so "
        "compute waits for every copy. Start the copy while backward works on another stage.",
        "comes_back_at_once": "Your schedule brings stages back while forward is still running. "
        "They take the room that the last stages need: start copies in once the last forward is "
        "done.",
        "swaps_everything": "Your schedule swaps every stage, needed or not. Each swap uses the "
        "link twice, and if backward overtakes a copy out, the list is blocked forever.",
        "first_ones_only": "Your schedule always swaps the first stages. Others may free more "
        "bytes in fewer copies, or come back in time: try other sets of stages.",
        "no_value_error": "If one stage alone is larger than the budget, nothing helps: raise "
        "ValueError.",
        "gives_up": "Your function raises ValueError, or doesn't catch simulate's Infeasible, "
        "although a schedule exists, as it always does if each stage fits alone. Catch "
        "Infeasible, and try the next schedule.",
    },
)
