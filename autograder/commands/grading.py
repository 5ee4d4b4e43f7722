"""Grading: `autograder grade` and `regrade`, from a folder of submissions to grades."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.commands.common import (
    OK,
    USAGE,
    add_running,
    classroom_of,
    grade_with_progress,
    publish,
    report,
    report_audit,
    sandbox_works,
)

if TYPE_CHECKING:
    from autograder.classroom import Classroom
    from autograder.commands.common import Commands
    from autograder.result import Result

__all__ = ["add_grade", "add_regrade"]


def add_grade(commands: Commands) -> None:
    """Add `grade`."""
    command = commands.add_parser("grade", help="grade the submissions of one lab")
    _add_class(command)
    command.set_defaults(run=_grade)


def add_regrade(commands: Commands) -> None:
    """Add `regrade`."""
    command = commands.add_parser(
        "regrade", help="grade again after a lab has changed; show what changes, and ask"
    )
    _add_class(command)
    command.set_defaults(run=_regrade)


def _add_class(command: argparse.ArgumentParser) -> None:
    command.add_argument("lab", metavar="LAB")
    command.add_argument(
        "--submitted",
        type=Path,
        required=True,
        metavar="DIR",
        help="the notebooks, laid out as DIR/<student>/<lab>/<lab>.ipynb",
    )
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    add_running(command)
    command.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="have a Dask cluster grade, whose machines see OUT and the submissions at one path",
    )


def _grade(options: argparse.Namespace) -> int:
    from autograder import classroom

    if not options.insecure and not sandbox_works(quiet=True):
        return USAGE
    room = classroom_of(options, options.lab, options.out)
    for sentence in classroom.outdated(room.out, room.root, room.limits):
        if sentence.startswith(f"{room.lab}: "):
            print(f"{sentence}; they are made again.", file=sys.stderr)
    problems = _grade_rounds(room, room.out, options)
    results = publish(options, options.out)
    for sentence in classroom.outdated(room.out, room.root):
        print(f"{sentence}; `autograder grade` makes them again.", file=sys.stderr)
    status = report([*problems, *_broken(results)])
    return report_audit(options.out) or status


def _regrade(options: argparse.Namespace) -> int:
    from autograder import changes, regrade

    if not options.insecure and not sandbox_works(quiet=True):
        return USAGE
    room = classroom_of(options, options.lab, options.out)
    problems = _grade_rounds(regrade.beside(room), room.out, options)
    comparison = regrade.compare(room)
    if comparison.new:
        print(f"Graded for the first time: {', '.join(comparison.new)}")
    print(changes.told(comparison.changes) if comparison.changes else "No score changes.")
    if (comparison.changes or comparison.new) and not changes.agreed():
        print(f"Nothing was written; the new results lie in {regrade.beside(room).out}.")
        return OK
    regrade.commit(room, comparison)
    return report(problems) or report_audit(options.out)


def _grade_rounds(room: Classroom, out: Path, options: argparse.Namespace) -> list[str]:
    """Grade all attempts, and make those that count, by the rules in `out`, the room's own."""
    from autograder.attempts import rounds, settle
    from autograder.semester import read_semester

    semester = read_semester(out)
    graded = rounds(room, options.submitted.resolve(), semester)
    for one in graded:
        grade_with_progress(one.room, one.handed, options.workers, options.scheduler)
    return settle(room, graded, semester)


def _broken(results: Sequence[Result]) -> list[str]:
    """A sentence for each submission that is not graded by the grader's own fault."""
    return [
        f"{r.student}, {r.lab}: {r.reason} Run `autograder grade` again."
        for r in results
        if r.end == "failed"
    ]
