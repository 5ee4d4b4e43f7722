"""Writes one feedback page for each submission, with the student's work, points and messages.

A page is self-contained: no scripts, no requests, and nothing about the grader except its verdicts.
A Content-Security-Policy makes the browser enforce this, in case anything gets past `cleaning`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from autograder.base.course import COURSE, Course
from autograder.base.files import write_whole
from autograder.base.template import TEMPLATES, html_template
from autograder.model.lateness import ON_TIME, Lateness
from autograder.model.manual_grades import NO_MANUAL_GRADES, ManualGrades
from autograder.model.result import Result
from autograder.model.status import NEEDS, SCORED
from autograder.notebooks.binder import is_bound
from autograder.notebooks.graded import marks_of
from autograder.notebooks.questions import Question, questions_in, source_notebook
from autograder.publish.feedback_cells import cells_of
from autograder.publish.feedback_marks import mark_of
from autograder.publish.grades_csv import points
from autograder.store.out_folder import OutFolder

__all__ = ["feedback_html", "shows", "write_feedback"]

_NEXT = {
    "quarantined": (
        "The grader couldn't read your file as this lab's notebook, so it graded nothing.",
        "Open your notebook in JupyterLab, choose Run > Run All Cells, save it, and submit that "
        "file under its original name. If it opens and runs, show this page to your instructor.",
    ),
    "failed": (
        "The grader failed. This is not your fault and costs you nothing.",
        "You don't have to do anything: your submission is kept, and your instructor has a "
        "reminder to grade it again.",
    ),
}
_HEAD_BYTES = 250  # of a page, with the digests of the grades that it shows


def write_feedback(
    result: Result,
    out: OutFolder,
    course: Course = COURSE,
    given: ManualGrades = NO_MANUAL_GRADES,
    late: Lateness = ON_TIME,
) -> None:
    """Write the feedback page of one submission below `out`, in one step."""
    page = feedback_html(result, course, given, late).encode(errors="replace")
    write_whole(out.feedback_page(result.key), page)


def shows(page: Path, result: Result, given: ManualGrades) -> bool:
    """Tell whether a page shows these manual grades, and how exercises currently count."""
    with page.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    wanted = {b"by-hand": given.digest, b"counting": _counting_digest(result)}
    return all(_meta(head, name) == text for name, text in wanted.items())


def _meta(head: bytes, name: bytes) -> str:
    found = re.search(rb'<meta name="%s" content="(\w+)">' % name, head)
    return found[1].decode() if found else ""


def _counting_digest(result: Result) -> str:
    """A digest of the bonus and left-out exercises; empty if everything counts."""
    special = [
        (v.task, v.message if v.status == "left_out" else "bonus")
        for v in result.verdicts
        if not v.max_points
    ]
    return hashlib.sha256(repr(special).encode()).hexdigest()[:16] if special else ""


def feedback_html(
    result: Result,
    course: Course = COURSE,
    given: ManualGrades = NO_MANUAL_GRADES,
    late: Lateness = ON_TIME,
) -> str:
    """Return the feedback page of one submission; `given` grades replace the grader's."""
    source = source_notebook(result.lab, course)
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    questions = questions_in(source)
    comments = _comments(source, questions, given)
    marks = {
        q.id: mark_of(
            q,
            result,
            verdict=verdicts.get(q.id),
            by_hand=given.points.get(q.id),
            comment=comments.get(q.id, ""),
        )
        for q in questions
    }
    style, policy = _style()
    what_happened, what_next = _NEXT.get(result.end, ("", ""))
    page: str = _template().render(
        policy=policy,
        style=Markup(style),
        title=_title(source) or result.lab,
        result=result,
        received=[note.text for note in result.notes if note.kind == "receipt"],
        notes=[note.text for note in result.notes if note.kind != "receipt"],
        by_hand=given.digest,
        counting=_counting_digest(result),
        what_happened=what_happened,
        what_next=what_next,
        marks=list(marks.values()),
        total=_total(result, questions, given, late),
        cells=cells_of(result, source, marks),
    )
    return page


@cache
def _template() -> Template:
    return html_template("feedback", {"points": points})


@cache
def _style() -> tuple[str, str]:
    """The page's style sheet, and the policy that allows only this style sheet."""
    style = (TEMPLATES / "feedback.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return style, (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _title(source: Mapping[str, Any]) -> str:
    """The first heading; empty if several notebooks were joined, because each has its own."""
    if is_bound(source):
        return ""
    lines = "".join(source["cells"][0]["source"]).splitlines()
    return next((line[2:].strip() for line in lines if line.startswith("# ")), "")


def _comments(
    source: Mapping[str, Any], questions: Sequence[Question], given: ManualGrades
) -> dict[str, str]:
    """Manual comments by question, which is the comment's own cell or the next one below."""
    found: dict[str, list[str]] = {}
    ids, above = {question.id for question in questions}, list[str]()
    for name in (marks_of(cell).get("grade_id", "") for cell in source["cells"]):
        above += [given.comments[name]] if name in given.comments else []
        if name in ids:
            found[name], above = above, []
    return {name: "\n\n".join(texts) for name, texts in found.items()}


def _total(
    result: Result, questions: Sequence[Question], given: ManualGrades, late: Lateness
) -> dict[str, Any]:
    """The points so far and the points left out of them, as texts; empty if there are none."""
    judged = {v.task: v.points for v in result.verdicts if v.status in SCORED}
    earned = judged | dict(given.points)
    needs = {v.task: v.status for v in result.verdicts if v.task not in earned}
    most = {q.id: q.points for q in questions} | {v.task: v.max_points for v in result.verdicts}
    lacking = {
        what: sum(most[q.id] for q in questions if needs.get(q.id) == status)
        for status, what in NEEDS.items()
    }
    known = sum(most[q.id] for q in questions if q.id in earned)
    left = sum(most[q.id] for q in questions) - known - sum(lacking.values())
    bonus = sum(earned[task] for task, of in most.items() if not of and task in earned)
    total = sum(earned.values())
    return {
        "earned": points(total),
        "final": points(late.left_of(total)),
        "late": str(late) if late.percent_off else "",
        "of": points(known),
        "manual": points(left) if left else "",
        "lacking": [f"{points(of)} points need {what}" for what, of in lacking.items() if of],
        "bonus": points(bonus) if bonus else "",
    }
