"""The simulator of swap schedules: hand-made timetables, and what must hold in any run."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.core.errors import Infeasible
from peakmem.plan.swapping import Run, Stage, simulate, step_name

THREE = [Stage(2, 4, 100)] * 3


def times(run: Run) -> tuple[list[float], list[tuple[float, float]]]:
    return [step.start for step in run.steps], [(copy.start, copy.end) for copy in run.copies]


@pytest.mark.parametrize(
    ("schedule", "starts", "copies"),
    [
        # Room for two: forward 2 begins at 4, when stage 0 is out.
        ([("out", 0, 0), ("in", 0, 2)], [0, 2, 4, 6, 10, 14], [(2, 3), (10, 11)]),
        ([("out", 0, 0), ("in", 0, 4)], [0, 2, 4, 6, 10, 15], [(2, 3), (14, 15)]),
        # At once is as soon as the bytes are there; a late copy out holds up forward 2.
        ([("out", 0, -1), ("in", 0, 3)], [0, 2, 4, 6, 10, 14], [(2, 3), (10, 11)]),
        ([("out", 0, 1), ("in", 0, 3)], [0, 2, 5, 7, 11, 15], [(4, 5), (11, 12)]),
    ],
)
def test_timetables_worked_out_by_hand(
    schedule: list[Any], starts: list[float], copies: list[tuple[float, float]]
) -> None:
    run = simulate(THREE, 200, 100, schedule)
    assert times(run) == (starts, copies)
    assert run.makespan == starts[-1] + 4
    assert run.peak_bytes == 200


def test_a_step_goes_first_where_a_copy_could_start_too() -> None:
    # At 3 the last forward could take the room, and so could stage 0 on its way back.
    stages = [Stage(1, 1, 10), Stage(2, 1, 10), Stage(1, 1, 10)]
    run = simulate(stages, 20, 10, [("out", 0, 0), ("in", 0, 1)])
    assert [(span.kind, span.stage) for span in run.steps][2] == ("forward", 2)
    assert times(run)[1] == [(1, 2), (5, 6)]


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ([], "forward 2 waits forever from 4 on: it needs 100 bytes"),
        (
            [("out", 0, 0)],
            "backward 0 waits forever from 14 on: the tensors that stage 0 saved are on",
        ),
        ([("out", 0, 4)], "step 4, backward 1, is not done"),
        ([("in", 0, 0)], "these bytes are not on the host"),
        ([("out", 0, 0), ("in", 0, 0), ("in", 0, 0)], "cannot start"),
    ],
)
def test_a_run_that_never_finishes_says_who_waits_for_what(schedule: Any, said: str) -> None:
    with pytest.raises(Infeasible, match=said):
        simulate(THREE, 200 if said != "cannot start" else 100, 100, schedule)


@pytest.mark.parametrize(
    "copy",
    [("out", 0), ("up", 0, 0), ("out", 3, 0), ("in", -1, 0), ("out", 0, 6), 7, ("in", 0, -2)],
)
def test_what_is_no_schedule_is_refused(copy: Any) -> None:
    with pytest.raises(ValueError, match=r"\("):
        simulate(THREE, 300, 100, [copy])


chains = st.lists(
    st.builds(Stage, st.integers(1, 5), st.integers(1, 5), st.integers(0, 6)),
    min_size=1,
    max_size=5,
)


@given(chains, st.data())
def test_every_run_keeps_the_rules(stages: list[Stage], data: st.DataObject) -> None:
    n = len(stages)
    budget = data.draw(st.integers(max(s.saved_bytes for s in stages), 20))
    copy = st.tuples(
        st.sampled_from(["out", "in"]), st.integers(0, n - 1), st.integers(-1, 2 * n - 1)
    )
    schedule = data.draw(st.lists(copy, max_size=6))
    try:
        run = simulate(stages, budget, 2, schedule)
    except Infeasible:
        return
    done = [f"{span.kind} {span.stage}" for span in run.steps]
    assert done == [step_name(k, n) for k in range(2 * n)]
    for spans in (run.steps, run.copies):
        assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
    moments = sorted({t for span in (*run.steps, *run.copies) for t in (span.start, span.end)})
    for a, b in itertools.pairwise(moments):
        assert _used(run, stages, (a + b) / 2) <= budget
    assert run.makespan >= sum(s.forward_time + s.backward_time for s in stages)


def _used(run: Run, stages: list[Stage], moment: float) -> int:
    """Bytes on the device, added up span by span: each takes as it starts, or frees as it ends."""
    used = 0
    for span in (*run.steps, *run.copies):
        size = stages[span.stage].saved_bytes
        used += size * (span.kind in ("forward", "in") and span.start <= moment)
        used -= size * (span.kind in ("backward", "out") and span.end <= moment)
    return used
