"""The rehearsal keeps the simulator's rules: the same order, the same budget, the same ends."""

from __future__ import annotations

import contextlib
import functools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from peakmem.core.errors import Infeasible
from peakmem.execute.host_memory import HostTier
from peakmem.execute.rehearsal import Work, rehearse
from peakmem.plan.swapping import Run, Stage, simulate


def work(numbers: list[int]) -> list[Work]:
    """Stages that save this many float64 values and check them in backward."""

    def check(saved: torch.Tensor) -> None:
        assert (saved == len(saved)).all()

    return [
        Work(functools.partial(torch.full, (n,), float(n), dtype=torch.float64), check, 8 * n)
        for n in numbers
    ]


def orders(run: Run) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    steps, copies = (
        [(span.kind, span.stage) for span in spans] for spans in (run.steps, run.copies)
    )
    return steps, copies


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_it_ends_where_the_simulator_does_in_the_same_order(
    numbers: list[int], data: st.DataObject
) -> None:
    """With the fewest first stages swapped, no clock decides about anything but when."""
    n = len(numbers)
    stages = [Stage(1, 1, 8 * k) for k in numbers]
    budget = data.draw(st.integers(8 * max(numbers), 8 * sum(numbers)))
    for fewest in range(n):
        schedule = [("out", i, i) for i in range(fewest)]
        schedule += [("in", i, n - 1) for i in reversed(range(fewest))]
        with contextlib.suppress(Infeasible):
            expected = simulate(stages, budget, 1e9, schedule)
            break
    host = HostTier()
    run = rehearse(work(numbers), budget, schedule, host)
    assert orders(run) == orders(expected)
    assert run.peak_bytes <= budget
    assert host.live_bytes == 0
    times = [time for span in run.steps for time in (span.start, span.end)]
    assert times == sorted(times)
    host.close()


def test_bytes_that_were_away_are_the_same() -> None:
    host = HostTier()
    schedule = [("out", 0, 0), ("in", 0, 2)]
    run = rehearse(work([3, 3]), 24, schedule, host)
    assert orders(run) == (
        [("forward", 0), ("forward", 1), ("backward", 1), ("backward", 0)],
        [("out", 0), ("in", 0)],
    )
    assert (host.bytes_out, host.bytes_in, host.live_bytes, run.peak_bytes) == (24, 24, 0, 24)


def test_a_step_goes_first_where_a_copy_could_start_too() -> None:
    """Once stage 0 is out, forward 1 and stage 0 on its way back both wait for the same room."""
    host = HostTier()
    steps, copies = orders(rehearse(work([3, 3]), 24, [("out", 0, 0), ("in", 0, -1)], host))
    assert steps == [("forward", 0), ("forward", 1), ("backward", 1), ("backward", 0)]
    assert copies == [("out", 0), ("in", 0)]


@pytest.mark.parametrize("schedule", [[], [("out", 0, 0)], [("in", 0, 0)]])
def test_who_would_wait_for_ever_is_told_so(schedule: list[tuple[str, int, int]]) -> None:
    host = HostTier()
    with pytest.raises(Infeasible, match=r"waits forever"):
        rehearse(work([3, 3]), 24, schedule, host)
    assert host.live_bytes == 0


def test_an_error_of_the_work_comes_through() -> None:
    def fails() -> torch.Tensor:
        raise ZeroDivisionError("in forward")

    with pytest.raises(ZeroDivisionError):
        rehearse([Work(fails, print, 8)], 8, [("out", 0, 0)], HostTier())


def test_an_error_of_the_link_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    host = HostTier()
    monkeypatch.setattr(host, "put", full)
    with pytest.raises(OSError, match="No space"):
        rehearse(work([3, 3]), 24, [("out", 0, 0), ("in", 0, 2)], host)
