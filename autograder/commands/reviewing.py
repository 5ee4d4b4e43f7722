"""Reviewing: `autograder rejudge`, `explain`, `audit` and `export`, on what is graded already."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.commands.common import OK, report_audit

if TYPE_CHECKING:
    from autograder.commands.common import Commands

__all__ = ["add_audit", "add_explain", "add_export", "add_rejudge"]


def add_rejudge(commands: Commands) -> None:
    """Add `rejudge`."""
    command = commands.add_parser(
        "rejudge", help="judge the kept answers again, after a judge was wrong; ask before writing"
    )
    command.add_argument("out", type=Path, metavar="OUT")
    command.set_defaults(run=_rejudge)


def _rejudge(options: argparse.Namespace) -> int:
    from autograder import changes, rejudge
    from autograder.classroom import course_secret
    from autograder.semester import read_semester

    waived = read_semester(options.out).waived
    secret = course_secret(options.course / ".course_secret")
    proposal = rejudge.propose(options.out, options.course, secret, waived)
    for sentence in rejudge.remarks(proposal):
        print(sentence)
    if proposal.changes:
        print(changes.told(proposal.changes))
        if not changes.agreed():
            print("Nothing was written.")
            return OK
    else:
        print("No score changes.")
    rejudge.commit(proposal, options.out, options.course)
    if proposal.changes:
        print(f"Written. {options.out / changes.LOG} keeps what changed.")
    return report_audit(options.out)


def add_explain(commands: Commands) -> None:
    """Add `explain`."""
    command = commands.add_parser(
        "explain", help="say why a student has these points for a task, case by case"
    )
    command.add_argument("out", type=Path, metavar="OUT")
    command.add_argument("student", metavar="STUDENT")
    command.add_argument("task", metavar="TASK")
    command.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    from autograder.classroom import course_secret
    from autograder.explain import explain

    secret = course_secret(options.course / ".course_secret")
    print(explain(options.out, secret, options.student, options.task))
    return OK


def add_export(commands: Commands) -> None:
    """Add `export`."""
    command = commands.add_parser(
        "export", help="write OUT/export: tables, Canvas's file, all feedback, statistics"
    )
    command.add_argument("out", type=Path, metavar="OUT")
    command.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    from autograder import statistics, tables
    from autograder.classroom import publish
    from autograder.standing import people, standings

    out, folder = options.out, options.out / "export"
    results = publish(out, options.course)
    found = standings(out)
    students = people(out, sorted({student for student, _ in found}))
    tables.write_students(found, students, folder / "students.csv")
    for sentence in tables.write_canvas(found, students, folder / "canvas.csv"):
        print(sentence)
    count = tables.write_feedback_zip(out / "feedback", folder / "feedback.zip")
    labs = statistics.statistics_of(results)
    statistics.write_table(labs, folder / "statistics.csv")
    for lab, tasks in labs.items():
        statistics.write_picture(lab, tasks, folder / f"statistics-{lab}.png")
    print(f"{folder}: {len(students)} students, {count} feedback pages, {len(labs)} labs")
    return OK


def add_audit(commands: Commands) -> None:
    """Add `audit`."""
    command = commands.add_parser("audit", help="check that no submission was lost")
    command.add_argument("out", type=Path, metavar="OUT")
    command.set_defaults(run=lambda options: report_audit(options.out))
