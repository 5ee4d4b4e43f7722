"""Trying: `autograder doctor`, `bank`, `sample`, `demo`: what shows that the grader is right."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from autograder.commands.common import (
    OK,
    PROBLEM,
    USAGE,
    add_running,
    classroom_of,
    grade_with_progress,
    has_gpu,
    positive,
    publish,
    report,
    sandbox_works,
)

if TYPE_CHECKING:
    from autograder.commands.common import Commands
    from autograder.result import Result

__all__ = ["add_bank", "add_demo", "add_doctor", "add_sample"]


def add_doctor(commands: Commands) -> None:
    """Add `doctor`."""
    command = commands.add_parser("doctor", help="say whether this machine can grade safely")
    command.set_defaults(run=lambda _: OK if sandbox_works(quiet=False) else PROBLEM)


def add_bank(commands: Commands) -> None:
    """Add `bank`."""
    command = commands.add_parser("bank", help="grade a bank of right and wrong answers")
    command.add_argument("dir", type=Path, metavar="DIR")
    command.add_argument("--lab", metavar="LAB", help="default: every lab that DIR has answers to")
    add_running(command)
    command.set_defaults(run=_bank)


def _bank(options: argparse.Namespace) -> int:
    from autograder.bank import check_bank, read_bank
    from autograder.released import release_of
    from autograder.tasks import find_lab, lab_names

    if not options.insecure and not sandbox_works(quiet=True):
        return USAGE
    names = [options.lab] if options.lab else [n for n in lab_names() if (options.dir / n).is_dir()]
    if not names:
        raise FileNotFoundError(
            f"{options.dir} holds no bank; expected folders named {', '.join(lab_names())}"
        )
    problems = 0
    for name in names:
        entries = read_bank(options.dir, find_lab(name))
        grade = partial(_grade_for_bank, options, name)
        found = check_bank(release_of(name, options.course / "labs"), entries, grade)
        for line in (*found.problems, *found.inexact, *found.not_run):
            print(line)
        print(f"{name}: {found.graded} answers graded, {len(found.problems)} problems")
        problems += len(found.problems)
    return PROBLEM if problems else OK


def _grade_for_bank(
    options: argparse.Namespace, lab: str, notebooks: Sequence[Mapping[str, Any]]
) -> list[Result]:
    from autograder import classroom

    with TemporaryDirectory(prefix="autograder-bank-") as out:
        room = classroom_of(options, lab, Path(out))
        return classroom.grade_notebooks(room, notebooks, options.workers)


def add_sample(commands: Commands) -> None:
    """Add `sample`."""
    command = commands.add_parser("sample", help="make a class of submissions with known scores")
    command.add_argument("lab", metavar="LAB")
    command.add_argument("--students", type=positive, required=True, metavar="N")
    command.add_argument("--seed", type=int, default=0, metavar="S")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.set_defaults(run=_sample)


def _sample(options: argparse.Namespace) -> int:
    from autograder.sample import sample
    from autograder.tasks import find_lab

    bank, releases = options.course / "tests" / "bank", options.course / "labs"
    lab = find_lab(options.lab)
    sample(lab, options.students, options.seed, options.out, bank, releases, has_gpu=has_gpu())
    print(f"{options.out / 'submitted'} holds the class, {options.out / 'truth.csv'} its scores.")
    return OK


def add_demo(commands: Commands) -> None:
    """Add `demo`."""
    command = commands.add_parser("demo", help="sample a class, grade it, compare with the truth")
    command.add_argument("--students", type=positive, default=24, metavar="N")
    command.add_argument("--seed", type=int, default=0, metavar="S")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    add_running(command)
    command.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> int:
    from autograder import classroom, demo
    from autograder.audit import audit
    from autograder.tasks import lab_names

    if not options.insecure and not sandbox_works(quiet=True):
        return USAGE
    count, out = options.students, options.out
    class_ = demo.prepare(out, count, options.seed, options.course, has_gpu=has_gpu())
    for name in lab_names():
        room = classroom_of(options, name, out / "graded")
        handed = classroom.take(room, class_ / "submitted")
        grade_with_progress(room, handed, options.workers)
    results = publish(options, out / "graded")
    differences = demo.compare(class_ / "truth.csv", out / "graded" / "grades.csv")
    problems = [*differences, *audit(out / "graded")]
    status = report(problems)
    print(demo.verdict(results, count, differences))
    return status
