"""`autograder doctor`, `bank`, `mutate`, `sample`, `demo`: what shows that the grader is right."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from autograder.cli.common import (
    add_lab,
    add_running,
    cannot_run,
    class_report,
    classroom_of,
    grade_with_progress,
    has_gpu,
    limits_of,
    positive,
)
from autograder.cli.report import Report, found

if TYPE_CHECKING:
    from autograder.base.course import Course
    from autograder.cli.common import Commands
    from autograder.model.result import Result
    from autograder.trials.calibration import Tally

__all__ = ["add_bank", "add_demo", "add_doctor", "add_mutate", "add_sample"]

_ROUNDS = 3


def add_doctor(commands: Commands) -> None:
    """Add `doctor`."""
    command = commands.add_parser("doctor", help="say whether this machine can grade safely")
    command.add_argument(
        "--measure",
        type=positive,
        nargs="?",
        const=_ROUNDS,
        metavar="N",
        help="also grade the bank's right answers to exercises with a memory budget, N times each "
        f"(default: {_ROUNDS})",
    )
    command.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace) -> Report:
    from autograder.sandbox.host import uid_isolation
    from autograder.sandbox.host.isolation import missing_layers
    from autograder.sandbox.host.protection import protection

    missing = missing_layers()
    text = "" if missing else "The sandbox works here: this machine can grade."
    problems = [*missing, "This machine can't grade until you fix that."] if missing else []
    lacking = uid_isolation.missing_layers() if missing else []
    if missing and not lacking:
        problems.append(
            "The second way works here, a user id for each submission: only an autograder on "
            "Gradescope takes it."
        )
    way = "user ids" if missing and not lacking else None if missing else "namespaces"
    data = {"can_grade": not missing, "missing": missing, "way": way, "gpu": has_gpu()}
    if missing:
        return found(problems, text=text, data=data)
    guarded = protection()
    text = "\n".join([text, *guarded.lines])
    data |= {"kernel_memory": guarded.kernel_memory, "budgets_hold": guarded.budgets_hold}
    if options.measure is None:
        return found(problems, text=text, data=data)
    counted = _measure(options.course.resolve(), options.measure)
    return found(
        [tally.problem for tally in counted if tally.problem],
        text="\n".join([text, *map(str, counted)]),
        data={**data, "measured": [asdict(tally) for tally in counted]},
    )


def _measure(course: Course, rounds: int) -> list[Tally]:
    """Grade right answers to the exercises with a memory budget, and count what went wrong."""
    from tqdm import tqdm

    from autograder.trials import calibration

    gradings = calibration.calibrate(calibration.measured_labs(), course, rounds)
    return calibration.tallies(tqdm(gradings, desc="measuring", unit="grading", disable=None))


def add_bank(commands: Commands) -> None:
    """Add `bank`."""
    command = commands.add_parser("bank", help="grade a bank of right and wrong answers")
    command.add_argument("dir", type=Path, metavar="DIR")
    command.add_argument("--lab", metavar="LAB", help="default: every lab that DIR has answers to")
    add_running(command)
    command.set_defaults(run=_bank)


def _bank(options: argparse.Namespace) -> Report:
    from autograder.content import find_lab, lab_names
    from autograder.notebooks.released import release_of
    from autograder.trials.answer_bank import check_bank, read_bank

    if (refused := cannot_run(options)) is not None:
        return refused
    names = [options.lab] if options.lab else [n for n in lab_names() if (options.dir / n).is_dir()]
    if not names:
        raise FileNotFoundError(
            f"{options.dir} is not an answer bank; expected folders named {', '.join(lab_names())}"
        )
    labs: list[dict[str, Any]] = []
    lines: list[str] = []
    problems: list[str] = []
    for name in names:
        entries = read_bank(options.dir, find_lab(name))
        grade = partial(_grade_for_bank, options, name)
        checked = check_bank(release_of(name, options.course.releases), entries, grade)
        labs.append({"lab": name, **asdict(checked)})
        problems += checked.problems
        lines += [*checked.inexact, *checked.not_run]
        lines.append(f"{name}: {checked.graded} answers graded, {len(checked.problems)} problems")
    return found(problems, text="\n".join(lines), data={"labs": labs})


def _grade_for_bank(
    options: argparse.Namespace, lab: str, notebooks: Sequence[Mapping[str, Any]]
) -> list[Result]:
    from autograder.runs import classroom
    from autograder.store.out_folder import OutFolder

    with TemporaryDirectory(prefix="autograder-bank-") as out:
        room = classroom_of(options, lab, OutFolder(Path(out)))
        return classroom.grade_notebooks(room, notebooks, options.workers)


def add_mutate(commands: Commands) -> None:
    """Add `mutate`."""
    command = commands.add_parser(
        "mutate", help="grade small slips in the solutions, which should all lose points"
    )
    add_lab(command)
    command.add_argument(
        "--task", action="append", metavar="TASK", help="this exercise only; may be repeated"
    )
    command.add_argument(
        "--explained",
        type=Path,
        metavar="FILE",
        help="which mutants may survive, and why (default: tests/mutants/LAB.toml)",
    )
    command.add_argument("--seed", type=int, default=0, metavar="S", help="draw other cases")
    add_running(command)
    command.set_defaults(run=_mutate)


def _mutate(options: argparse.Namespace) -> Report:
    from tqdm import tqdm

    from autograder.trials import mutate

    if (refused := cannot_run(options)) is not None:
        return refused
    limits, isolated = limits_of(options), not options.insecure
    solved = mutate.solve(options.lab, options.course, limits, isolated=isolated, seed=options.seed)
    tasks = mutate.tasks_named(solved, options.task)
    file = options.explained or options.course.explained_mutants(options.lab)
    explained = mutate.read_explained(file)
    mutants = solved.mutants(tasks)
    graded = mutate.grade_mutants(solved, mutants, options.workers)
    bar = tqdm(graded, total=len(mutants), desc=options.lab, unit="mutant", disable=None)
    report = mutate.check_mutants(bar, explained, tasks)
    lines = [f"{task}: needs a GPU, so it was not run." for task in report.not_run]
    lines += [f"{name}: not judged." for name in report.doubted]
    lines.append(
        f"{options.lab}: {report.graded} mutants graded, {report.killed} killed, "
        f"{len(report.survivors)} survived, {len(report.unexplained)} of them unexplained"
    )
    data = {"lab": options.lab, **asdict(report)}
    return found(report.problems, text="\n".join(lines), data=data)


def add_sample(commands: Commands) -> None:
    """Add `sample`."""
    command = commands.add_parser("sample", help="make a class of submissions with known scores")
    add_lab(command)
    command.add_argument("--students", type=positive, required=True, metavar="N")
    command.add_argument("--seed", type=int, default=0, metavar="S")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.set_defaults(run=_sample)


def _sample(options: argparse.Namespace) -> Report:
    from autograder.content import find_lab
    from autograder.trials.sampled_class import sample

    bank, releases = options.course.bank, options.course.releases
    lab = find_lab(options.lab)
    sample(lab, options.students, options.seed, options.out, bank, releases, has_gpu=has_gpu())
    paths = {"submitted": options.out / "submitted", "truth": options.out / "truth.csv"}
    text = f"{paths['submitted']} holds the class, {paths['truth']} its scores."
    return Report(text=text, paths=paths)


def add_demo(commands: Commands) -> None:
    """Add `demo`."""
    command = commands.add_parser("demo", help="sample a class, grade it, compare with the truth")
    command.add_argument("--students", type=positive, default=24, metavar="N")
    command.add_argument("--seed", type=int, default=0, metavar="S")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    add_running(command)
    command.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> Report:
    from autograder.content import lab_names
    from autograder.publish.publishing import publish
    from autograder.runs import classroom
    from autograder.store.out_folder import OutFolder
    from autograder.trials import demo

    if (refused := cannot_run(options)) is not None:
        return refused
    count, out = options.students, OutFolder(options.out / "graded")
    class_ = demo.prepare(options.out, count, options.seed, options.course, has_gpu=has_gpu())
    for name in lab_names():
        room = classroom_of(options, name, out)
        handed = classroom.take(room, class_ / "submitted")
        grade_with_progress(room, handed, options.workers)
    results = publish(out, options.course)
    differences = demo.compare(class_ / "truth.csv", out.grades)
    report = class_report(options, results, out, problems=differences)
    verdict = demo.verdict(results, count, differences)
    return replace(
        report,
        text=f"{report.text}\n\n{verdict}",
        data={**report.data, "differences": differences, "verdict": verdict},
        paths={**report.paths, "truth": class_ / "truth.csv"},
    )
