"""A small class's results without grading: one submission for every outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autograder.base.course import Course
from autograder.model.result import Result
from autograder.model.task import Verdict
from tests.autograder.small_release import LAB, release, solved

__all__ = ["DOUBLE", "EXPLAIN", "HALVE", "PNG", "end_of", "graded", "make_course", "verdict"]

DOUBLE, HALVE, EXPLAIN = "lab05-double", "lab05-halve", "lab05-explain"

# One black pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def make_course(root: Path) -> Course:
    """Write the lab's built notebook below `root`, as `autograder build` leaves it."""
    path = root / "solutions" / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(release()), encoding="utf-8")
    return Course(root)


def verdict(task: str = DOUBLE, status: Any = "right", **changes: Any) -> Verdict:
    """Two points for `double`, in two parts; one for `halve`."""
    full = {"value": 1.5, "edges": 0.5} if task == DOUBLE else {"value": 1.0}
    earned = {
        "right": full,
        "partly": full | {"edges": 0.0},
    }.get(status, dict.fromkeys(full, 0.0))
    message = "Right." if status == "right" else "Not earned: edges."
    fields = {"earned": earned, "max_points": sum(full.values()), "message": message}
    return Verdict(**({"task": task, "status": status} | fields | changes))


def graded(student: str = "ada", **changes: Any) -> Result:
    """A submission with `double` right and `halve` wrong."""
    fields: dict[str, Any] = {
        "verdicts": (verdict(), verdict(HALVE, "wrong", message="It is x / 2.", mistake="squares")),
        "notebook": solved(double="def double(x):\n    return 2 * x"),
    }
    return Result(student, LAB, "graded", **(fields | changes))


def end_of(student: str, end: Any, reason: str) -> Result:
    """A submission that nobody graded."""
    return Result(student, LAB, end, reason)
