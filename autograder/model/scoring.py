"""Scores the outputs of an ordinary grade cell by rules that an instructor chooses.

nbgrader's own rules are in `nbgrader.utils.determine_grade`: an error or a word on stderr earns
nothing, a plain number on the last line is the points, everything else is full marks. Where those
surprise instructors, `Rules` differ by default; `STOCK` has nbgrader's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["SANE", "STOCK", "Rules", "Score", "score"]

# How numpy and torch show one number, and how plain Python does.
_WRAPPED = re.compile(r"(?:(?:np|numpy)\.\w+|tensor)\(([^,()]+)(?:, dtype=[\w.]+)?\)")
_UNITTEST_FAILED = re.compile(r"^FAILED \((?:[a-z ]+=\d+(?:, )?)+\)$", re.M)
_DECIDE = ("error", "stream", "execute_result")
_ROUNDING = 1e-9  # of the maximum: a sum of parts may come out a little above it


@dataclass(frozen=True)
class Rules:
    """How ordinary assignments are scored and shown.

    `stderr_costs_all`: a grade cell that writes anything to stderr earns nothing.
    `odd_values_are_full_marks`: a last line that shows False, NaN, a negative number or one of
    numpy's or torch's numbers earns full marks. `no_output_is_full_marks`: a grade cell that
    shows no points of its own and fails nowhere earns full marks; else it waits for manual grading.
    `deleted_tests_wait`: a grade cell that the student deleted waits for manual grading; else it
    is put back and run. `show_hidden_tests`: students see hidden tests where they are run.
    """

    stderr_costs_all: bool = False
    odd_values_are_full_marks: bool = False
    no_output_is_full_marks: bool = True
    deleted_tests_wait: bool = False
    show_hidden_tests: bool = False


SANE = Rules()
STOCK = Rules(stderr_costs_all=True, odd_values_are_full_marks=True, deleted_tests_wait=True)


@dataclass(frozen=True)
class Score:
    """What a grade cell earns, None if it is graded manually; `said` is why it is not all."""

    points: float | None
    said: str = ""


def score(outputs: Sequence[Mapping[str, Any]], max_points: float, rules: Rules) -> Score:
    """Return what a grade cell with these outputs, nbformat 4's JSON, earns of `max_points`.

    An error decides, then what is on stderr, then the value of the last line. nbgrader goes by the
    first of them to come; where nothing is forged, that is the same.
    """
    of_kind = {kind: [o for o in outputs if o["output_type"] == kind] for kind in _DECIDE}
    if of_kind["error"]:
        return Score(0.0, _failure(of_kind["error"][0]))
    warned = [output for output in of_kind["stream"] if output["name"] == "stderr"]
    if warned and rules.stderr_costs_all:
        return Score(0.0, f"The test wrote to stderr: {_short(warned[0]['text'])}")
    # unittest raises nothing, and says all that it has to say there; what a thread prints meanwhile
    # may come between.
    if failed := _UNITTEST_FAILED.search("".join(output["text"] for output in warned)):
        return Score(0.0, f"The test's unittest {failed[0]}.")
    if of_kind["execute_result"]:
        # A value that the student's code shows in the middle comes before that of the last line.
        data = of_kind["execute_result"][-1]["data"]
        return _of_value(str(data.get("text/plain", "")), max_points, rules)
    if rules.no_output_is_full_marks:
        return Score(max_points)
    return Score(None, "The test said nothing of points. A person will look at it.")


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
            f"The test gave {points:g} points, but there are {max_points:g} to give. A person "
            "will look at it.",
        )
    if not points >= 0:  # negative, or NaN
        return Score(max_points)
    part = "" if points == max_points else f"The test gave {points:g} of {max_points:g} points."
    return Score(points, part)


def _failure(output: Mapping[str, Any]) -> str:
    name, value = str(output["ename"]), _short(str(output["evalue"]))
    return f"The test failed with {name}: {value}" if value else f"The test failed with {name}."


def _short(text: str, most: int = 500) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
