"""`autograder rejudge`, `explain`, `audit`, `export`, `repair`: work on existing grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.base.course import Course
from autograder.base.plural import plural
from autograder.base.terminal import say
from autograder.cli.command import Output
from autograder.cli.common import Graded, OutFolder, class_report, require_graded, require_journal
from autograder.cli.report import OK, PROBLEM, Report, found

if TYPE_CHECKING:
    from autograder.model.result import Result
    from autograder.review.rejudge import Proposal

__all__ = ["audit", "explain", "export", "rejudge", "repair"]


def rejudge(course: Course, out: Graded) -> Report:
    """Judge recorded answers again after a fix or a waiver; ask first."""
    from autograder.review import changes
    from autograder.review import rejudge as again
    from autograder.rules.semester import read_semester

    require_graded(out)
    rules = read_semester(out, course)
    secret = course.secret()
    proposal = again.propose(out, course, secret, rules.waived, rules.ordinary)
    say(*again.remarks(proposal), changes.told(proposal.changes, out))
    if proposal.changes and not changes.agreed():
        return Report(text="Nothing was written.", data=_proposed(proposal, written=False))
    results = again.commit(proposal, out, course)
    report = class_report(course, results, out)
    data = {**report.data, **_proposed(proposal, written=True)}
    log = out.changes
    text = f"Written. {log} lists the changes." if proposal.changes else ""
    return replace(report, text=text, data=data)


def _proposed(proposal: Proposal, *, written: bool) -> dict[str, object]:
    counts = {
        "judged": proposal.counts.judged,
        "stale": proposal.counts.stale,
        "without_answers": proposal.counts.unasked,
    }
    return {
        "written": written,
        "changes": [change.to_json() for change in proposal.changes],
        "verdicts": {name: dict(sorted(count.items())) for name, count in counts.items()},
    }


def explain(
    course: Course,
    output: Output,
    out: Graded,
    student: Annotated[
        str, typer.Argument(metavar="STUDENT", help="The student's id, as in grades.csv.")
    ],
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task, such as lab01-decode_fp32.")],
) -> Report:
    """Explain a student's score case by case."""
    from autograder.review import explain as explaining
    from autograder.rules.semester import read_semester

    require_graded(out)
    secret = course.secret()
    rules = read_semester(out, course).ordinary
    text = explaining.explain(out, secret, student, task, course, rules, whole=output.verbose)
    data = {"student": student, "task": task, "lines": text.splitlines()}
    return Report(text=text, data=data)


def export(
    course: Course,
    out: Graded,
    so_far: Annotated[
        bool,
        typer.Option(
            "--partial",
            help="Write the points so far into canvas.csv for students who are waiting for manual "
            "grading, instead of leaving their cells empty.",
        ),
    ] = False,
) -> Report:
    """Write tables, Canvas's file, all feedback, statistics."""
    from autograder.publish.publishing import publish

    require_graded(out)
    return _exported(out, course, publish(out, course), so_far=so_far)


def _exported(
    out: OutFolder, course: Course, results: Sequence[Result], *, so_far: bool = False
) -> Report:
    from autograder.publish.exporting import write_exports
    from autograder.runs.outdated import outdated

    report = class_report(course, results, out, remarks=list(map(str, outdated(out, course))))
    done = write_exports(out, course, results, partial=so_far)
    counts = {
        "students": done.students,
        "feedback_pages": done.pages,
        "empty_canvas_cells": {lab: of_lab.empty for lab, of_lab in done.cells.items()},
        "partial_canvas_cells": {lab: of_lab.partial for lab, of_lab in done.cells.items()},
    }
    return replace(
        report,
        text="\n".join(done.lines()),
        data={**report.data, **counts},
        paths={**report.paths, **done.paths},
    )


def repair(course: Course, out: Graded) -> Report:
    """Rebuild damaged files in OUT from its journal.

    Writes the gradebook, the pages and all tables again, without running students' code or making
    grades. Keeps manual grades as far as the old gradebook or its last copy can be read. Moves
    damaged files to OUT/damaged.
    """
    from autograder.review import repair as repairing

    require_journal(out)
    done = repairing.repair(out, course)
    if not done.results:
        raise ValueError(f"{out} contains no result that can be read; run `autograder grade` again")
    report = _exported(out, course, done.results)
    lines = [f"moved to {path}" for path in done.moved]
    lines += [f"rebuilt {sentence}" for sentence in done.rebuilt]
    text = "\n".join(lines or ["Nothing was damaged. All derived files were written again."])
    problems = [*done.lost, *report.problems]
    data = {"moved": [str(path) for path in done.moved], "rebuilt": done.rebuilt}
    return replace(
        report,
        status=PROBLEM if problems else OK,
        text=f"{text}\n{report.text}",
        data={**report.data, **data},
        problems=problems,
    )


def audit(out: Graded) -> Report:
    """Check that no submission is missing."""
    from autograder.publish import audit as auditing
    from autograder.publish.wholeness import require_whole
    from autograder.store.roll import taken

    require_whole(out)
    problems = auditing.audit(out)
    counts = Counter(key.lab for key in taken(out))
    taken_in = {lab: plural(count, "submission") for lab, count in counts.items()}
    text = "\n".join(f"{lab}: {count} taken in" for lab, count in taken_in.items())
    if not problems:
        text += "\nNo submission is missing: each has a grade, a gradebook entry, and a page."

    return found(problems, text=text, data={"submissions": dict(counts)})
