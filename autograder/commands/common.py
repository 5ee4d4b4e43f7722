"""Common: what several commands take, and how they say what they found."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # each command imports what it needs, so that `--help` is quick
    from autograder import classroom
    from autograder.result import Result
    from autograder.sandbox import Limits

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = [
    "OK",
    "PROBLEM",
    "USAGE",
    "Commands",
    "add_running",
    "classroom_of",
    "grade_with_progress",
    "has_gpu",
    "limits_of",
    "positive",
    "publish",
    "report",
    "report_audit",
    "sandbox_works",
]

OK, PROBLEM, USAGE = 0, 1, 2

_LIMITS = (
    ("cell-seconds", "seconds that one cell may run", "30"),
    ("submission-seconds", "seconds that one notebook may run, all in all", "300"),
    ("memory-gib", "GiB of memory that one notebook may use", "2"),
)


def positive(text: str) -> int:
    """A count on the command line; ArgumentTypeError below 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 1")
    return number


def _positive_real(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def add_running(command: argparse.ArgumentParser) -> None:
    """Add the options of a command that runs students' code."""
    command.add_argument(
        "--workers",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="submissions graded at the same time (default: one a processor)",
    )
    command.add_argument(
        "--insecure",
        action="store_true",
        help="run students' code WITHOUT the sandbox, and mark every result",
    )
    for name, what, default in _LIMITS:
        command.add_argument(
            f"--{name}",
            type=_positive_real,
            metavar="N",
            help=f"{what} (default: {default})",
        )


def limits_of(options: argparse.Namespace) -> Limits:
    """The limits that the options of `add_running` name; the usual ones for the others."""
    from autograder.sandbox import Limits

    given = {
        "cell_seconds": options.cell_seconds,
        "submission_seconds": options.submission_seconds,
        "memory_bytes": options.memory_gib and int(options.memory_gib * 2**30),
    }
    return Limits(**{name: value for name, value in given.items() if value is not None})


def classroom_of(options: argparse.Namespace, lab: str, out: Path) -> classroom.Classroom:
    """The classroom of one lab, its results going to `out`."""
    from autograder import classroom

    return classroom.Classroom(
        lab=lab,
        out=out.resolve(),
        root=options.course.resolve(),
        secret=classroom.course_secret(options.course / ".course_secret"),
        limits=limits_of(options),
        isolated=not options.insecure,
    )


def sandbox_works(*, quiet: bool) -> bool:
    """Whether students' code can be shut in here; says what is missing, or that nothing is."""
    from autograder.isolation import missing_layers

    missing = missing_layers()
    for sentence in missing:
        print(sentence, file=sys.stderr)
    if missing:
        print("Nothing is graded without these layers, or with --insecure only.", file=sys.stderr)
    elif not quiet:
        print("The sandbox works here: this machine can grade.")
    return not missing


def has_gpu() -> bool:
    """Whether exercises that need a GPU can be graded by this machine."""
    import torch

    return torch.cuda.is_available()


def grade_with_progress(
    room: classroom.Classroom,
    handed: Sequence[classroom.Handed],
    workers: int,
    scheduler: str | None = None,
) -> None:
    """Grade what is not graded yet; a bar shows how far it is, and for how long yet."""
    from tqdm import tqdm

    from autograder import classroom

    with tqdm(total=len(handed), desc=room.lab, unit="submission", disable=None) as bar:
        for _ in classroom.grade_all(room, handed, workers, scheduler):
            bar.update()


def publish(options: argparse.Namespace, out: Path) -> list[Result]:
    """Write all that leaves, and show the class as a table."""
    from autograder.classroom import publish
    from autograder.export import summary

    results = publish(out, options.course)
    print(summary(results, options.course))
    print(f"\nGrades: {out / 'grades.csv'}   Feedback: {out / 'feedback'}")
    return results


def report_audit(out: Path) -> int:
    """Say which submissions were lost on the way, if any."""
    from autograder.audit import audit

    return report(audit(out))


def report(problems: Sequence[str]) -> int:
    """Print each problem; return the exit status."""
    for problem in problems:
        print(problem, file=sys.stderr)
    return PROBLEM if problems else OK
