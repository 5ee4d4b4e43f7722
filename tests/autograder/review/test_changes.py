"""Changed scores: all are listed, on a screen or in a file, and none is a formula."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.model.submission import SubmissionKey
from autograder.review.changes import Change, agreed, between, note_down, told
from autograder.store.out_folder import OutFolder
from tests.autograder.small_class import DOUBLE, HALVE, end_of, graded, verdict
from tests.autograder.small_release import LAB
from tests.files import csv_records


def some(count: int) -> list[Change]:
    return [
        Change(SubmissionKey(f"s{n:03}", LAB), DOUBLE, "2", "0", "=now", "It was right.")
        for n in range(count)
    ]


def test_only_scores_that_change_are_changes() -> None:
    new = graded(verdicts=(verdict(status="partly"), verdict(HALVE, "wrong", message="Other.")))
    (change,) = between(graded(), new)
    assert (change.task, change.old, change.new) == (DOUBLE, "2", "1.5")
    assert (change.before, change.why) == ("Right.", "Not earned: edges.")
    gpu = graded(verdicts=(verdict(), verdict(HALVE, "needs_gpu")))
    assert [(c.task, c.old, c.new) for c in between(gpu, graded())] == [(HALVE, "needs a GPU", "0")]
    failed = end_of("ada", "failed", "why")
    assert {(c.old, c.new) for c in between(failed, graded())} == {
        ("grading failed", "2"),
        ("grading failed", "0"),
    }


def test_few_changes_are_all_told(tmp_path: Path) -> None:
    text = told(some(20), OutFolder(tmp_path)).splitlines()
    assert len(text) == 61
    assert text[:3] == [
        f"s000, {DOUBLE}: 2 -> 0",
        "    now:    =now",
        "    before: It was right.",
    ]
    assert text[-1] == f"Scores that change: 20 ({DOUBLE} 20). Students: 20."
    assert list(tmp_path.iterdir()) == []
    assert told([], OutFolder(tmp_path)) == "No score changes."


def test_many_changes_are_in_a_file_that_goes_when_they_are_written(tmp_path: Path) -> None:
    text = told(some(21), OutFolder(tmp_path)).splitlines()
    assert len(text) == 62
    assert text[-2] == f"... and 1 more; {tmp_path}/changes_proposed.csv has all of them."
    listed = [row["student"] for row in csv_records(tmp_path / "changes_proposed.csv")]
    assert listed == [f"s{n:03}" for n in range(21)]
    note_down(some(21), OutFolder(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["changes.csv"]


def test_the_log_grows_and_holds_no_formula(tmp_path: Path) -> None:
    note_down(some(1), OutFolder(tmp_path))
    note_down(some(2), OutFolder(tmp_path))
    note_down([], OutFolder(tmp_path))
    assert [(row["student"], row["why"]) for row in csv_records(tmp_path / "changes.csv")] == [
        ("s000", "'=now"),
        ("s000", "'=now"),
        ("s001", "'=now"),
    ]


@pytest.mark.parametrize(
    ("said", "is_yes"), [("y", True), ("YES ", True), ("", False), ("yep", False), ("n", False)]
)
def test_only_yes_is_yes(monkeypatch: pytest.MonkeyPatch, said: str, is_yes: bool) -> None:
    monkeypatch.setattr("builtins.input", lambda _: said)
    assert agreed() is is_yes
