"""Writes one feedback page a submission, with the student's work, points and messages.

A page stands alone: no script, no request, nothing of the grader's but its verdicts. A
Content-Security-Policy says so to the browser too, should anything have got past `clean`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.python import PythonLexer

from autograder.base.course import COURSE, Course
from autograder.base.files import write_whole
from autograder.base.markdown import markdown_to_html
from autograder.content import has_tasks
from autograder.model.lateness import ON_TIME, Lateness
from autograder.model.manual_grades import NOTHING, Given
from autograder.model.result import Result
from autograder.model.status import MANUAL, SCORED, UNANSWERED, capitalized, shown
from autograder.model.task import Verdict
from autograder.notebooks.binder import is_bound
from autograder.notebooks.graded import graded_notebook, marks_of
from autograder.notebooks.questions import Question, questions_in, source_notebook
from autograder.publish.export import points
from autograder.store.out_folder import OutFolder

__all__ = ["feedback_html", "shows", "write_feedback"]

_TEMPLATES = Path(__file__).parents[1] / "templates"
_LONGEST_TEXT = 20_000  # characters of one output; code above this is not coloured either
_LONGEST_PAGE = 1_500_000  # characters of all cells; a lab's solved notebook has 250,000
_KEPT = 256  # rendered cells that are kept: a lab's own are the same on every page

# No meaning hangs on a colour: each status has an icon, and its words beside it.
_ICONS = {
    "right": "✔",
    "partly": "◐",
    "wrong": "✘",
    "needs_gpu": "▣",
    "could_not_judge": "?",
    UNANSWERED: "∅",
    "left_out": "○",
    MANUAL: "✎",
    "quarantined": "?",
    "failed": "?",
}
_NEXT = {
    "quarantined": (
        "Your file could not be read as this lab's notebook, so nothing in it was graded.",
        "Open your notebook in JupyterLab, choose Run > Run All Cells, save it, and submit that "
        "file under its original name. If it opens and runs, show this page to your instructor.",
    ),
    "failed": (
        "Grading broke on our side. This is not your fault and costs you nothing.",
        "You need not do anything: your submission is kept, and your instructor has it on the list "
        "of those to grade again.",
    ),
}
_MANUAL = "Your instructor grades this answer."
_GIVEN = "Your instructor gave these points."
_ENDS = {"quarantined", "failed"}  # in which nothing was judged
_HEAD_BYTES = 250  # of a page, which say which manual grades it shows
_NO_VERDICT = "The grader returned no verdict here. Your instructor will look at it."


@dataclass(frozen=True)
class _Mark:
    """What the page says of one question."""

    id: str
    title: str
    status: str
    icon: str
    words: str
    score: str
    message: str
    mistake: str
    parts: tuple[tuple[str, float], ...]
    comment: str


def write_feedback(
    result: Result,
    out: OutFolder,
    course: Course = COURSE,
    given: Given = NOTHING,
    late: Lateness = ON_TIME,
) -> None:
    """Write the feedback page of one submission below `out`, in one step."""
    page = feedback_html(result, course, given, late).encode(errors="replace")
    write_whole(out.feedback_page(result.key), page)


def shows(page: Path, result: Result, given: Given) -> bool:
    """Tell whether this page shows these manual grades, and exercises as they count now."""
    with page.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    wanted = {b"by-hand": given.digest, b"counting": _counting_digest(result)}
    return all(_meta(head, name) == text for name, text in wanted.items())


def _meta(head: bytes, name: bytes) -> str:
    found = re.search(rb'<meta name="%s" content="(\w+)">' % name, head)
    return found[1].decode() if found else ""


def _counting_digest(result: Result) -> str:
    """A digest of what is a bonus or left out, or "" if everything counts."""
    special = [
        (v.task, v.message if v.status == "left_out" else "bonus")
        for v in result.verdicts
        if not v.max_points
    ]
    return hashlib.sha256(repr(special).encode()).hexdigest()[:16] if special else ""


def feedback_html(
    result: Result, course: Course = COURSE, given: Given = NOTHING, late: Lateness = ON_TIME
) -> str:
    """Return the feedback page of one submission.

    The manual grades `given` stand in place of the grader's.
    """
    source = source_notebook(result.lab, course)
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    questions = questions_in(source)
    comments = _comments(source, questions, given)
    marks = {
        q.id: _mark(q, result, verdicts.get(q.id), given.points.get(q.id), comments.get(q.id, ""))
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
        cells=_cells(result, source, marks),
    )
    return page


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["points"] = points
    return environment.get_template("feedback.html.j2")


@cache
def _style() -> tuple[str, str]:
    """The page's style sheet, and the policy that lets this very text apply and nothing else."""
    style = (_TEMPLATES / "feedback.css").read_text(encoding="utf-8")
    formatter = HtmlFormatter(style="xcode")
    style += formatter.get_style_defs("pre.code")  # type: ignore[no-untyped-call]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return style, (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _title(source: Mapping[str, Any]) -> str:
    """The first heading; none where several notebooks are bound, each with its own."""
    if is_bound(source):
        return ""
    lines = "".join(source["cells"][0]["source"]).splitlines()
    return next((line[2:].strip() for line in lines if line.startswith("# ")), "")


def _comments(
    source: Mapping[str, Any], questions: Sequence[Question], given: Given
) -> dict[str, str]:
    """Manual comments by the question they are about: their own cell's, or the next below."""
    found: dict[str, list[str]] = {}
    ids, above = {question.id for question in questions}, list[str]()
    for name in (marks_of(cell).get("grade_id", "") for cell in source["cells"]):
        above += [given.comments[name]] if name in given.comments else []
        if name in ids:
            found[name], above = above, []
    return {name: "\n\n".join(texts) for name, texts in found.items()}


def _mark(
    question: Question,
    result: Result,
    verdict: Verdict | None,
    by_hand: float | None,
    comment: str,
) -> _Mark:
    score, mistake = "-", ""
    parts: tuple[tuple[str, float], ...] = ()
    if result.end != "graded":
        status, message = str(result.end), ""
    elif question.by_person and verdict is None:
        status, message = MANUAL, _MANUAL
    elif verdict is None:
        status, message = "could_not_judge", _NO_VERDICT
    else:
        status, message = verdict.status, verdict.message
        mistake = (verdict.mistake or "").replace("_", " ")
        if status in SCORED:
            score = points(verdict.points)
            parts = tuple(verdict.earned.items()) if len(verdict.earned) > 1 else ()
    if by_hand is not None:
        said = "" if verdict is None or result.end != "graded" else f" The grader said: {message}"
        status, message, score, parts = MANUAL, f"{_GIVEN}{said}", points(by_hand), ()
    return _Mark(
        id=question.id,
        title=question.title,
        status=status,
        icon=_ICONS[status],
        words=capitalized(shown("could_not_judge" if status in _ENDS else status)),
        score=_score(score, question, verdict),
        message=message,
        mistake=mistake,
        parts=parts,
        comment=comment,
    )


def _score(score: str, question: Question, verdict: Verdict | None) -> str:
    if verdict is not None and verdict.status == "left_out":
        return "no"
    bonus = verdict is not None and not verdict.max_points
    return f"{score} of {points(question.points)}{' bonus' if bonus else ''}"


def _total(
    result: Result, questions: Sequence[Question], given: Given, late: Lateness
) -> dict[str, str]:
    """The points so far, and what is left out of them, each as text; empty where there is none."""
    judged = {v.task: v.points for v in result.verdicts if v.status in SCORED}
    earned = judged | dict(given.points)
    no_gpu = {v.task for v in result.verdicts if v.status == "needs_gpu"} - earned.keys()
    most = {q.id: q.points for q in questions} | {v.task: v.max_points for v in result.verdicts}
    gpu = sum(most[q.id] for q in questions if q.id in no_gpu)
    known = sum(most[q.id] for q in questions if q.id in earned)
    left = sum(most[q.id] for q in questions) - known - gpu
    bonus = sum(earned[task] for task, of in most.items() if not of and task in earned)
    total = sum(earned.values())
    return {
        "earned": points(total),
        "final": points(late.left_of(total)),
        "late": str(late) if late.percent_off else "",
        "of": points(known),
        "manual": points(left) if left else "",
        "gpu": points(gpu) if gpu else "",
        "bonus": points(bonus) if bonus else "",
    }


def _cells(
    result: Result, source: Mapping[str, Any], marks: Mapping[str, _Mark]
) -> list[dict[str, Any]]:
    """The notebook's cells as the template shows them; a grade cell is shown as its mark."""
    if result.end != "graded":
        return []
    shows_tests = not has_tasks(result.lab)  # those of a lab with Tasks never run
    # In a lab what students leave as it was is theirs too: a prediction, for one.
    theirs = {cell["source"] for cell in source["cells"]} if shows_tests else set()
    cells = []
    left = _LONGEST_PAGE
    for cell in graded_notebook(result, source)["cells"]:
        nbgrader = marks_of(cell)
        mark = marks.get(nbgrader.get("grade_id", ""))
        untouched = cell["source"] in theirs and not nbgrader.get("solution")
        is_test = nbgrader.get("grade") and not nbgrader.get("solution")
        given = bool(nbgrader.get("locked") or is_test) or untouched
        shown: dict[str, Any] = {
            "given": given,
            "mark": mark,
            "text": "",
            "code": "",
            "outputs": [],
        }
        if mark is None or not given or shows_tests:
            if cell["cell_type"] == "markdown":
                shown["text"] = _rendered(cell["source"], cell.get("attachments"))
            else:
                shown["code"] = _coloured(cell["source"])
                shown["outputs"] = [_output(output) for output in cell["outputs"]]
        size = _size(shown)
        if size > left:
            shown |= {"text": _LEFT_OUT, "code": "", "outputs": []}
        else:
            left -= size
        cells.append(shown)
    return cells


_LEFT_OUT = "This cell is left out: the page would be too long with it. Your notebook has it."


def _size(shown: Mapping[str, Any]) -> int:
    """Characters that a cell takes on the page; what is Markup is not escaped again."""
    texts = [shown["text"], shown["code"]]
    texts += [text for output in shown["outputs"] for text in output.values()]
    return sum(len(Markup.escape(text)) for text in texts)


def _rendered(source: str, attachments: Mapping[str, Any] | None) -> Markup:
    if attachments:
        return Markup(markdown_to_html(source, attachments))
    return Markup(_cached_markdown(source))


_cached_markdown = lru_cache(_KEPT)(markdown_to_html)


@lru_cache(_KEPT)
def _coloured(source: str) -> Markup:
    """Code as HTML; pygments escapes all of it."""
    if len(source) > _LONGEST_TEXT:
        return Markup.escape(source)
    return Markup(highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)))


def _output(output: Mapping[str, Any]) -> dict[str, Any]:
    """An output that `safe_output` made, as the one form in which the page shows it."""
    kind = output["output_type"]
    if kind == "stream":
        return {"text": _shortened(output["text"]), "kind": output["name"]}
    if kind == "error":
        lines = output["traceback"] or [f"{output['ename']}: {output['evalue']}"]
        return {"text": _shortened("\n".join(lines)), "kind": "error"}
    data = output["data"]
    for mime in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        if mime in data:
            return {"image": f"data:{mime};base64,{data[mime]}"}
    if "text/html" in data:
        return {"html": Markup(data["text/html"])}
    return {"text": _shortened(data["text/plain"]), "kind": "value"}


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n\n[... {left_out:,} characters left out ...]\n\n{text[-half:]}"
