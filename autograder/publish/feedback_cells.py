"""Renders a notebook's cells for a feedback page, as text, code and outputs, within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any

from markupsafe import Markup
from pygments.lexers.python import PythonLexer
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    String,
    _TokenType,
    is_token_subtype,
)

from autograder.base.markdown import markdown_to_html
from autograder.content import has_tasks
from autograder.model.result import Result
from autograder.notebooks.graded import graded_notebook, marks_of
from autograder.publish.feedback_marks import Mark

__all__ = ["cells_of"]

_LONGEST_TEXT = 20_000  # characters of one output; longer code isn't highlighted either
_LONGEST_PAGE = 1_500_000  # characters of all cells; a lab's solved notebook has 250,000
_KEPT = 256  # rendered cells in the cache, because a lab's own are the same on every page
# Classes of feedback.css. A page has thousands of tokens, and most of them are black.
_COLOURS = {
    Comment: "c",
    Keyword: "k",
    Name.Builtin: "k",
    Operator.Word: "k",
    Number: "n",
    String: "s",
}


def cells_of(
    result: Result, source: Mapping[str, Any], marks: Mapping[str, Mark]
) -> list[dict[str, Any]]:
    """Return the notebook's cells for the template, with a mark in place of each grade cell.

    Leaves out a lab's own code, such as a self-check, which the student has, but not its output.
    """
    if result.end != "graded":
        return []
    shows_tests = not has_tasks(result.lab)  # a lab with Tasks never runs its tests
    # In a lab, an unchanged cell may be an answer too, such as a prediction.
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
                shown["code"] = _coloured(cell["source"]) if shows_tests or not given else ""
                shown["outputs"] = [_output(output) for output in cell["outputs"]]
        size = _size(shown)
        if size > left:
            shown |= {"text": _LEFT_OUT, "code": "", "outputs": []}
        else:
            left -= size
        cells.append(shown)
    return cells


_LEFT_OUT = "This cell is not shown because the page would be too long. It is in your notebook."


def _size(shown: Mapping[str, Any]) -> int:
    """The length of a cell on the page; Markup isn't escaped again."""
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
    """Code as escaped HTML, with adjacent tokens of the same colour in one element."""
    if len(source) > _LONGEST_TEXT:
        return Markup.escape(source)
    html = Markup()
    for colour, tokens in groupby(
        PythonLexer().get_tokens(source), lambda token: _colour(token[0])
    ):
        text = Markup.escape("".join(text for _, text in tokens))
        html += Markup('<span class="{}">{}</span>').format(colour, text) if colour else text
    return html


def _colour(kind: _TokenType) -> str:
    return next((colour for of, colour in _COLOURS.items() if is_token_subtype(kind, of)), "")


def _output(output: Mapping[str, Any]) -> dict[str, Any]:
    """An output from `safe_output`, in the one form that the page shows."""
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
