"""Exercise: keep, recompute or swap, for each stage of a chain that has to fit a budget.

A list of treatments is a plan, and the library's simulator says how long it takes. The least time
is found by trying all lists, starting with those that recompute least; drawn chains have at most 6
stages.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from autograder.content.lab06.schedule import after_a_small_one
from autograder.model.compare import are_outcomes, raised_text, show
from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding, Task
from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.simulator import simulate
from peakmem.plan.treatments import Treatment, treated

__all__ = ["least_time", "plan_joint"]

_FEASIBLE, _NEAR, _LEAST = "feasible everywhere", "within 1.2x", "least time"
_PARTS = (_FEASIBLE, _NEAR, _LEAST)
_ROUNDING = 1e-9
_ALL: tuple[Treatment, ...] = ("keep", "recompute", "swap")
# Mistake -> the only treatment besides "keep" that it tries.
_ONE_KIND: Mapping[str, Treatment] = {"never_swaps": "recompute", "never_recomputes": "swap"}

Problem = tuple[Chain, int, float]


def least_time(
    chain: Chain,
    budget_bytes: int,
    link_bytes_per_s: float,
    allowed: Sequence[Treatment] = _ALL,
) -> float:
    """Return the least time of all lists of treatments; inf if none fits."""
    best = math.inf
    lists = itertools.product(allowed, repeat=len(chain) - 1)  # the last stage is always kept
    for again, treatments in sorted((_again(chain, found), found) for found in lists):
        if chain.work_time + again >= best:
            break  # later lists recompute at least as much
        best = min(best, _time(chain, (*treatments, "keep"), budget_bytes, link_bytes_per_s))
    return best


def _again(chain: Chain, treatments: Sequence[Treatment]) -> float:
    pairs = zip(chain.stages, treatments, strict=False)
    return sum(stage.forward_time for stage, what in pairs if what == "recompute")


def _time(chain: Chain, treatments: Sequence[Treatment], budget: int, link: float) -> float:
    try:
        return simulate(chain, treated(chain, treatments, budget, link)).makespan
    except Infeasible:
        return math.inf


def _chain(rng: np.random.Generator, n: int) -> Problem:
    """A random chain, and a budget between its largest stage and all its saved bytes."""
    stages = []
    for _ in range(n):
        output = int(rng.integers(1, 4))
        saved = 8 * (output + int(rng.integers(1, 13)))
        times = float(rng.integers(1, 13)) / 2, float(rng.integers(2, 17)) / 2
        stages.append(Stage(*times, saved, 8 * output))
    chain = Chain(tuple(stages))
    kept = sum(stage.saved_bytes for stage in stages)
    return chain, int(rng.uniform(0.45, 0.85) * kept), float(rng.choice([4, 8, 16, 32]))


def _where_both_are_needed(rng: np.random.Generator, n: int, ratio: float) -> tuple[Problem, float]:
    """Draw a chain on which swaps or recomputing alone take over `ratio` times the least."""
    while True:
        problem = _chain(rng, n)
        least = least_time(*problem)
        if least == math.inf:
            continue
        alone = [least_time(*problem, ("keep", what)) for what in _ALL[1:]]
        if min(alone) > ratio * least:
            return problem, least


def _case(parts: tuple[str, ...], problem: Problem, least: float, *, about: str = "") -> Case:
    """A case; with `about`, the same one for everybody."""
    chain, budget, link = problem
    names = ("forward_time", "backward_time", "saved_bytes", "output_bytes")
    stages = [{name: getattr(stage, name) for name in names} for stage in chain.stages]
    inputs = {"calls": [[stages, budget, link]]}
    return Case(parts, inputs, secret={"least": least}, fixed=bool(about), about=about)


def _cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for n in (4, 5):
        problem, least = _where_both_are_needed(rng, n, 1.2)
        cases.append(_case(_PARTS, problem, least))
    for n in (4, 6):
        problem, least = _where_both_are_needed(rng, n, 1.0)
        cases.append(_case((_FEASIBLE, _LEAST), problem, least))
    chain, _, link = _chain(rng, 5)
    roomy = sum(stage.saved_bytes for stage in chain.stages)
    cases.append(_case(_PARTS, (chain, roomy, link), chain.work_time))
    largest = max(stage.saved_bytes for stage in chain.stages)
    # Nothing fits: because of one stage, and because of two together.
    for hopeless in ((chain, largest - 1, link), (Chain((Stage(1.0, 2.0, 24, 8),) * 2), 31, link)):
        cases.append(_case((_FEASIBLE,), hopeless, math.inf))
    cases[0] = after_a_small_one(cases[0])
    return [*cases, *_fixed_cases()]


@cache
def _fixed_cases() -> tuple[Case, ...]:
    *cases, last = (_case(_PARTS, p, least_time(*p), about=_ABOUT) for p in _fixed())
    stages, budget, link = last.inputs["calls"][0]
    before = [[stages, budget, 2 * link]]  # has a different plan
    return (*cases, replace(last, inputs={**last.inputs, "before": before}))


_ABOUT = (
    "all stages are alike, or one is alone, or two plans take almost the same time. Try all lists, "
    "and compare exact times."
)


def _fixed() -> list[Problem]:
    cheap_to_compute = Chain((Stage(1.0, 2.0, 24, 8),) * 4)
    dear_to_compute = Chain((Stage(10.0, 1.0, 24, 8),) * 4)
    large, small = Stage(1.0, 2.0, 100, 8), Stage(1.0, 2.0, 24, 8)
    return [
        (Chain((small,)), 24, 8.0),
        # Recompute two neighbours as one segment, and the fourth stage.
        (Chain(cheap_to_compute.stages + cheap_to_compute.stages[:1]), 64, 1.0),
        (dear_to_compute, 64, 1000.0),
        (dear_to_compute, 50, 16.0),  # room for two stages: only swaps free enough
        (Chain((large, large, small, small)), 170, 16.0),  # only recomputing the first one does
        # No stage but the last can be kept: the third and the fifth are recomputed, the others
        # swapped. At half the link speed other plans look faster. In whole seconds all are equal.
        (Chain(tuple(map(_quick, (*map(_stage, _EACH_GOES), _SIXTH)))), 96, 64 * 16.0),
        # At twice the link speed other plans look faster.
        (Chain((*map(_stage, _LINK_COUNTS), _SIXTH)), 96, 8.0),
    ]


def _quick(stage: Stage) -> Stage:
    forward, backward = stage.forward_time / 64, stage.backward_time / 64
    return replace(stage, forward_time=forward, backward_time=backward)


def _stage(figures: tuple[float, float, int]) -> Stage:
    return Stage(*figures, output_bytes=8)


_EACH_GOES = ((6.0, 2.0, 56), (2.0, 3.0, 40), (1.0, 3.0, 40), (8.0, 3.0, 32), (4.0, 4.0, 56))
_LINK_COUNTS = ((2.0, 2.0, 56), (1.0, 2.0, 32), (8.0, 2.0, 32), (8.0, 2.0, 32), (6.0, 4.0, 56))
_SIXTH = Stage(1.0, 2.0, 64, 8)


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    stages, budget, link = case.inputs["calls"][0]
    problem = Chain(tuple(Stage(**stage) for stage in stages)), budget, link
    findings = _findings(problem, case.secret["least"], answer.value)
    return {part: findings[part] for part in case.parts}


def _all(finding: Finding) -> dict[str, Finding]:
    return dict.fromkeys(_PARTS, finding)


def _findings(problem: Problem, least: float, outcomes: Any) -> Mapping[str, Finding]:
    if not are_outcomes(outcomes, 1):
        return _all(Finding(False, "The answer came back garbled."))
    kind, value = outcomes[0][:2]
    where = _where(problem)
    if kind == "raised":
        if value == "NotImplementedError":
            return _all(NOT_WRITTEN)
        gives_up = value in ("ValueError", Infeasible.__name__)  # which is a ValueError
        if least == math.inf and gives_up:
            return _all(Finding(True))
        said = f"{where} {raised_text(outcomes[0])}"
        return _all(Finding(False, said, tuple(_why_raised(problem)) if gives_up else ()))
    if kind == "changed":
        return _all(Finding(False, f"{where} your function changed the stages."))
    if least == math.inf:
        said = f"{where} no plan fits: expected a ValueError, but got {show(value)}."
        shown = _why(problem, value, math.inf) if _is_plan(value, len(problem[0])) else ()
        return _all(Finding(False, said, ("no_value_error", *shown)))
    if kind != "value" or not _is_plan(value, len(problem[0])):
        said = f"{where} expected {len(problem[0])} treatments, each keep, recompute or swap, "
        short = _is_plan([*value, "keep"], len(problem[0])) if isinstance(value, list) else False
        mistakes = ("last_left_out",) if short else ()
        return _all(Finding(False, f"{said}but got {show(value)}.", mistakes))
    return _judged(problem, least, list(value))


def _judged(problem: Problem, least: float, plan: list[Treatment]) -> Mapping[str, Finding]:
    where, shown = _where(problem), show(plan)
    time = _time(problem[0], plan, problem[1], problem[2])
    mistakes = tuple(_why(problem, plan, time))
    if time == math.inf:
        return _all(Finding(False, f"{where} your plan {shown} does not fit.", mistakes))
    said = f"{where} your plan {shown} takes {time:g} s, and {least:g} s is possible."
    limits = {_NEAR: 1.2 * least, _LEAST: least}
    times = {
        part: Finding(True) if time <= limit + _ROUNDING else Finding(False, said, mistakes)
        for part, limit in limits.items()
    }
    return {_FEASIBLE: Finding(True), **times}


def _is_plan(value: Any, n: int) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == n
        and all(isinstance(x, str) and x in _ALL for x in value)
    )


def _why(problem: Problem, plan: Sequence[Treatment], time: float) -> Iterator[str]:
    """Every mistake that this plan and its time show."""
    used = set(plan[:-1])
    if used == {"swap"}:
        yield "swaps_everything"
    if used == {"recompute"}:
        yield "recomputes_everything"
    if used <= {"keep"}:
        yield "keeps_everything"
    if time == math.inf:
        return
    for name, tried in _ONE_KIND.items():
        if used <= {"keep", tried} and time <= least_time(*problem, ("keep", tried)) + _ROUNDING:
            yield name
    yield "stops_too_early"


def _why_raised(problem: Problem) -> Iterator[str]:
    """Every mistake that explains why the function finds no plan here."""
    yield "gives_up"
    for name, tried in _ONE_KIND.items():
        if least_time(*problem, ("keep", tried)) == math.inf:
            yield name


def _where(problem: Problem) -> str:
    chain, budget, link = problem
    rows = ", ".join(
        f"({s.forward_time:g}, {s.backward_time:g}, {s.saved_bytes}, {s.output_bytes})"
        for s in chain.stages
    )
    return (
        f"For stages (forward_time, backward_time, saved_bytes, output_bytes) {rows}, a budget of "
        f"{budget} and a link of {link:g} bytes/s:"
    )


plan_joint = Task(
    id="lab06-plan_joint",
    parts={_FEASIBLE: 2, _NEAR: 1, _LEAST: 1},
    defines=("plan_joint",),
    probe="plan_joint",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "no_value_error": "If no plan fits, raise ValueError.",
        "keeps_everything": "Your plan keeps every stage, but they don't all fit.",
        "swaps_everything": "Your plan swaps every stage, needed or not, so compute waits for the "
        "link. Keep as many stages as fit.",
        "recomputes_everything": "Your plan recomputes every stage, needed or not. Keep as many "
        "stages as fit.",
        "gives_up": "Your function raises ValueError, or doesn't catch simulate_plan's "
        "Infeasible, although a plan fits. Catch Infeasible, and try the next plan.",
        "never_swaps": "Your plans never swap, though a swap that hides behind compute costs no "
        "time. Try all three treatments of each stage.",
        "never_recomputes": "Your plans never recompute, though a stage with a short forward and "
        "many bytes is faster to recompute than to move. Try all three treatments.",
        "last_left_out": "Your plan has one treatment too few: include the last stage's.",
        "stops_too_early": "Your plan fits, but so does a faster one. Compare the times of all "
        "plans that fit, not just some.",
    },
)
