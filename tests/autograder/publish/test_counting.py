"""Core, bonus and omitted points in all results: table, gradebook, pages, exports."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.base.course import COURSE
from autograder.content import find_lab, lab_names
from autograder.model.result import Result
from autograder.model.submission import SubmissionKey
from autograder.model.task import Verdict
from autograder.notebooks.questions import questions_in, source_notebook
from autograder.publish.audit import audit
from autograder.publish.final_grades import people, standings
from autograder.publish.item_analysis import analyse
from autograder.publish.publishing import publish
from autograder.publish.review_queue import needs
from autograder.publish.statistics import statistics_of
from autograder.publish.summary import summaries
from autograder.publish.tables import write_canvas, write_students
from autograder.rules.counting import own_points
from autograder.rules.semester import read_semester
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.roll import note_taken
from autograder.store.scores import manual_grades
from tests.autograder.small_results import TERMS, give_points
from tests.files import csv_records

LAB = find_lab("lab04_checkpointing")
CORE, BONUS = "lab04-checkpoint", "lab04-plan"
WORDS = next(q.id for q in questions_in(source_notebook(LAB.name)) if q.is_manual)
POINTS = {q.id: q.points for q in questions_in(source_notebook(LAB.name))}
CORE_POINTS = sum(points for task, points in POINTS.items() if task not in LAB.stretch)
ALL_POINTS = sum(POINTS.values())


@pytest.mark.parametrize("lab", lab_names())
def test_headings_name_the_stretch_that_the_tasks_name(lab: str) -> None:
    questions = questions_in(source_notebook(lab))
    assert {q.id for q in questions if q.is_stretch} == find_lab(lab).stretch != set()


@pytest.mark.parametrize("heading", ["", "## 1.2 Title", "## 1.2 Title (stretching)"])
def test_what_no_heading_names_as_stretch_is_core(heading: str) -> None:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": heading}]
    marks = {"grade": True, "solution": False, "points": 1, "grade_id": "q1"}
    cells += [{"cell_type": "code", "metadata": {"nbgrader": marks}, "source": ""}]
    assert [q.is_stretch for q in questions_in({"cells": cells})] == [False]


def graded(student: str, core: float, stretch: float) -> Result:
    """A submission that earned these parts of the points of each exercise."""
    verdicts = []
    for task in LAB.tasks:
        points = task.points * (stretch if task.stretch else core)
        status = "right" if points == task.points else "wrong" if not points else "partly"
        verdicts.append(Verdict(task.id, status, {"all": points}, task.points, "Said."))
    return Result(student, LAB.name, "graded", verdicts=tuple(verdicts))


@pytest.fixture
def out(tmp_path: Path) -> OutFolder:
    """A class of three: all solved, the core alone, and an unreadable one; one more is absent."""
    results = [graded("ada", 1, 1), graded("kim", 1, 0)]
    results.append(Result("lin", LAB.name, "quarantined", "It is no notebook."))
    out = OutFolder(tmp_path)
    (tmp_path / "roster.csv").write_text("id\nada\nkim\nlin\nzoe\n")
    note_taken(out, LAB.name, [result.student for result in results])
    for result in results:
        Journal(out).keep(result, result.student.encode(), {}, TERMS)
    return out


def rules(out: OutFolder, text: str = "") -> list[Result]:
    (out.path / "semester.toml").write_text(f'roster = "roster.csv"\n{text}\n')
    return publish(out, COURSE)


def row(out: OutFolder, student: str, task: str) -> dict[str, str]:
    (found,) = (r for r in csv_records(out.grades) if (r["student"], r["task"]) == (student, task))
    return found


def maximum(out: OutFolder) -> float:
    """The lab's maximum as nbgrader has it."""
    with Gradebook(f"sqlite:///{out.gradebook}") as book:
        return float(book.find_assignment(LAB.name).max_score)


def score(out: OutFolder, student: str) -> float:
    with Gradebook(f"sqlite:///{out.gradebook}") as book:
        return float(book.find_submission(LAB.name, student).score)


def page(out: OutFolder, student: str) -> str:
    return out.feedback_page(SubmissionKey(student, LAB.name)).read_text(encoding="utf-8")


def exported(out: OutFolder) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """The rows of students.csv and of Canvas's file, by student."""
    give_points(out.path, "ada", WORDS, 0)
    give_points(out.path, "kim", WORDS, 0)
    standing = standings(out)
    students = people(out, ["ada", "kim", "zoe"])
    write_students(standing, students, out.path / "students.csv")
    write_canvas(standing, students, out.path / "canvas.csv")
    canvas = {
        r["SIS User ID"] or r["SIS Login ID"]: r for r in csv_records(out.path / "canvas.csv")
    }
    return {r["student"]: r for r in csv_records(out.path / "students.csv")}, canvas


def test_required_the_stretch_counts_as_all_else_and_both_sums_are_kept(out: OutFolder) -> None:
    rules(out, 'stretch = "required"')
    assert audit(out) == []
    assert maximum(out) == ALL_POINTS
    assert (row(out, "ada", CORE)["kind"], row(out, "ada", BONUS)["kind"]) == ("core", "stretch")
    students, _ = exported(out)
    stretch = ALL_POINTS - CORE_POINTS
    ada, kim = students["ada"], students["kim"]
    assert float(ada[f"{LAB.name} core"]) == CORE_POINTS - POINTS[WORDS]
    assert float(ada[f"{LAB.name} stretch"]) == stretch
    assert float(kim[f"{LAB.name} stretch"]) == 0
    assert float(kim[f"{LAB.name} of"]) == ALL_POINTS


def test_a_bonus_is_earned_above_the_maximum(out: OutFolder) -> None:
    results = rules(out, 'stretch = "bonus"')
    assert audit(out) == []
    assert maximum(out) == CORE_POINTS
    assert score(out, "ada") == ALL_POINTS - POINTS[WORDS]
    assert score(out, "kim") == CORE_POINTS - POINTS[WORDS]
    bonus = row(out, "ada", BONUS)
    assert (bonus["score"], bonus["max_score"]) == (f"{POINTS[BONUS]:g}", "0")
    assert [row(out, who, BONUS)["max_score"] for who in ("lin", "zoe")] == ["0", "0"]
    assert row(out, "zoe", CORE)["max_score"] == f"{POINTS[CORE]:g}"
    assert "bonus points, above the maximum" in page(out, "ada")
    assert f"of {CORE_POINTS - POINTS[WORDS]:g} points so far" in page(out, "ada")
    assert "bonus points, above" not in page(out, "kim")
    students, canvas = exported(out)
    assert float(students["ada"][f"{LAB.name} of"]) == CORE_POINTS
    assert float(students["ada"][f"{LAB.name} final"]) == ALL_POINTS - POINTS[WORDS]
    assert float(canvas["ada"][LAB.name]) == ALL_POINTS - POINTS[WORDS]
    (summary,) = summaries(results)
    assert summary.max_points == CORE_POINTS - POINTS[WORDS]
    # Statistics and item analysis tell how an exercise went, whether or not it is a bonus.
    full = [own_points(result, COURSE) for result in results]
    items = {item.task: item for item in analyse(LAB.name, full, lambda *_: "").items}
    assert (items[BONUS].max_points, items[BONUS].pass_rate) == (POINTS[BONUS], 0.5)
    most = {one.task: one.max_points for one in statistics_of(full)[LAB.name]}
    assert most == {task: points for task, points in POINTS.items() if task != WORDS}


def test_a_stretch_that_is_left_out_is_shown_with_the_reason_and_counts_nowhere(
    out: OutFolder,
) -> None:
    rules(out, 'stretch = "left_out"')
    assert audit(out) == []
    assert maximum(out) == CORE_POINTS
    assert score(out, "ada") == score(out, "kim") == CORE_POINTS - POINTS[WORDS]
    left = row(out, "ada", BONUS)
    assert (left["status"], left["score"], left["max_score"]) == ("left out", "", "0")
    assert "doesn't count in this course" in left["message"]
    assert page(out, "ada").count("Left out") >= len(LAB.stretch)
    students, canvas = exported(out)
    assert float(students["ada"][f"{LAB.name} stretch"]) == 0
    assert students["ada"][f"{LAB.name} waiting"] == "0"
    assert float(canvas["ada"][LAB.name]) == CORE_POINTS - POINTS[WORDS]


def test_one_exercise_is_left_out_with_its_reason(out: OutFolder) -> None:
    results = rules(out, f'[left_out]\n{CORE} = "Its probe was too slow for our machine."')
    assert audit(out) == []
    assert maximum(out) == ALL_POINTS - POINTS[CORE]
    assert "Its probe was too slow" in row(out, "kim", CORE)["message"]
    assert "Its probe was too slow" in page(out, "kim")
    full = [own_points(result, COURSE) for result in results]
    (left,) = (i for i in analyse(LAB.name, full, lambda *_: "").items if i.task == CORE)
    assert (left.judged, left.advice) == (0, ("Left out.",))
    waiting = [n.task for n in needs(results, out, COURSE) if n.kind == "could_not_judge"]
    assert waiting == []


def test_when_the_rules_change_all_follows_at_the_next_publication(out: OutFolder) -> None:
    for text, most in (
        ("", ALL_POINTS),
        ('stretch = "bonus"', CORE_POINTS),
        ('stretch = "left_out"', CORE_POINTS),
        (f'[left_out]\n{CORE} = "Twice in the text."', ALL_POINTS - POINTS[CORE]),
        ("", ALL_POINTS),
    ):
        rules(out, text)
        assert maximum(out) == most
        assert audit(out) == []
        assert ("Left out" in page(out, "ada")) is ("left_out" in text)
        assert ("bonus points" in page(out, "ada")) is ("bonus" in text)
    assert manual_grades(out) == {}, "no counting passes for what people gave"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('stretch = "maybe"', "stretch is 'maybe'; expected one of required, bonus, left_out"),
        ("[left_out]\nlab04-plan = ' '", "left_out.lab04-plan is ' '; expected the reason"),
        ("[left_out]\nlab04-plans = 'x'", "left_out.lab04-plans is 'x'; expected a task's id"),
    ],
)
def test_a_rule_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "semester.toml").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_semester(OutFolder(tmp_path))
