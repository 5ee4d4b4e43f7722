"""The swap calculator beside the planners and the simulator."""

from __future__ import annotations

import asyncio
import re
from itertools import product

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
    assert calculator._text.value.count("does not fit") == 4
    assert "the smallest budget that works is" in calculator._text.value


@pytest.mark.parametrize("stages", [2, 5, 6])
def test_both_is_never_slower_than_swaps_or_recomputation(stages: int) -> None:
    calculator = swap()
    quicker = False
    for link, budget in product((2.0, 16.0, 32.0, 450.0), (25, 40, 50, 65, 80, 100)):
        calculator.set(stages=stages, link=link, budget=budget)
        times = {name: step_ms(calculator._text.value, name) for name in calculator_plans()}
        others = [times[name] for name in ("swap", "recompute") if times[name] is not None]
        if others:
            assert times["both"] is not None
            assert times["both"] <= min(others), (link, budget)
            quicker = quicker or times["both"] < min(others)
    assert quicker or stages == 2, "somewhere both together beat each alone"


def calculator_plans() -> tuple[str, ...]:
    options: tuple[str, ...] = swap()._controls["plan"].options
    return options


def step_ms(page: str, name: str) -> float | None:
    """The time in a plan's row; None if it doesn't fit."""
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page)
    words = cells[cells.index(name) + 1]
    return None if words == "-" else float(words.removesuffix(" ms").replace(",", ""))


def test_both_follows_later_with_its_picture_and_searches_once() -> None:
    async def look() -> list[str]:
        calculator = swap()
        calculator.set(plan="both", stages=7)
        pages = [calculator._text.value, calculator._picture.value]
        assert calculator._pieces is not None
        await calculator._pieces
        pages += [calculator._text.value, calculator._picture.value]
        calculator.plan = "swap"
        return [*pages, calculator._text.value]

    before, no_picture, after, picture, again = asyncio.run(look())
    assert "..." in before
    assert no_picture == ""
    assert "..." not in after
    assert "both: compute, copies and live memory" in picture
    assert "..." not in again, "the plan alone asks for no new search"
