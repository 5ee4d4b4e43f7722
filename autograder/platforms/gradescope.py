"""Writes a result as the results.json that Gradescope reads.

The format is Gradescope's "Autograder Specifications" (gradescope-autograders.readthedocs.io). All
texts are declared as plain text, cleaned of anything that a terminal or a browser would act on,
bounded in length, and free of spreadsheet formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograder.base.csv_table import no_formula
from autograder.base.plain_text import plain_text
from autograder.model.result import Result
from autograder.model.status import JUDGED, NEEDS, shown
from autograder.model.task import Verdict
from autograder.notebooks.questions import Question
from autograder.publish.grades_csv import points, said

__all__ = ["results_of"]

_LONGEST = 8000  # characters of one text

_WAITS = "Not judged: your instructor will look at it, and it costs nothing until then."
_NO_VERDICT = "The grader returned no verdict here."
_MANUAL = "Your instructor grades this answer."
_ENDS = {
    "quarantined": (
        "The grader couldn't read your file as this lab's notebook, so it graded nothing: the 0 "
        "isn't a grade. Open your notebook in JupyterLab, choose Run > Run All Cells, save it, "
        "and submit that file."
    ),
    "failed": (
        "The grader failed, so nothing was graded: the 0 isn't a grade. This is not your fault "
        "and costs you nothing; your instructor will have your submission graded again."
    ),
}


def results_of(result: Result, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the content of results.json for this result, JSON-ready.

    `questions` are the lab's. Judged questions have a score. Others (manual grading, doubts,
    exercises that need a GPU) have none, and their names say what they wait for. The total is of
    judged questions, and says so. Nothing goes on a leaderboard, and students don't see the
    grader's output.
    """
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    tests = []
    for number, question in enumerate(questions, start=1):
        test = _test(question, result, verdicts.get(question.id))
        tests.append({"number": str(number), **test, "visibility": "visible"})
    earned = sum(test.get("score", 0.0) for test in tests)
    return {
        "score": earned,
        "output": _safe("\n".join(_summary(result, questions, tests))),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"lab": result.lab, "end": result.end, "isolated": result.isolated},
    }


def _test(question: Question, result: Result, verdict: Verdict | None) -> dict[str, Any]:
    of = f"{points(question.points)} point{'s' * (question.points != 1)}"
    if result.end != "graded":
        return _open(question, f"not graded, {of}", _ENDS[result.end])
    if question.is_manual:
        return _open(question, f"manual grading, {of}", _MANUAL)
    if verdict is None:
        return _open(question, f"not judged, {of}", f"{_WAITS} {_NO_VERDICT}")
    if verdict.status in NEEDS:
        return _open(question, f"{shown(verdict.status)}, {of} left out", verdict.message)
    if verdict.status not in JUDGED:
        return _open(question, f"not judged, {of}", f"{_WAITS} {verdict.message}")
    return {
        "name": _safe(question.title),
        "score": float(verdict.points),
        "max_score": float(question.points),
        "status": "passed" if verdict.status == "right" else "failed",
        "output": _safe("\n".join([said(result, verdict.message), *_parts(verdict)])),
    }


def _open(question: Question, waits: str, message: str) -> dict[str, Any]:
    return {"name": _safe(f"{question.title} ({waits})"), "output": _safe(message)}


def _parts(verdict: Verdict) -> list[str]:
    if len(verdict.earned) < 2 or verdict.status == "right":
        return []
    return [f"{part}: {points(earned)}" for part, earned in verdict.earned.items()]


def _summary(
    result: Result, questions: Sequence[Question], tests: Sequence[dict[str, Any]]
) -> list[str]:
    if result.end != "graded":
        # The reason is for instructors, who see the grader's output.
        reason = [result.reason] if result.end == "quarantined" else []
        return [_ENDS[result.end], *reason, *map(str, result.notes)]
    judged = sum(test.get("max_score", 0.0) for test in tests)
    earned = sum(test.get("score", 0.0) for test in tests)
    needs = {v.task: v.status for v in result.verdicts if v.status in NEEDS}
    lacking = {
        what: sum(q.points for q in questions if needs.get(q.id) == status)
        for status, what in NEEDS.items()
    }
    waiting = sum(q.points for q in questions) - judged - sum(lacking.values())
    lines = [f"{points(earned)} of the {points(judged)} points that were judged."]
    if waiting:
        lines.append(f"{points(waiting)} points are waiting for manual grading.")
    lines += [
        f"{points(of)} points need {what} and are left out of the total."
        for what, of in lacking.items()
        if of
    ]
    if not result.isolated:
        lines.append("NOT ISOLATED: this code ran outside the sandbox.")
    return [*lines, *map(str, result.notes)]


def _safe(text: str) -> str:
    """A text for display: no terminal codes, no formula, of bounded length."""
    shown = plain_text(text).replace("\t", "    ")
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in shown).strip()
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]}\n[cut after {_LONGEST:,} characters]"
    return no_formula(shown)
