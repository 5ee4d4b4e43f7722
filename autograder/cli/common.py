"""Options and reports that several commands share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from autograder.base.course import COURSE, Course
from autograder.base.limits import Limits
from autograder.base.terminal import say
from autograder.cli.report import USAGE, Report, found

if TYPE_CHECKING:  # each command imports what it needs, so that `--help` is quick
    from autograder.cli.command import Output
    from autograder.model.result import Result
    from autograder.runs.classroom import Elsewhere
    from autograder.runs.room import Classroom, Handed
    from autograder.store.out_folder import OutFolder
else:
    OutFolder = Any  # a parameter's type, which Typer wants to know

__all__ = [
    "Graded",
    "Lab",
    "Labs",
    "OutFolder",
    "Running",
    "cannot_run",
    "class_report",
    "classroom_of",
    "grade_with_progress",
    "has_gpu",
    "out_folder",
    "out_option",
    "progress",
    "require_graded",
    "require_journal",
]

Item = TypeVar("Item")


# Options


def out_folder(text: str) -> OutFolder:
    """Parse a results folder on the command line."""
    from autograder.store.out_folder import OutFolder

    return OutFolder(Path(text))


def named_labs(context: typer.Context) -> Iterable[str]:
    """The course's labs, for shell completion."""
    from autograder.grading.registry import lab_names

    course = context.find_root().params.get("course")
    return lab_names(Course(Path(course)) if course else COURSE)


Lab = Annotated[
    str,
    typer.Argument(
        metavar="LAB",
        help="Lab, such as lab01_formats, or lab01 for short.",
        autocompletion=named_labs,
    ),
]
Labs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[LAB]...", help="Labs; by default, all.", autocompletion=named_labs),
]
#: The results folder of an earlier `grade`.
Graded = Annotated[
    OutFolder,
    typer.Argument(
        parser=out_folder, metavar="OUT", help="Results folder: the OUT of `autograder grade`."
    ),
]


def out_option(text: str) -> Any:
    """The option --out OUT of commands that create a results folder or add to one."""
    return typer.Option("--out", parser=out_folder, metavar="OUT", help=text)


def _above_zero(value: float) -> float:
    if not 0 < value < 1e6:
        raise typer.BadParameter(f"{value:g} is not a number above 0")
    return value


def _limit(text: str) -> Any:
    return typer.Option(
        metavar="N", callback=_above_zero, help=text, rich_help_panel="Limits of one notebook"
    )


@dataclass(frozen=True)
class Running:
    """The options of commands that run students' code."""

    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            show_default="one per processor",
            help="Submissions graded at the same time.",
        ),
    ] = os.cpu_count() or 1
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Run students' code WITHOUT the sandbox; mark results."),
    ] = False
    cell_seconds: Annotated[float, _limit("Seconds a cell may run.")] = Limits.cell_seconds
    submission_seconds: Annotated[float, _limit("Seconds a notebook may run.")] = (
        Limits.submission_seconds
    )
    memory_gib: Annotated[float, _limit("GiB of memory a notebook may use.")] = (
        Limits.memory_bytes / 2**30
    )

    @property
    def limits(self) -> Limits:
        """The limits of one notebook."""
        return Limits(
            cell_seconds=self.cell_seconds,
            submission_seconds=self.submission_seconds,
            memory_bytes=int(self.memory_gib * 2**30),
        )


# Work


def classroom_of(course: Course, running: Running, lab: str, out: OutFolder) -> Classroom:
    """The classroom of one lab, with its results in `out`."""
    from autograder.rules.semester import read_semester
    from autograder.runs.room import Classroom

    return Classroom(
        lab=lab,
        out=out.resolve(),
        course=course.resolve(),
        secret=course.secret(),
        limits=running.limits,
        isolated=not running.insecure,
        rules=read_semester(out, course).ordinary,
    )


def cannot_run(running: Running) -> Report | None:
    """Return a report of the missing layers if students' code can't be isolated, else None."""
    from autograder.sandbox.host.isolation import missing_layers

    missing = [] if running.insecure else missing_layers()
    if not missing:
        return None
    last = "The grader doesn't run students' code without these layers, except with --insecure."
    return Report(USAGE, data={"missing": missing}, problems=(*missing, last))


def has_gpu() -> bool:
    """Whether this machine can grade exercises that need a GPU."""
    import torch

    return torch.cuda.is_available()


def progress(items: Iterable[Item], output: Output, **bar: Any) -> Iterator[Item]:
    """Iterate over the items with a progress bar on terminals."""
    from tqdm import tqdm

    yield from tqdm(items, disable=output.quiet or None, **bar)


def grade_with_progress(
    room: Classroom,
    handed: Sequence[Handed],
    running: Running,
    output: Output,
    scheduler: str | None = None,
) -> None:
    """Grade ungraded submissions; with --verbose, name each one that is done."""
    if not handed:
        return
    from autograder.runs.classroom import grade_all

    graded = grade_all(room, handed, running.workers, _elsewhere(scheduler))
    bar = {"total": len(handed), "desc": room.lab, "unit": "submission"}
    for student in progress(graded, output, **bar):
        if output.verbose:
            say(f"{room.lab}: graded {student}")


def _elsewhere(scheduler: str | None) -> Elsewhere | None:
    """The cluster with this scheduler; None to grade in this machine's processes."""
    if scheduler is None:
        return None
    try:
        from autograder.platforms.dask_cluster import on_cluster
    except ModuleNotFoundError as error:
        raise RuntimeError(
            f"--scheduler needs the package {error.name}; run `pip install distributed`"
        ) from None
    return on_cluster(scheduler)


def require_graded(out: OutFolder) -> None:
    """Raise ValueError unless `out` is an undamaged results folder with grades."""
    from autograder.publish.wholeness import require_whole
    from autograder.store.roll import taken

    require_whole(out)
    if not taken(out):
        raise ValueError(
            f"{out} contains no grades; expected the OUT of `autograder grade LAB --out OUT`"
        )
    require_journal(out)


def require_journal(out: OutFolder) -> None:
    """Raise ValueError if `out` names submissions, but has no journal to take grades from."""
    from autograder.base.damage import is_there
    from autograder.store.small_files import TAKEN

    folders = (out, *out.attempts())
    if is_there(TAKEN.path(out)) and not any(folder.entries() for folder in folders):
        raise ValueError(
            f"{out} has no result in its journal; restore {out}/journal from a backup, or run "
            "`autograder grade` again with the submissions' folder"
        )


def class_report(
    course: Course,
    results: Sequence[Result],
    out: OutFolder,
    lab: str | None = None,
    problems: Sequence[str] = (),
    remarks: Sequence[str] = (),
) -> Report:
    """Write the manual-review queue and return the report on a class.

    `results` are all results in `out`. With `lab`, text and data cover only that lab; the written
    queue and the problems cover all. Missing submissions count as problems.
    """
    from autograder.publish import review_queue, summary
    from autograder.publish.audit import audit
    from autograder.rules.semester import read_semester
    from autograder.store.roll import absent

    needs = review_queue.needs(results, out, course)
    review_queue.write_needs(needs, out)
    shown = [result for result in results if lab in (None, result.lab)]
    needs = [need for need in needs if lab in (None, need.lab)]
    labs = summary.summaries(
        shown, absent(out, [student.id for student in read_semester(out, None).roster])
    )
    paths = {
        "out": out.path,
        "grades": out.grades,
        "feedback": out.feedback,
        "manual_review": out.manual_review,
    }
    return found(
        [*problems, *_failed(results), *audit(out)],
        text="\n\n".join(
            [
                summary.told(labs, shown),
                review_queue.told(needs, out, course),
                f"Grades: {paths['grades']}   Feedback: {paths['feedback']}",
            ]
        ),
        data={"labs": list(map(asdict, labs)), "manual_review": list(map(asdict, needs))},
        remarks=remarks,
        paths=paths,
    )


def _failed(results: Sequence[Result]) -> list[str]:
    """A sentence for each submission that the grader failed to grade."""
    return [
        f"{r.student}, {r.lab}: {r.reason} Run `autograder grade` again."
        for r in results
        if r.end == "failed"
    ]
