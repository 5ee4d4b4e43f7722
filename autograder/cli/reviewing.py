"""`autograder rejudge`, `explain`, `audit` and `export`: work on what is graded already."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from autograder.base.terminal import say
from autograder.cli.common import add_out, class_report, require_graded
from autograder.cli.report import OK, PROBLEM, Report, found

if TYPE_CHECKING:
    from autograder.cli.common import Commands
    from autograder.model.result import Result
    from autograder.publish.tables import Cells
    from autograder.review.rejudge import Proposal
    from autograder.store.journal import Journal

__all__ = ["add_audit", "add_explain", "add_export", "add_rejudge", "add_repair"]


def add_rejudge(commands: Commands) -> None:
    """Add `rejudge`."""
    command = commands.add_parser(
        "rejudge", help="judge the kept answers again after a judge was wrong; ask first"
    )
    add_out(command)
    command.set_defaults(run=_rejudge)


def _rejudge(options: argparse.Namespace) -> Report:
    from autograder.review import changes, rejudge
    from autograder.rules.semester import read_semester

    require_graded(options.out)
    rules = read_semester(options.out, options.course)
    secret = options.course.secret()
    proposal = rejudge.propose(options.out, options.course, secret, rules.waived, rules.ordinary)
    say(*rejudge.remarks(proposal), changes.told(proposal.changes, options.out))
    if proposal.changes and not changes.agreed():
        return Report(text="Nothing was written.", data=_proposed(proposal, written=False))
    results = rejudge.commit(proposal, options.out, options.course)
    report = class_report(options, results, options.out)
    data = {**report.data, **_proposed(proposal, written=True)}
    log = options.out.changes
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
        "changes": [change.to_json() for change in proposal.changes],
        "verdicts": {name: dict(sorted(count.items())) for name, count in counts.items()},
    }


def add_explain(commands: Commands) -> None:
    """Add `explain`."""
    command = commands.add_parser("explain", help="say case by case why a student has these points")
    add_out(command)
    command.add_argument("student", metavar="STUDENT")
    command.add_argument("task", metavar="TASK", help="such as lab01-decode_fp32")
    command.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> Report:
    from autograder.review.explain import explain
    from autograder.rules.semester import read_semester

    require_graded(options.out)
    secret = options.course.secret()
    rules = read_semester(options.out, options.course).ordinary
    text = explain(options.out, secret, options.student, options.task, options.course, rules)
    data = {"student": options.student, "task": options.task, "lines": text.splitlines()}
    return Report(text=text, data=data)


def add_export(commands: Commands) -> None:
    """Add `export`."""
    command = commands.add_parser(
        "export", help="write OUT/export: tables, Canvas's file, feedback, statistics"
    )
    add_out(command)
    command.add_argument(
        "--partial",
        action="store_true",
        help="give students who wait for manual grading their points so far in canvas.csv, where "
        "their cells are empty otherwise",
    )
    command.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> Report:
    from autograder.publish.publishing import publish

    require_graded(options.out)
    return _exported(options, publish(options.out, options.course), so_far=options.partial)


def _exported(
    options: argparse.Namespace, results: Sequence[Result], *, so_far: bool = False
) -> Report:
    """Write OUT/export from what was just published."""
    from autograder.publish import item_analysis, statistics, tables
    from autograder.publish.final_grades import people, standings
    from autograder.runs.classroom import outdated
    from autograder.store.journal import Journal

    out = options.out
    report = class_report(
        options, results, out, remarks=list(map(str, outdated(out, options.course)))
    )
    standing = standings(out)
    students = people(out, sorted({key.student for key in standing}))
    paths = {
        name: out.export(file)
        for name, file in (
            ("students", "students.csv"),
            ("canvas", "canvas.csv"),
            ("feedback_zip", "feedback.zip"),
            ("statistics", "statistics.csv"),
        )
    }
    tables.write_students(standing, students, paths["students"])
    cells = tables.write_canvas(standing, students, paths["canvas"], partial=so_far)
    pages = tables.write_feedback_zip(out.feedback, paths["feedback_zip"])
    labs = statistics.statistics_of(results)
    statistics.write_table(labs, paths["statistics"])
    for lab, tasks in labs.items():
        paths[f"statistics_{lab}"] = out.export(f"statistics-{lab}.png")
        statistics.write_picture(lab, tasks, paths[f"statistics_{lab}"])
        paths[f"items_{lab}"] = out.export(f"items-{lab}.html")
        analysis = item_analysis.analyse(lab, results, partial(_code, Journal(out)))
        item_analysis.write_page(analysis, lab, paths[f"items_{lab}"])
    counts = {
        "students": len(students),
        "feedback_pages": pages,
        "empty_canvas_cells": {lab: of_lab.empty for lab, of_lab in cells.items()},
        "partial_canvas_cells": {lab: of_lab.partial for lab, of_lab in cells.items()},
    }
    done = f"{out.exports}: students: {len(students)}, feedback pages: {pages}, labs: {len(labs)}"
    return replace(
        report,
        text="\n".join([*_not_final(cells, len(students)), done]),
        data={**report.data, **counts},
        paths={**report.paths, **paths},
    )


def _code(journal: Journal, result: Result, task: str) -> str:
    """What a student wrote for a task, which only the journal's whole entry holds."""
    from autograder.notebooks.graded import solution_source

    whole = journal.read(result.key)
    return solution_source(whole.notebook, task) if whole else ""


def _not_final(cells: Mapping[str, Cells], students: int) -> list[str]:
    lines = []
    for lab, of_lab in cells.items():
        for count, hold in (
            (of_lab.partial, "hold the points so far"),
            (of_lab.empty, "are empty"),
        ):
            if count:
                lines.append(
                    f"{lab}: {count} of {students} cells of canvas.csv {hold} until you have "
                    "graded them manually"
                )
    return lines


def add_repair(commands: Commands) -> None:
    """Add `repair`."""
    command = commands.add_parser(
        "repair",
        help="rebuild what was damaged in OUT from its journal",
        description="Rebuild the gradebook, the pages and all tables in OUT from its journal. No "
        "student's code runs and no grade is made. Manual grades are kept, as far as the old "
        "gradebook or its last copy can be read. Damaged files are moved to OUT/damaged.",
    )
    add_out(command)
    command.set_defaults(run=_repair)


def _repair(options: argparse.Namespace) -> Report:
    from autograder.review.repair import repair

    done = repair(options.out, options.course)
    if not done.results:
        raise ValueError(f"{options.out} holds no graded submission; run `autograder grade` again")
    report = _exported(options, done.results)
    lines = [f"moved to {path}" for path in done.moved]
    lines += [f"rebuilt {sentence}" for sentence in done.rebuilt]
    text = "\n".join(lines or ["Nothing was damaged; every derived file was written again."])
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
    add_out(command)
    command.set_defaults(run=_audit)


def _audit(options: argparse.Namespace) -> Report:
    from autograder.publish.audit import audit
    from autograder.publish.wholeness import require_whole
    from autograder.store.roll import taken

    require_whole(options.out)
    problems = audit(options.out)
    counts = Counter(key.lab for key in taken(options.out))
    text = "\n".join(f"{lab}: {count} submissions taken in" for lab, count in counts.items())
    if not problems:
        text += "\nNo submission is missing: each has a grade, a gradebook entry, and a page."

    return found(problems, text=text, data={"submissions": dict(counts)})
