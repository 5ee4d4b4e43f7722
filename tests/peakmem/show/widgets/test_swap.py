"""The swap calculator beside the planners and the simulator."""

from __future__ import annotations

import pytest

from peakmem.plan.chain import Chain, Stage
from peakmem.plan.offload import with_offload
from peakmem.plan.rotor import optimal
from peakmem.plan.simulator import simulate
from peakmem.show.widgets import swap


@pytest.mark.parametrize(("link", "budget"), [(32.0, 50), (4.0, 50), (450.0, 60)])
def test_times_are_the_simulators(link: float, budget: int) -> None:
    calculator = swap()
    calculator.set(link=link, budget=budget)
    chain = Chain((Stage(0.01, 0.02, 400 * 10**6, 400 * 10**6 // 17),) * 6)
    room, speed = budget * 24 * 10**6, int(link * 10**9)
    swapped = simulate(chain, with_offload(chain, room, speed))
    again = simulate(chain, optimal(chain, room, slots=200))
    for run in (swapped, again):
        assert f"{1000 * run.makespan:,.3g} ms" in calculator._text.value
        assert f"{run.peak_bytes / 1e6:,.0f} MB" in calculator._text.value
    assert calculator.answer().figure == (1000 * swapped.makespan, "ms")


@pytest.mark.parametrize(("link", "hides"), [(32.0, False), (40.0, True), (450.0, True)])
def test_copies_hide_where_they_take_no_longer_than_compute(link: float, hides: bool) -> None:
    calculator = swap()
    calculator.set(link=link)
    assert ("copies hide behind compute" in calculator._text.value) == hides
    assert ("compute waits for the link" in calculator._text.value) != hides


def test_a_budget_that_nothing_fits_is_said_so() -> None:
    calculator = swap()
    calculator.set(budget=1)
    assert calculator._text.value.count("does not fit") == 3
    assert "the smallest budget that works is" in calculator._text.value
