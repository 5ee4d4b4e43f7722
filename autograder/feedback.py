"""Feedback: one page a submission, with the student's own work, points and messages.

A page stands alone: no script, no request, nothing of the grader's but its verdicts. A
Content-Security-Policy says so to the browser too, should anything have got past `clean`.
"""

from __future__ import annotations

import base64
import hashlib
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

from autograder.binder import is_bound
from autograder.export import FOR_A_PERSON, JUDGED, points
from autograder.files import inside, write_whole
from autograder.graded import graded_notebook, marks_of
from autograder.markdown import markdown_to_html
from autograder.questions import COURSE, Question, questions_in, source_notebook
from autograder.result import Result
from autograder.task import Verdict
from autograder.tasks import has_tasks

__all__ = ["feedback_html", "feedback_path", "write_feedback"]

_TEMPLATES = Path(__file__).parent / "templates"
_LONGEST_TEXT = 20_000  # characters of one output; code above this is not coloured either
_KEPT = 256  # rendered cells that are kept: a lab's own are the same on every page

# Icon and words of each status, so that no meaning hangs on a colour.
_WORDS = {
    "right": ("✔", "Right"),
    "partly": ("◐", "Partly right"),
    "wrong": ("✘", "Not right yet"),
    "needs_gpu": ("▣", "Needs a GPU"),
    "could_not_judge": ("?", "Not judged yet"),
    FOR_A_PERSON: ("✎", "Read by a person"),
    "quarantined": ("?", "Not graded"),
    "failed": ("?", "Not graded"),
}
_NEXT = {
    "quarantined": (
        "Your file could not be read as this lab's notebook, so nothing in it was graded.",
        "Open your notebook in JupyterLab, choose Run > Run All Cells, save it, and hand in that "
        "file under its original name. If it opens and runs, show this page to your instructor.",
    ),
    "failed": (
        "Grading broke on our side. This is not your fault and costs you nothing.",
        "You need not do anything: your submission is kept, and your instructor has it on the list "
        "of those to grade again.",
    ),
}
_BY_PERSON = "Your instructor reads this answer and gives its points."
_NO_VERDICT = "The grader returned no verdict here. A person will look at it."


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


def write_feedback(result: Result, out: Path, root: Path = COURSE) -> None:
    """Write the feedback page of one submission below `out`, in one step."""
    page = feedback_html(result, root).encode(errors="replace")
    write_whole(feedback_path(result, out), page)


def feedback_path(result: Result, out: Path) -> Path:
    """Return where a submission's page lies: `out`/feedback/<student>/<lab>.html."""
    return inside(out, "feedback", result.student, f"{result.lab}.html")


def feedback_html(result: Result, root: Path = COURSE) -> str:
    """Return the feedback page of one submission; `root` holds the course's `solutions`."""
    source = source_notebook(result.lab, root)
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    questions = questions_in(source)
    marks = {q.id: _mark(q, result, verdicts.get(q.id)) for q in questions}
    style, policy = _style()
    what_happened, what_next = _NEXT.get(result.end, ("", ""))
    page: str = _template().render(
        policy=policy,
        style=Markup(style),
        title=_title(source) or result.lab,
        result=result,
        what_happened=what_happened,
        what_next=what_next,
        marks=list(marks.values()),
        total=_total(result, questions),
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


def _mark(question: Question, result: Result, verdict: Verdict | None) -> _Mark:
    score, mistake = "-", ""
    parts: tuple[tuple[str, float], ...] = ()
    if result.end != "graded":
        status, message = str(result.end), ""
    elif question.by_person and verdict is None:
        status, message = FOR_A_PERSON, _BY_PERSON
    elif verdict is None:
        status, message = "could_not_judge", _NO_VERDICT
    else:
        status, message = verdict.status, verdict.message
        mistake = (verdict.mistake or "").replace("_", " ")
        if status in JUDGED:
            score = points(verdict.points)
            parts = tuple(verdict.earned.items()) if len(verdict.earned) > 1 else ()
    return _Mark(
        id=question.id,
        title=question.title,
        status=status,
        icon=_WORDS[status][0],
        words=_WORDS[status][1],
        score=f"{score} of {points(question.points)}",
        message=message,
        mistake=mistake,
        parts=parts,
    )


def _total(result: Result, questions: Sequence[Question]) -> dict[str, str]:
    """The points so far, and what is left out of them, each as text; empty where there is none."""
    judged = [v for v in result.verdicts if v.status in JUDGED]
    statuses = {verdict.task: verdict.status for verdict in result.verdicts}
    gpu = sum(q.points for q in questions if statuses.get(q.id) == "needs_gpu")
    known = sum(q.points for q in questions if statuses.get(q.id) in JUDGED)
    left = sum(q.points for q in questions) - known - gpu
    return {
        "earned": points(sum(verdict.points for verdict in judged)),
        "of": points(known),
        "person": points(left) if left else "",
        "gpu": points(gpu) if gpu else "",
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
        cells.append(shown)
    return cells


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
