"""The memory needs of answers, and the conditions under which right ones are graded."""

from __future__ import annotations

import multiprocessing
import os
import sys
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from autograder.base.course import Course
from autograder.content import find_lab
from autograder.trials.calibration import with_budget
from benchmarks import conditions
from benchmarks.conditions import CONDITIONS, signs
from benchmarks.figures import NotRun
from benchmarks.needs import Need, least, margins, measure_needs
from tests.answers import answer, write_answers

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's counters")
KIB, MIB = 2**10, 2**20


# The least budget


@pytest.mark.parametrize("enough", [-40, -8.1, -1.3, -0.01, 0, 0.01, 0.7, 4.8, 25, 60])
def test_the_least_budget_is_found(enough: float) -> None:
    found, is_bound = least(lambda beyond: beyond >= enough * MIB)
    assert not is_bound
    assert 0 <= found - enough * MIB <= max(32 * KIB, abs(enough) * MIB / 64)


@pytest.mark.parametrize(("enough", "bound"), [(-1e9, -64), (1e9, 64)])
def test_beyond_the_farthest_budget_there_is_a_bound_only(enough: float, bound: int) -> None:
    assert least(lambda beyond: beyond >= enough * MIB) == (bound * MIB, True)


RIGHT = Need("lab03-a", "right_a", True, 100, -1.5)
WRONG = Need("lab03-a", "wrong_b", False, 100, 3)


def test_margins_are_those_of_the_nearest_answers() -> None:
    needs = [RIGHT, replace(RIGHT, beyond_mib=-9), WRONG, replace(WRONG, beyond_mib=40)]
    assert margins(needs) == {"lab03-a": {"budget_mib": 100, "to_spare_mib": 1.5, "over_mib": 3}}


def test_an_answer_on_the_wrong_side_of_its_budget_is_noticed() -> None:
    assert not RIGHT.is_misjudged
    assert not WRONG.is_misjudged
    assert replace(RIGHT, beyond_mib=0.1).is_misjudged
    assert replace(WRONG, beyond_mib=-0.1).is_misjudged


@pytest.mark.sandbox
def test_right_answers_need_less_than_the_budget_and_mistakes_of_memory_alone_more(
    repository: Path, tmp_path: Path
) -> None:
    names = ("right_closure", "wrong_zeroed", "wrong_no_step")
    chosen = [answer("lab03_adam", f"lab03-step_in_backward/{name}") for name in names]
    write_answers(tmp_path / "bank", "lab03_adam", chosen)
    copytree(repository / "labs" / "lab03_adam", tmp_path / "labs" / "lab03_adam")
    right, zeroed = measure_needs(with_budget(find_lab("lab03_adam")), Course(tmp_path))
    assert right.right
    assert -5 < right.beyond_mib < 0
    assert (zeroed.answer, zeroed.right) == ("wrong_zeroed", False)
    assert zeroed.beyond_mib > 1
    assert not right.is_misjudged
    assert not zeroed.is_misjudged


# Conditions


@linux
def test_busy_spins_on_every_processor_and_leaves_nothing_behind() -> None:
    with CONDITIONS["busy"]():
        assert len(multiprocessing.active_children()) == os.cpu_count()
    assert multiprocessing.active_children() == []


def test_cold_drops_the_page_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "drop_caches"
    monkeypatch.setattr(conditions, "_DROP_CACHES", file)
    with pytest.raises(NotRun, match="only root"), CONDITIONS["cold"]():
        pass
    file.touch()
    with CONDITIONS["cold"]():
        pass
    assert file.read_text() == "1"


def test_pressure_takes_what_is_left_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "_CHUNK_BYTES", 64 * KIB)
    left_bytes = conditions._LEFT_BYTES
    held: list[object] = []
    assert conditions._adjust(held, left_bytes + 65 * KIB)  # type: ignore[arg-type]
    assert len(held) == 1
    assert not conditions._adjust(held, left_bytes + 1)  # type: ignore[arg-type]
    assert len(held) == 1
    assert conditions._adjust(held, left_bytes - 1)  # type: ignore[arg-type]
    assert held == []
    assert not conditions._adjust(held, left_bytes - 1)  # type: ignore[arg-type]


@linux
def test_pressure_that_ended_early_is_no_pressure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "_press", str)  # a process that ends at once

    def measure() -> None:
        with CONDITIONS["pressure"]():
            for child in multiprocessing.active_children():
                child.join()

    with pytest.raises(RuntimeError, match="was ended"):
        measure()


@linux
def test_what_the_kernel_counts_only_grows() -> None:
    before = signs()
    passed = signs().since(before)
    assert min(passed.dropped, passed.reclaimed_pages, passed.major_faults) >= 0
    assert before.busy_seconds > 0
