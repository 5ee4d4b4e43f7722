"""`autograder grade` and `regrade`: from a folder of submissions to grades."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.base.terminal import say
from autograder.cli.checks import (
    misspelt,
    other_notebooks,
    require_folders,
    strangers,
)
from autograder.cli.common import (
    add_lab,
    add_running,
    cannot_run,
    class_report,
    classroom_of,
    grade_with_progress,
    has_gpu,
    out_folder,
)
from autograder.cli.report import Report, found

if TYPE_CHECKING:
    from autograder.cli.common import Commands
    from autograder.model.result import Result
    from autograder.review.regrade import Comparison
    from autograder.runs.classroom import Classroom
    from autograder.store.out_folder import OutFolder

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
    add_lab(command)
    command.add_argument(
        "--submitted",
        type=Path,
        required=True,
        metavar="DIR",
        help="the notebooks, laid out as DIR/<student>/<lab>/<lab>.ipynb",
    )
    command.add_argument(
        "--out",
        type=out_folder,
        required=True,
        metavar="OUT",
        help="where grades, feedback and gradebook go; one folder for all labs of a course",
    )
    add_running(command)
    command.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="have a Dask cluster grade, whose machines see OUT and the submissions at one path",
    )


def _grade(options: argparse.Namespace) -> Report:
    from autograder.publish.publishing import publish

    if (refused := cannot_run(options)) is not None:
        return refused
    room = replace(classroom_of(options, options.lab, options.out), keeps_old=True)
    problems, remarks = _grade_rounds(room, room.out, options)
    results = publish(options.out, options.course)
    remarks += _kept(room, results, options)
    return class_report(options, results, options.out, room.lab, problems, remarks)


def _kept(room: Classroom, results: Sequence[Result], options: argparse.Namespace) -> list[str]:
    """Say which grades stayed that grading again might change, and what shows how."""
    from autograder.runs.classroom import outdated

    where = (options.lab, "--submitted", str(options.submitted), "--out", str(options.out))
    command = f"`{shlex.join(['autograder', *options.course.command_options, 'regrade', *where])}`"
    kept = [
        f"{old}, and stay as they are. {command} shows what would change, and asks."
        for old in outdated(room.out, room.course, room.limits)
        if old.lab == room.lab
    ]
    lack = sum(
        any(verdict.status == "needs_gpu" for verdict in result.verdicts)
        for result in results
        if result.lab == room.lab
    )
    if lack and has_gpu():
        kept.append(
            f"{room.lab}: {lack} submissions were graded without a GPU, and this machine has one. "
            f"{command} shows what would change, and asks."
        )
    return kept


def _regrade(options: argparse.Namespace) -> Report:
    from autograder.review import changes, regrade

    if (refused := cannot_run(options)) is not None:
        return refused
    room = classroom_of(options, options.lab, options.out)
    problems, _ = _grade_rounds(regrade.beside(room), room.out, options)
    comparison = regrade.compare(room)
    if comparison.new:
        say(f"Graded for the first time: {', '.join(comparison.new)}")
    say(changes.told(comparison.changes, room.out))
    asks = bool(comparison.changes or comparison.new)
    if asks and not changes.agreed():
        text = f"Nothing was written; the new results are in {regrade.beside(room).out}."
        return found(problems, text=text, data=_compared(comparison, written=False))
    results = regrade.commit(room, comparison)
    report = class_report(options, results, options.out, room.lab, problems)
    data = {**report.data, **_compared(comparison, written=True)}
    text = f"Written. {options.out.changes} keeps what changed." if asks else ""
    return replace(report, text=text, data=data)


def _compared(comparison: Comparison, *, written: bool) -> dict[str, object]:
    return {
        "written": written,
        "changes": [change.to_json() for change in comparison.changes],
        "new": list(comparison.new),
    }


def _grade_rounds(
    room: Classroom, out: OutFolder, options: argparse.Namespace
) -> tuple[list[str], list[str]]:
    """Grade all attempts, and make those that count, by the rules in `out`, the room's own.

    Returns problems and remarks.
    """
    from autograder.publish.wholeness import require_whole
    from autograder.rules.semester import read_semester
    from autograder.runs.attempts import rounds, settle

    require_whole(out)
    submitted = options.submitted.resolve()
    semester = read_semester(out, room.course)
    folders = {receipt.folder for receipt in semester.receipts if receipt.lab == room.lab}
    require_folders(replace(room, out=out), submitted, folders)
    graded = rounds(room, submitted, semester)
    for one in graded:
        grade_with_progress(one.room, one.handed, options.workers, options.scheduler)
    handed = [entry for one in graded for entry in one.handed]
    remarks = [
        *other_notebooks(room, handed),
        *strangers(room.lab, [name for name, _ in handed], [s.id for s in semester.roster]),
    ]
    problems = settle(room, graded, semester)
    return [*problems, *misspelt(room, {name for name, _ in handed}, semester)], remarks
