"""A sampled class is graded by running it here, and has to get its known scores."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.content import find_lab
from autograder.model.status import shown
from autograder.model.submission import Submission
from autograder.model.task import Lab
from autograder.notebooks.intake import find_submissions, read_submission, take_in
from autograder.notebooks.released import release_of
from autograder.trials.answer_bank import read_bank
from autograder.trials.packing import bound_names
from autograder.trials.sampled_class import COLUMNS, KINDS, _work, sample_class
from tests.autograder.small_lab import DOUBLE, SMALL_LAB, task, verdict_on, write, write_bank
from tests.autograder.small_release import LAB, release


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    write_bank(tmp_path / "bank")
    helper = "def twice(x):\n    return [x, x]\n\n\ndef double(x):\n    return sum(twice(x))"
    write(tmp_path / "bank", "right_helper", "With a helper.", helper)
    return tmp_path / "bank"


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    for lab in (LAB, "lab03_adam"):
        path = tmp_path / "labs" / lab / f"{lab}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(release()).replace("lab05", lab[:5]))
    return tmp_path / "labs"


def truth(out: Path) -> dict[tuple[str, str, str], tuple[str, str, str]]:
    with (out / "truth.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames or ()) == COLUMNS
        return {
            (row["student"], row["lab"], row["task"]): (row["score"], row["status"], row["mistake"])
            for row in reader
        }


def names_of(submission: Submission) -> dict[str, Any]:
    """The definitions of a notebook's cells; a failing cell costs only itself."""
    names: dict[str, Any] = {}
    with pytest.warns() if "warn(" in str(submission.cells) else redirect_stderr(StringIO()):
        for cell in submission.cells:
            with suppress(Exception):
                exec(cell.source, names)
    return names


def graded(out: Path, lab: Lab) -> dict[tuple[str, str, str], tuple[str, str, str]]:
    grades = {}
    for student, path in find_submissions(out / "submitted", lab.name):
        names = names_of(take_in(student, lab.name, read_submission(path), release()))
        for one in lab.tasks:
            verdict = verdict_on(one, names)
            score = "" if verdict.status == "needs_gpu" else f"{verdict.points:g}"
            grades[student, lab.name, one.id] = (
                score,
                shown(verdict.status),
                verdict.mistake or "",
            )
    return grades


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_class_gets_what_its_truth_says(
    tmp_path: Path, bank: Path, releases: Path, seed: int
) -> None:
    out = tmp_path / "out"
    sample_class([SMALL_LAB], 26, seed, out, bank, releases)
    known = truth(out)
    assert known == graded(out, SMALL_LAB)
    statuses = Counter(status for _, status, _ in known.values())
    assert statuses.keys() == {"correct", "partially correct", "incorrect"}
    assert len(known) == 26 * 2
    assert "adds_one" in {mistake for _, _, mistake in known.values()}


def test_every_kind_of_mess_is_there(tmp_path: Path, bank: Path, releases: Path) -> None:
    sample_class([SMALL_LAB], len(KINDS), 0, tmp_path / "out", bank, releases)
    notes, cells = [], {}
    for kind, (student, path) in zip(
        KINDS, find_submissions(tmp_path / "out" / "submitted", LAB), strict=True
    ):
        submission = take_in(student, LAB, read_submission(path), release())
        notes.append(f"{kind}: {[note.text for note in submission.notes]}")
        cells[kind] = [cell.source for cell in submission.cells]
        raw = json.loads(submission.raw)
        nbformat.validate(nbformat.from_dict(raw))
    said = " ".join(notes)
    assert "_helper(x):" in " ".join(cells["helper in an added cell"])
    assert "is answered in 2 cells" in said
    assert "deleted cell: ['You deleted the solution cell, so there was nothing to grade" in said
    assert "no metadata: ['Found by the names" in said
    assert "print(" in " ".join(cells["syntax error"])
    assert "warnings.warn" in " ".join(cells["warnings"])


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path, bank: Path, releases: Path) -> None:
    def written(name: str, seed: int) -> dict[str, bytes]:
        out = tmp_path / name
        sample_class([SMALL_LAB], 14, seed, out, bank, releases)
        return {
            str(path.relative_to(out)): path.read_bytes()
            for path in out.rglob("*")
            if path.is_file()
        }

    assert written("one", 7) == written("two", 7)
    assert written("three", 8) != written("one again", 7)


def test_several_labs_share_a_class(tmp_path: Path, bank: Path, releases: Path) -> None:
    other = Lab("lab03_adam", (task("double", 8, lab="lab03"),))
    (bank / "lab03_adam").mkdir()
    (bank / LAB / "double").rename(bank / "lab03_adam" / "double")
    here = Lab(LAB, SMALL_LAB.tasks[1:])
    sample_class([here, other], 24, 0, tmp_path / "out", bank, releases)
    known = truth(tmp_path / "out")
    assert [student for student, *_ in sorted(known)] == [f"s{n:03d}" for n in range(1, 25)]
    assert Counter(lab for _, lab, _ in known) == {LAB: 12, "lab03_adam": 12}
    for lab in (LAB, "lab03_adam"):
        assert len(find_submissions(tmp_path / "out" / "submitted", lab)) == 12


@pytest.mark.parametrize("has_gpu", [False, True])
def test_what_needs_a_gpu_has_no_score_without_one(
    tmp_path: Path, bank: Path, releases: Path, has_gpu: bool
) -> None:
    lab = Lab(LAB, (DOUBLE, task("halve", 2, needs_gpu=True)))
    sample_class([lab], 26, 0, tmp_path / "out", bank, releases, has_gpu=has_gpu)
    known = truth(tmp_path / "out")
    if not has_gpu:
        assert known == graded(tmp_path / "out", lab)
    found = {v for (_, _, name), v in known.items() if name == "lab05-halve"}
    unjudged = {("", "needs a GPU", "")}
    assert found == ({("2", "correct", ""), ("0", "incorrect", "")} if has_gpu else unjudged)


def test_an_empty_bank_gives_a_class_that_solved_nothing(tmp_path: Path, releases: Path) -> None:
    (tmp_path / "bank" / LAB).mkdir(parents=True)
    sample_class([SMALL_LAB], 13, 0, tmp_path / "out", tmp_path / "bank", releases)
    assert set(truth(tmp_path / "out").values()) == {("0", "incorrect", "")}


def test_nothing_is_written_among_other_files(tmp_path: Path, bank: Path, releases: Path) -> None:
    with pytest.raises(FileExistsError, match="not empty"):
        sample_class([SMALL_LAB], 1, 0, tmp_path, bank, releases)


def test_a_wrong_answer_that_is_named_for_no_mistake_is_not_drawn(
    tmp_path: Path, bank: Path, releases: Path
) -> None:
    sample_class([SMALL_LAB], 52, 0, tmp_path / "out", bank, releases)
    unnamed = {"def double(x):\n    return None", "def halve(x):\n    return None"}
    for _, path in find_submissions(tmp_path / "out" / "submitted", LAB):
        sources = {"".join(c["source"]) for c in json.loads(path.read_text())["cells"]}
        assert not sources & unnamed


@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_of_another_exercise_answers_one_that_is_open(
    kind: str, repository: Path
) -> None:
    lab = find_lab("lab04_checkpointing")  # answers to three exercises bring a checkpoint of theirs
    entries = read_bank(repository / "bank", lab)
    notebook = release_of(lab.name, repository / "labs")
    for seed in range(10):
        _, answers = _work(lab, notebook, entries, kind, random.Random(seed))
        missing = {name for t in lab.tasks if t.id not in answers for name in t.defines}
        assert not [e for e in answers.values() if bound_names(e.source) & missing]
