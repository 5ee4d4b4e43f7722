"""Scores an ordinary grade cell by its outputs, under rules that the instructor chooses.

nbgrader's own rules are in `nbgrader.utils.determine_grade`: an error or any text on stderr earns
nothing, a plain number on the last line is the score, and everything else earns full marks. The
default `Rules` differ where those surprise instructors; `STOCK` has nbgrader's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.base.plain_text import one_line

__all__ = ["SANE", "STOCK", "Rules", "Score", "score"]

# How numpy and torch display a single number.
_WRAPPED = re.compile(r"(?:(?:np|numpy)\.\w+|tensor)\(([^,()]+)(?:, dtype=[\w.]+)?\)")
_UNITTEST_FAILED = re.compile(r"^FAILED \((?:[a-z ]+=\d+(?:, )?)+\)$", re.M)
_DECIDE = ("error", "stream", "execute_result")
_MOST_SHOWN = 500  # characters of a message
_ROUNDING = 1e-9  # relative; a sum of parts may slightly exceed the maximum


@dataclass(frozen=True)
class Rules:
    """How ordinary assignments are scored and shown."""

    #: A grade cell that writes anything to stderr earns nothing.
    stderr_costs_all: bool = False
    #: A last line that shows False, NaN, a negative number, or a numpy or torch number
    #: earns full marks.
    odd_values_are_full_marks: bool = False
    #: A grade cell that shows no points and doesn't fail earns full marks; otherwise it waits for
    #: manual grading.
    no_output_is_full_marks: bool = True
    #: A grade cell that the student deleted waits for manual grading; otherwise it is restored and
    #: run.
    deleted_tests_wait: bool = False
    #: Students see hidden tests in their feedback.
    show_hidden_tests: bool = False


SANE = Rules()
STOCK = Rules(stderr_costs_all=True, odd_values_are_full_marks=True, deleted_tests_wait=True)


@dataclass(frozen=True)
class Score:
    """The score of a grade cell."""

    #: Points, or None if the cell is graded manually.
    points: float | None
    #: Why these aren't full marks; empty if they are.
    said: str = ""


def score(outputs: Sequence[Mapping[str, Any]], max_points: float, rules: Rules) -> Score:
    """Return the score, out of `max_points`, of a grade cell with these nbformat 4 outputs.

    An error decides, then the text on stderr, then the value of the last line. nbgrader decides by
    whichever comes first; the two differ only if outputs are forged.
    """
    of_kind = {kind: [o for o in outputs if o["output_type"] == kind] for kind in _DECIDE}
    if of_kind["error"]:
        return Score(0.0, _failure(of_kind["error"][0]))
    warned = [output for output in of_kind["stream"] if output["name"] == "stderr"]
    if warned and rules.stderr_costs_all:
        return Score(0.0, f"The test wrote to stderr: {one_line(warned[0]['text'], _MOST_SHOWN)}")
    # unittest raises nothing and reports only on stderr, where a thread's output may interleave.
    if failed := _UNITTEST_FAILED.search("".join(output["text"] for output in warned)):
        return Score(0.0, f"The test's unittest {failed[0]}.")
    if of_kind["execute_result"]:
        # Values that the student's code displays come before that of the last line.
        data = of_kind["execute_result"][-1]["data"]
        return _of_value(str(data.get("text/plain", "")), max_points, rules)
    if rules.no_output_is_full_marks:
        return Score(max_points)
    return Score(None, "The test showed no points. An instructor will look at it.")


def _of_value(text: str, max_points: float, rules: Rules) -> Score:
    if not rules.odd_values_are_full_marks:
        wrapped = _WRAPPED.fullmatch(text.strip())
        text = wrapped[1] if wrapped else text
        if text.strip() in ("True", "False"):
            right = text.strip() == "True"
            return Score(max_points) if right else Score(0.0, "The test's last line is False.")
    try:
        points = float(text)
    except ValueError:
        return Score(max_points)
    if not rules.odd_values_are_full_marks:
        if points < 0:
            return Score(0.0, f"The test gave {points:g} points.")
        if max_points < points <= max_points + _ROUNDING * max(1.0, max_points):
            points = max_points
    if points > max_points or (points != points and not rules.odd_values_are_full_marks):
        return Score(
            None,
            f"The test gave {points:g} points, but the maximum is {max_points:g}. An instructor "
            "will look at it.",
        )
    if not points >= 0:  # negative, or NaN
        return Score(max_points)
    part = "" if points == max_points else f"The test gave {points:g} of {max_points:g} points."
    return Score(points, part)


def _failure(output: Mapping[str, Any]) -> str:
    name, value = str(output["ename"]), one_line(str(output["evalue"]), _MOST_SHOWN)
    return f"The test failed with {name}: {value}" if value else f"The test failed with {name}."
