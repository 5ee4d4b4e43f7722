"""A class's results by task: against figures worked out on paper, and as a picture."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from pathlib import Path

import pytest

from autograder.publish.statistics import TaskStatistics, statistics_of, write_picture, write_table
from tests.autograder.small_class import DOUBLE, HALVE, end_of, graded, verdict
from tests.autograder.small_release import LAB


def of(seconds: list[float]) -> TaskStatistics:
    results = [graded(f"s{n}", seconds={DOUBLE: s}) for n, s in enumerate(seconds)]
    return statistics_of(results)[LAB][0]


RESULTS = [
    graded("ada", seconds={DOUBLE: 0.25, HALVE: 3.0}),
    graded("kim", verdicts=(verdict(status="partly"), verdict(HALVE, "needs_gpu"))),
    end_of("bob", "failed", "lost"),
]


@pytest.mark.parametrize(
    ("seconds", "half", "most"),
    [
        ([0.5], 0.5, 0.5),
        ([3.0, 1.0], 2.0, 3.0),
        ([float(n) for n in range(20, 0, -1)], 10.5, 19.0),  # 19 of 20 are 95%
        ([float(n) for n in range(1, 22)], 11.0, 20.0),  # 19 of 21 are fewer, 20 are more
    ],
)
def test_half_of_the_class_and_95_percent_of_it(
    seconds: list[float], half: float, most: float
) -> None:
    one = of(seconds)
    assert (one.median_seconds, one.p95_seconds) == (half, most)
    assert sum(s <= most for s in seconds) >= 0.95 * len(seconds)
    assert sum(s < most for s in seconds) < 0.95 * len(seconds)


def test_who_was_never_called_took_no_time() -> None:
    double, halve = statistics_of(RESULTS)[LAB]
    assert (double.seconds, halve.seconds) == ([0.25], [3.0])
    (one, _) = statistics_of([graded(verdicts=(verdict(status="wrong"), verdict(HALVE)))])[LAB]
    assert (one.median_seconds, one.p95_seconds) == (None, None)


def test_the_table_is_exactly_this(tmp_path: Path) -> None:
    write_table(statistics_of(RESULTS), tmp_path / "statistics.csv")
    with (tmp_path / "statistics.csv").open(newline="", encoding="utf-8") as file:
        double, halve = csv.DictReader(file)
    assert double == {
        "lab": LAB,
        "task": DOUBLE,
        "judged": "2",
        "correct": "1",
        "partially_correct": "1",
        "incorrect": "0",
        "not_judged": "0",
        "pass_rate": "0.500",
        "mean_points": "1.750",
        "max_points": "2",
        "median_seconds": "0.250",
        "p95_seconds": "0.250",
        "mistakes": "",
    }
    assert (halve["judged"], halve["not_judged"], halve["mistakes"]) == ("1", "1", "squares 1")


def test_the_picture_is_one(tmp_path: Path) -> None:
    write_picture(LAB, statistics_of(RESULTS)[LAB], tmp_path / "statistics.png")
    assert (tmp_path / "statistics.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [1, 30])
def test_long_names_leave_room_for_the_bars(tmp_path: Path, count: int) -> None:
    name = "problem1/test_the_standard_deviation_of_a_sample"
    tasks = [
        TaskStatistics(f"{name}_{n}", Counter(right=1, wrong=1), Counter({"mistake_" * 9: 1}))
        for n in range(count)
    ]
    with warnings.catch_warnings(action="error"):  # matplotlib warns where nothing fits
        write_picture("assignment_" * 9, tasks, tmp_path / "statistics.png")
