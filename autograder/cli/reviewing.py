"""`autograder rejudge`, `explain`, `audit` and `export`: work on what is graded already."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.base.terminal import say
from autograder.cli.common import class_report, require_graded
from autograder.cli.report import OK, PROBLEM, Report, found

if TYPE_CHECKING:
    from autograder.cli.common import Commands
    from autograder.model.result import Result
    from autograder.review.rejudge import Proposal

__all__ = ["add_audit", "add_explain", "add_export", "add_rejudge", "add_repair"]


def _add_out(command: argparse.ArgumentParser) -> None:
    command.add_argument("out", type=Path, metavar="OUT", help="the OUT of `autograder grade`")


def add_rejudge(commands: Commands) -> None:
    """Add `rejudge`."""
    command = commands.add_parser(
        "rejudge", help="judge the kept answers again, after a judge was wrong; ask before writing"
    )
    _add_out(command)
    command.set_defaults(run=_rejudge)


def _rejudge(options: argparse.Namespace) -> Report:
    from autograder.review import changes, rejudge
    from autograder.rules.semester import read_semester
    from autograder.runs.classroom import course_secret

    require_graded(options.out)
    rules = read_semester(options.out, options.course)
    secret = course_secret(options.course / ".course_secret")
    proposal = rejudge.propose(options.out, options.course, secret, rules.waived, rules.ordinary)
    say(*rejudge.remarks(proposal), changes.told(proposal.changes, options.out))
    if proposal.changes and not changes.agreed():
        return Report(text="Nothing was written.", data=_proposed(proposal, written=False))
    results = rejudge.commit(proposal, options.out, options.course)
    report = class_report(options, results, options.out)
    data = {**report.data, **_proposed(proposal, written=True)}
    log = options.out / changes.LOG
    text = f"Written. {log} keeps what changed." if proposal.changes else ""
    return replace(report, text=text, data=data)


def _proposed(proposal: Proposal, *, written: bool) -> dict[str, object]:
    counts: dict[str, Counter[str]] = {
        "judged": proposal.judged,
        "stale": proposal.stale,
        "without_answers": proposal.unasked,
    }
    return {
        "written": written,
        "changes": list(map(asdict, proposal.changes)),
        "verdicts": {name: dict(sorted(count.items())) for name, count in counts.items()},
    }


def add_explain(commands: Commands) -> None:
    """Add `explain`."""
    command = commands.add_parser(
        "explain", help="say why a student has these points for a task, case by case"
    )
    _add_out(command)
    command.add_argument("student", metavar="STUDENT")
    command.add_argument("task", metavar="TASK", help="such as lab01-decode_fp32")
    command.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> Report:
    from autograder.review.explain import explain
    from autograder.rules.semester import read_semester
    from autograder.runs.classroom import course_secret

    require_graded(options.out)
    secret = course_secret(options.course / ".course_secret")
    rules = read_semester(options.out, options.course).ordinary
    text = explain(options.out, secret, options.student, options.task, options.course, rules)
    data = {"student": options.student, "task": options.task, "lines": text.splitlines()}
    return Report(text=text, data=data)


def add_export(commands: Commands) -> None:
    """Add `export`."""
    command = commands.add_parser(
        "export", help="write OUT/export: tables, Canvas's file, all feedback, statistics"
    )
    _add_out(command)
    command.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> Report:
    from autograder.publish.publishing import publish

    require_graded(options.out)
    return _exported(options, publish(options.out, options.course))


def _exported(options: argparse.Namespace, results: Sequence[Result]) -> Report:
    """Write OUT/export from what was just published."""
    from autograder.publish import statistics, tables
    from autograder.publish.final_grades import people, standings
    from autograder.runs.classroom import outdated

    out, folder = options.out, options.out / "export"
    report = class_report(options, results, out, remarks=outdated(out, options.course))
    standing = standings(out)
    students = people(out, sorted({student for student, _ in standing}))
    paths = {
        name: folder / file
        for name, file in (
            ("students", "students.csv"),
            ("canvas", "canvas.csv"),
            ("feedback_zip", "feedback.zip"),
            ("statistics", "statistics.csv"),
        )
    }
    tables.write_students(standing, students, paths["students"])
    empty = tables.write_canvas(standing, students, paths["canvas"])
    pages = tables.write_feedback_zip(out / "feedback", paths["feedback_zip"])
    labs = statistics.statistics_of(results)
    statistics.write_table(labs, paths["statistics"])
    for lab, tasks in labs.items():
        paths[f"statistics_{lab}"] = folder / f"statistics-{lab}.png"
        statistics.write_picture(lab, tasks, paths[f"statistics_{lab}"])
    counts = {"students": len(students), "feedback_pages": pages, "empty_canvas_cells": empty}
    done = f"{folder}: students: {len(students)}, feedback pages: {pages}, labs: {len(labs)}"
    return replace(
        report,
        text="\n".join([*_left_empty(empty, len(students)), done]),
        data={**report.data, **counts},
        paths={**report.paths, **paths},
    )


def _left_empty(empty: Mapping[str, int], students: int) -> list[str]:
    return [
        f"{lab}: {count} of {students} cells of canvas.csv are empty; a person still has to give "
        "points there"
        for lab, count in empty.items()
        if count
    ]


def add_repair(commands: Commands) -> None:
    """Add `repair`."""
    command = commands.add_parser(
        "repair",
        help="rebuild gradebook, pages and tables from the journal, after a file was damaged",
        description="Rebuild the gradebook, the pages and all tables in OUT from its journal. No "
        "student's code runs and no grade is made. Manual grades are kept, as far as the old "
        "gradebook or its last copy can be read. Damaged files are moved to OUT/damaged.",
    )
    _add_out(command)
    command.set_defaults(run=_repair)


def _repair(options: argparse.Namespace) -> Report:
    from autograder.review.repair import repair

    done = repair(options.out, options.course)
    if not done.results:
        raise ValueError(
            f"{options.out} holds no entry of any submission; run `autograder grade` again"
        )
    report = _exported(options, done.results)
    lines = [f"moved to {path}" for path in done.moved]
    lines += [f"rebuilt {sentence}" for sentence in done.rebuilt]
    text = "\n".join(lines or ["Nothing was damaged; everything was written anew."])
    problems = [*done.lost, *report.problems]
    data = {"moved": [str(path) for path in done.moved], "rebuilt": done.rebuilt}
    return replace(
        report,
        status=PROBLEM if problems else OK,
        text=f"{text}\n{report.text}",
        data={**report.data, **data},
        problems=problems,
    )


def add_audit(commands: Commands) -> None:
    """Add `audit`."""
    command = commands.add_parser("audit", help="check that no submission was lost")
    _add_out(command)
    command.set_defaults(run=_audit)


def _audit(options: argparse.Namespace) -> Report:
    from autograder.publish.audit import audit
    from autograder.publish.wholeness import require_whole
    from autograder.store.roll import taken

    require_whole(options.out)
    problems = audit(options.out)
    counts = Counter(lab for _, lab in taken(options.out))
    text = "\n".join(f"{lab}: {count} submissions taken in" for lab, count in counts.items())
    if not problems:
        text += "\nNobody was lost: each has a grade, an entry in the gradebook, and a page."
    return found(problems, text=text, data={"submissions": dict(counts)})
