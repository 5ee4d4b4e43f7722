"""`autograder doctor`, `bank`, `mutate`, `sample`, `demo`: check that the grader works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autograder.base.course import Course
from autograder.base.plural import plural
from autograder.cli.command import Output
from autograder.cli.common import (
    Lab,
    Running,
    cannot_run,
    class_report,
    classroom_of,
    grade_with_progress,
    has_gpu,
    progress,
)
from autograder.cli.report import Report, found
from peakmem.show.cli.program import Command

if TYPE_CHECKING:
    from autograder.model.result import Result
    from autograder.trials.calibration import Tally

__all__ = ["MeasureCommand", "bank", "demo", "doctor", "mutate", "sample"]

_ROUNDS = 3

Students = typer.Option(metavar="N", min=1, max=100_000, help="Number of students.")
Seed = Annotated[int, typer.Option(metavar="S", help="Random seed.")]
Into = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the output.")]


class MeasureCommand(Command):
    """A command whose option --measure has an optional value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--measure") + 1 if "--measure" in args else 0
        if at and not "".join(args[at : at + 1]).isdigit():
            args = [*args[:at], str(_ROUNDS), *args[at:]]
        return super().parse_args(ctx, args)


def doctor(
    course: Course,
    output: Output,
    measure: Annotated[
        int | None,
        typer.Option(
            metavar="[N]",
            min=1,
            help="Also grade each correct answer to the exercises with a memory budget N times; "
            f"{_ROUNDS} times by default.",
        ),
    ] = None,
) -> Report:
    """Check whether this machine can grade safely."""
    from autograder.sandbox.host.isolation import missing_layers
    from autograder.sandbox.host.protection import protection

    if missing := missing_layers():
        return _cannot_grade(missing)
    guarded = protection()
    lines = ["The sandbox works: this machine can grade.", *guarded.lines]
    data = {
        "can_grade": True,
        "missing": [],
        "way": "namespaces",
        "gpu": has_gpu(),
        "kernel_memory": guarded.kernel_memory,
        "budgets_hold": guarded.budgets_hold,
    }
    if measure is None:
        return Report(text="\n".join(lines), data=data)
    counted = _measure(course.resolve(), measure, output)
    return found(
        [tally.problem for tally in counted if tally.problem],
        text="\n".join([*lines, *map(str, counted)]),
        data={**data, "measured": [asdict(tally) for tally in counted]},
    )


def _cannot_grade(missing: list[str]) -> Report:
    from autograder.sandbox.host import uid_isolation

    problems = [*missing, "This machine can't grade until you fix that."]
    way = None if uid_isolation.missing_layers() else "user ids"
    if way is not None:
        problems.append(
            "This machine can isolate submissions by user ID, but only Gradescope autograders use "
            "that."
        )
    data = {"can_grade": False, "missing": missing, "way": way, "gpu": has_gpu()}
    return found(problems, data=data)


def _measure(course: Course, rounds: int, output: Output) -> list[Tally]:
    """Grade correct answers to the exercises with a memory budget, and count failures."""
    from autograder.trials import calibration

    gradings = calibration.calibrate(calibration.measured_labs(), course, rounds)
    return calibration.tallies(progress(gradings, output, desc="measuring", unit="grading"))


def bank(
    course: Course,
    output: Output,
    answers: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the answer bank.")],
    running: Running,
    lab: Annotated[
        str | None, typer.Option(metavar="LAB", help="Lab; by default, all in DIR.")
    ] = None,
) -> Report:
    """Grade the correct and incorrect answers of an answer bank."""
    from autograder.content import find_lab, lab_names
    from autograder.notebooks.released import release_of
    from autograder.trials.answer_bank import check_bank, read_bank

    if (refused := cannot_run(running)) is not None:
        return refused
    names = [lab] if lab else [n for n in lab_names() if (answers / n).is_dir()]
    if not names:
        raise FileNotFoundError(
            f"{answers} is not an answer bank; expected folders named {', '.join(lab_names())}"
        )
    labs: list[dict[str, Any]] = []
    lines: list[str] = []
    problems: list[str] = []
    for name in names:
        entries = read_bank(answers, find_lab(name))
        grade = partial(_grade_for_bank, course, running, name)
        checked = check_bank(release_of(name, course.releases), entries, grade)
        labs.append({"lab": name, **asdict(checked)})
        problems += checked.problems
        lines += [*checked.inexact, *checked.not_run]
        graded, faults = plural(checked.graded, "answer"), plural(len(checked.problems), "problem")
        lines.append(f"{name}: {graded} graded, {faults}")
    return found(problems, text="\n".join(lines), data={"labs": labs})


def _grade_for_bank(
    course: Course, running: Running, lab: str, notebooks: Sequence[Mapping[str, Any]]
) -> list[Result]:
    from autograder.runs import classroom
    from autograder.store.out_folder import OutFolder

    with TemporaryDirectory(prefix="autograder-bank-") as out:
        room = classroom_of(course, running, lab, OutFolder(Path(out)))
        return classroom.grade_notebooks(room, notebooks, running.workers)


def mutate(
    course: Course,
    output: Output,
    lab: Lab,
    running: Running,
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK", help="Only this exercise; may be repeated."),
    ] = None,
    explained: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default="bank/mutants/LAB.toml",
            help="File with the mutants that may survive, and the reasons.",
        ),
    ] = None,
    seed: Seed = 0,
) -> Report:
    """Grade solutions with small slips; all should lose points."""
    from autograder.trials import mutate as slips

    if (refused := cannot_run(running)) is not None:
        return refused
    isolated = not running.insecure
    solved = slips.solve(lab, course, running.limits, isolated=isolated, seed=seed)
    tasks = slips.tasks_named(solved, task)
    allowed = slips.read_explained(explained or course.explained_mutants(lab))
    mutants = solved.mutants(tasks)
    graded = slips.grade_mutants(solved, mutants, running.workers)
    bar = progress(graded, output, total=len(mutants), desc=lab, unit="mutant")
    report = slips.check_mutants(bar, allowed, tasks)
    lines = [f"{name}: not run, because it needs a GPU." for name in report.not_run]
    lines += [f"{name}: not judged." for name in report.doubted]
    lines.append(
        f"{lab}: {report.graded} mutants graded, {report.killed} killed, "
        f"{len(report.survivors)} survived, {len(report.unexplained)} of them unexplained"
    )
    data = {"lab": lab, **asdict(report)}
    return found(report.problems, text="\n".join(lines), data=data)


def sample(
    course: Course,
    lab: Lab,
    students: Annotated[int, Students],
    to: Into,
    seed: Seed = 0,
) -> Report:
    """Make a class of submissions with known scores."""
    from autograder.content import find_lab
    from autograder.trials.sampled_class import ClassFolder, sample_class

    sample_class(
        [find_lab(lab)], students, seed, to, course.bank, course.releases, has_gpu=has_gpu()
    )
    class_ = ClassFolder(to)
    paths = {"submitted": class_.submitted, "truth": class_.truth}
    text = f"{paths['submitted']} contains the class, {paths['truth']} its scores."
    return Report(text=text, paths=paths)


def demo(
    course: Course,
    output: Output,
    to: Into,
    running: Running,
    students: Annotated[int, Students] = 24,
    seed: Seed = 0,
) -> Report:
    """Sample a class, grade it, and compare with its known scores."""
    from autograder.content import lab_names
    from autograder.publish.publishing import publish
    from autograder.runs import classroom
    from autograder.store.out_folder import OutFolder
    from autograder.trials import demo as trial

    if (refused := cannot_run(running)) is not None:
        return refused
    out = OutFolder(to / "graded")
    class_ = trial.prepare(to, students, seed, course, has_gpu=has_gpu())
    for name in lab_names():
        room = classroom_of(course, running, name, out)
        handed = classroom.take(room, class_.submitted)
        grade_with_progress(room, handed, running, output)
    results = publish(out, course)
    differences = trial.compare(class_.truth, out.grades)
    report = class_report(course, results, out, problems=differences)
    verdict = trial.verdict(results, students, differences)
    return replace(
        report,
        text=f"{report.text}\n\n{verdict}",
        data={**report.data, "differences": differences, "verdict": verdict},
        paths={**report.paths, "truth": class_.truth},
    )
