"""`autograder grade` and `regrade`: grade a folder of submissions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.base.course import Course
from autograder.base.plural import plural
from autograder.base.terminal import say
from autograder.cli.checks import (
    gone,
    misspelt,
    other_notebooks,
    require_folders,
    strangers,
)
from autograder.cli.command import Output
from autograder.cli.common import (
    Lab,
    OutFolder,
    Running,
    cannot_run,
    class_report,
    classroom_of,
    grade_with_progress,
    has_gpu,
    out_option,
)
from autograder.cli.report import Report, found

if TYPE_CHECKING:
    from autograder.model.result import Result
    from autograder.review.regrade import Comparison
    from autograder.runs.room import Classroom

__all__ = ["Submissions", "grade", "regrade"]


@dataclass(frozen=True)
class Submissions:
    """The options for submissions and their results folder."""

    lab: Lab
    submitted: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Submissions, laid out as DIR/<student>/<lab>/<lab>.ipynb."
        ),
    ]
    out: Annotated[
        OutFolder,
        out_option("Results folder for grades, pages and gradebook of all labs."),
    ]
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Grade on a Dask cluster whose machines see OUT and DIR at the same path.",
        ),
    ] = None


def grade(course: Course, output: Output, these: Submissions, running: Running) -> Report:
    """Grade the submissions of one lab."""
    if (refused := cannot_run(running)) is not None:
        return refused
    room = replace(classroom_of(course, running, these.lab, these.out), keeps_old=True)
    problems, remarks = _grade_rounds(room, these, running, output)
    from autograder.publish.publishing import publish  # slow to import, so grades come first

    results = publish(these.out, course)
    remarks += _kept(room, results, course, these)
    return class_report(course, results, these.out, room.lab, problems, remarks)


def _kept(
    room: Classroom, results: Sequence[Result], course: Course, these: Submissions
) -> list[str]:
    """Say which grades were kept although grading again might change them, and how to see it."""
    from autograder.runs.outdated import outdated

    where = (these.lab, "--submitted", str(these.submitted), "--out", str(these.out))
    command = f"`{shlex.join(['autograder', *course.command_options, 'regrade', *where])}`"
    kept = [
        f"{old}, and stay as they are. {command} shows what would change and asks."
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
            f"{room.lab}: {plural(lack, 'submission')} graded without a GPU, and this machine has "
            f"one. {command} shows what would change and asks."
        )
    return kept


def regrade(course: Course, output: Output, these: Submissions, running: Running) -> Report:
    """Grade again after a lab has changed; show changes and ask."""
    from autograder.review import changes
    from autograder.review import regrade as again

    if (refused := cannot_run(running)) is not None:
        return refused
    room = classroom_of(course, running, these.lab, these.out)
    problems, _ = _grade_rounds(again.beside(room), these, running, output)
    comparison = again.compare(room)
    if comparison.new:
        say(f"Graded for the first time: {', '.join(comparison.new)}")
    say(changes.told(comparison.changes, room.out))
    asks = bool(comparison.changes or comparison.new)
    if asks and not changes.agreed():
        text = f"Nothing was written. The new results are in {again.beside(room).out}."
        return found(problems, text=text, data=_compared(comparison, written=False))
    results = again.commit(room, comparison)
    report = class_report(course, results, these.out, room.lab, problems)
    data = {**report.data, **_compared(comparison, written=True)}
    text = f"Written. {these.out.changes} lists the changes." if asks else ""
    return replace(report, text=text, data=data)


def _compared(comparison: Comparison, *, written: bool) -> dict[str, object]:
    return {
        "written": written,
        "changes": [change.to_json() for change in comparison.changes],
        "new": list(comparison.new),
    }


def _grade_rounds(
    room: Classroom, these: Submissions, running: Running, output: Output
) -> tuple[list[str], list[str]]:
    """Grade all attempts, and make the ones that count under OUT's rules the room's results.

    Returns problems and remarks.
    """
    from autograder.publish.wholeness import require_whole
    from autograder.rules.semester import read_semester
    from autograder.runs.attempts import rounds, settle
    from autograder.store.roll import taken

    out = these.out.resolve()
    require_whole(out)
    submitted = these.submitted.resolve()
    semester = read_semester(out, room.course)
    require_folders(replace(room, out=out), submitted, semester.folders(room.lab))
    before = [key.student for key in taken(room.out) if key.lab == room.lab]
    graded = rounds(room, submitted, semester)
    for one in graded:
        grade_with_progress(one.room, one.handed, running, output, these.scheduler)
    handed = [entry for one in graded for entry in one.handed]
    remarks = [
        *gone(room.lab, before, [name for name, _ in handed], these.submitted),
        *other_notebooks(room, handed),
        *strangers(room.lab, [name for name, _ in handed], [s.id for s in semester.roster]),
    ]
    problems = settle(room, graded, semester)
    return [*problems, *misspelt(room, {name for name, _ in handed}, semester)], remarks
