"""Random notebooks of the bank's answers: no right one loses a point for its neighbours."""

from __future__ import annotations

import json
import random

import pytest

from autograder.base.course import COURSE
from autograder.content import find_lab
from autograder.grading import grade as grading
from autograder.grading.plans import Plan
from autograder.notebooks.released import release_of
from autograder.trials.answer_bank import read_bank, submission_with
from benchmarks.mixes import CARELESS, Mix, lost_points, mix
from tests.grading import LAB01

LAB = find_lab(LAB01)
SLOW = ("while", "Thread", "1900")
QUICK = tuple(line for line in CARELESS if not any(word in line for word in SLOW))


def mixes(count: int, seed: int) -> list[Mix]:
    release, entries = release_of(LAB01, COURSE.releases), read_bank(COURSE.bank, LAB)
    draw = random.Random(seed)
    return [mix(LAB, release, entries, draw, QUICK) for _ in range(count)]


def test_mixes_have_right_answers_beside_careless_and_messy_ones() -> None:
    drawn = mixes(40, 0)
    assert sum(len(one.right) for one in drawn) > 100
    made = "\n".join(line for one in drawn for line in one.made)
    for mess in (
        "careless",
        "deleted",
        "copied",
        "in an added cell",
        "imported over",
        "after lab01",
    ):
        assert mess in made, mess


def test_the_guide_has_the_recorded_figures() -> None:
    rows = json.loads((COURSE.root / "docs/measurements/mixes.json").read_text())
    notebooks = sum(row["notebooks"] for row in rows)
    right = sum(row["right_answers"] for row in rows)
    guide = " ".join((COURSE.root / "docs/instructors.md").read_text().split())
    assert f"{notebooks} random notebooks of labs 1 to {len(rows)}" in guide
    assert f"All {right:,} correct answers kept full points" in guide
    assert [row["lost_points"] for row in rows] == [0] * len(rows)


@pytest.mark.sandbox
@pytest.mark.parametrize("guarded", [True, False])
def test_a_right_answer_keeps_its_points_in_every_mix(
    monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    if not guarded:
        monkeypatch.setattr(grading, "plan_alone", lambda *_: None)
        monkeypatch.setattr(
            "autograder.grading.run.plan_together", lambda _tasks, cells: Plan(cells, {})
        )
    drawn = mixes(3, 4)
    lost = [one for found in lost_points(LAB, drawn) for one in found]
    assert (lost == []) == guarded, "\n".join(map(str, lost))


@pytest.mark.sandbox
def test_ranks_that_another_exercise_keeps_from_starting_start_without_it() -> None:
    lab = find_lab("lab08_shards")
    entries = {
        task: next(e for e in read_bank(COURSE.bank, lab) if (e.task, e.kind) == (task, kind))
        for task, kind in (("lab08-ring_all_reduce", "wrong"), ("lab08-shard_gradients", "right"))
    }
    sources = {task: entry.source for task, entry in entries.items()}
    sources["lab08-ring_all_reduce"] += "\n\nimport struct\nstruct.pack = struct.unpack = None"
    notebook = submission_with(release_of(lab.name, COURSE.releases), sources)
    one = Mix(notebook, frozenset({"lab08-shard_gradients"}), ())
    assert list(lost_points(lab, [one])) == [[]]
