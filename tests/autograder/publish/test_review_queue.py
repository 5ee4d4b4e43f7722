"""The manual-review queue: complete, nothing else, no formula, and few lines on a screen."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest
from nbgrader.api import Gradebook

from autograder.base.course import Course
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.submission import SubmissionKey
from autograder.notebooks.intake import take_in
from autograder.notebooks.stamp import release_note
from autograder.publish.gradebook import look_again, write_gradebook
from autograder.publish.review_queue import Kind, needs, told, write_needs
from autograder.rules.lateness import sentence
from autograder.rules.semester import Receipt, Semester
from autograder.runs import attempts
from autograder.store.out_folder import OutFolder
from autograder.store.scores import final_scores
from tests.autograder.small_class import (
    DOUBLE,
    EXPLAIN,
    HALVE,
    end_of,
    graded,
    make_course,
    verdict,
)
from tests.autograder.small_release import LAB, release

REPAIR = Note("repair", "Deleted, and restored as released: lab05-setup.")
RESULTS = [
    graded("ada", notes=(REPAIR,)),
    graded("kim", verdicts=(verdict(status="could_not_judge", message="Doubt."), verdict(HALVE))),
    graded("lin", verdicts=(verdict(), verdict(HALVE, "needs_gpu"))),
    graded("max", verdicts=(verdict(DOUBLE, "needs_isolation"), verdict(HALVE))),
    end_of("bob", "quarantined", "The file is empty."),
    end_of("fay", "failed", "The grader's process stopped."),
]


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def found(results: list[Result], course: Course) -> list[tuple[str, str, str, int]]:
    """Kind, student, task and count of the queue's entries, once the gradebook is written."""
    out = OutFolder(course.root.parent / "out")
    out.path.mkdir(exist_ok=True)
    write_gradebook(results, out, course)
    return [(n.kind, n.student, n.task, n.count) for n in needs(results, out, course)]


def give(out: OutFolder, student: str, task: str, score: float) -> None:
    """Formgrader's database entry for manual points."""
    with closing(Gradebook(f"sqlite:///{out.gradebook}")) as book:
        grade = book.find_grade(task, LAB, LAB, student)
        grade.manual_score, grade.needs_manual_grade = score, False
        book.db.commit()


def test_points_for_work_that_was_handed_in_anew_are_named_once_more(course: Course) -> None:
    out = OutFolder(course.root.parent / "out")
    found([graded("ada"), graded("kim")], course)
    first = {SubmissionKey("ada", LAB): "one", SubmissionKey("kim", LAB): "two"}
    look_again(first, out)
    for student in ("ada", "kim"):
        give(out, student, EXPLAIN, 1.5)
    look_again(first, out)
    assert [n.kind for n in needs([graded("ada"), graded("kim")], out, course)] == []
    look_again({**first, SubmissionKey("ada", LAB): "other"}, out)
    (need,) = needs([graded("ada"), graded("kim")], out, course)
    assert (need.kind, need.student, need.task) == ("second_look", "ada", EXPLAIN)
    assert final_scores(out)[SubmissionKey("ada", LAB)][EXPLAIN] == 1.5
    give(out, "ada", EXPLAIN, 2.0)
    look_again({**first, SubmissionKey("ada", LAB): "other"}, out)
    assert needs([graded("ada"), graded("kim")], out, course) == []


def test_all_that_is_left_is_named_the_most_pressing_first(course: Course) -> None:
    assert found(RESULTS, course) == [
        ("failed", "fay", "", 1),
        ("quarantined", "bob", "", 1),
        ("not_judged", "kim", DOUBLE, 1),
        ("manual", "", EXPLAIN, 4),
        ("needs_gpu", "", HALVE, 1),
        ("needs_isolation", "", DOUBLE, 1),
        ("repaired", "ada", "", 1),
    ]


def test_what_a_person_gave_points_for_is_done(course: Course) -> None:
    found(RESULTS, course)
    out = OutFolder(course.root.parent / "out")
    give(out, "kim", DOUBLE, 1)
    give(out, "lin", EXPLAIN, 0)
    give(out, "lin", HALVE, 1)
    give(out, "max", DOUBLE, 2)
    give(out, "max", EXPLAIN, 1)
    for task in (DOUBLE, HALVE, EXPLAIN):
        give(out, "bob", task, 0)
    assert [(n.kind, n.count) for n in needs(RESULTS, out, course)] == [
        *(("failed", 1), ("manual", 2), ("repaired", 1))
    ]


def test_an_exercise_without_a_verdict_is_for_a_person(course: Course) -> None:
    assert ("not_judged", "ada", HALVE, 1) in found([graded(verdicts=(verdict(),))], course)


def test_notes_that_tell_of_no_repair_are_not_looked_at(course: Course) -> None:
    received = Receipt("ada", LAB, datetime(2026, 11, 20, tzinfo=UTC))
    notes = (
        *release_note({"peakmem": {"release": "0.1.0+12345678"}}, release()),
        Note("receipt", sentence(Semester(), received, 2)),
        Note("receipt", attempts._NO_RECEIPT),
    )
    assert len(notes) == 3
    assert all(kind != "repaired" for kind, *_ in found([graded(notes=notes)], course))
    assert any(kind == "repaired" for kind, *_ in found([graded(notes=(*notes, REPAIR))], course))


def test_given_cells_that_differ_are_a_repair_only_in_the_present_release(course: Course) -> None:
    notebook = json.loads(json.dumps(release()))
    notebook["cells"][0]["source"] = "# As it was"
    changed = take_in("ada", LAB, json.dumps(notebook).encode(), release()).notes
    assert len(changed) == 1
    assert any(kind == "repaired" for kind, *_ in found([graded(notes=changed)], course))
    of_other = release_note({"peakmem": {"release": "0.1.0+12345678"}}, release())
    notes = (*of_other, *changed)
    assert all(kind != "repaired" for kind, *_ in found([graded(notes=notes)], course))


def test_each_has_the_command_to_run_next_ready_to_be_pasted(course: Course) -> None:
    out = OutFolder(course.root.parent / "a class")
    out.path.mkdir()
    results = [graded("kim l", verdicts=(verdict(status="could_not_judge"), verdict(HALVE)))]
    write_gradebook(results, out, course)
    by_kind = {need.kind: need.next for need in needs(results, out, course)}
    explain = f"explain '{out}' 'kim l' {DOUBLE}"
    assert by_kind["not_judged"] == f"autograder --course {course} {explain}"
    assert by_kind["manual"] == f"autograder formgrade '{out}'"
    text = told(needs(results, out, course), out, course)
    assert f"    -> autograder --course {course} explain" in text


def test_a_command_for_this_very_course_need_not_name_it(course: Course) -> None:
    quarantined = needs(
        [end_of("bob", "quarantined", "The file is empty.")], OutFolder(course.root.parent / "none")
    )
    assert [need.next for need in quarantined] == [
        f"autograder grade {LAB} --submitted SUBMITTED --out {course.root.parent / 'none'}"
    ]


def test_the_text_is_short_however_much_there_is(course: Course) -> None:
    out = OutFolder(course.root.parent / "out")
    many = [end_of(f"q{n:02}", "quarantined", "The file is empty. " * 9) for n in range(50)]
    found([*RESULTS, *many], course)
    text = told(needs([*RESULTS, *many], out, course), out).splitlines()
    assert len(text) <= 26
    assert max(len(line) for line in text if str(out) not in line) <= 80
    assert "  Quarantined: unreadable as this lab's notebook; after resubmission (51):" in text
    assert "    ... and 50 more" in text
    assert "    kim  lab05-double  Doubt." in text
    assert str(out.manual_review) in text[0]
    assert told([], out) == "Manual review: nothing to do."


def test_ten_are_shown_where_there_is_one_kind_only(course: Course) -> None:
    out = OutFolder(course.root.parent / "out")
    many = [end_of(f"q{n:02}", "quarantined", "Empty.") for n in range(12)]
    found(many, course)
    text = told(needs(many, out, course), out)
    assert ("q09" in text, "q10" in text, "... and 2 more" in text) == (True, False, True)


def test_each_heading_fits_a_terminal(course: Course) -> None:
    out = OutFolder(course.root.parent / "out")
    found([end_of("ada", "quarantined", "Empty.")], course)
    (need,) = needs([end_of("ada", "quarantined", "Empty.")], out, course)
    headings = [
        line
        for kind in get_args(Kind)
        for line in told([replace(need, kind=kind, count=999)], out).splitlines()
        if line.endswith("(999):")
    ]
    assert len(headings) == len(get_args(Kind))
    assert max(map(len, headings)) <= 80


def test_a_line_names_the_lab_only_among_several(course: Course) -> None:
    out = OutFolder(course.root.parent / "out")
    here = end_of("ada", "quarantined", "Empty.")
    found([here], course)
    alone = needs([here], out, course)
    assert "    ada  Empty.\n" in told(alone, out)
    both = [*alone, replace(alone[0], lab="ps1")]
    assert {f"    ada  {LAB}  Empty.", "    ada  ps1  Empty."} <= set(told(both, out).splitlines())


def test_the_list_has_everybody_and_no_formula(course: Course, tmp_path: Path) -> None:
    results = [*RESULTS, end_of("@eve", "failed", "=cmd()")]
    rows = found(results, course)
    out = OutFolder(course.root.parent / "out")
    write_needs(needs(results, out, course), out)
    with out.manual_review.open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(rows) == 8
    assert (table[0]["student"], table[0]["why"]) == ("'@eve", "'=cmd()")
