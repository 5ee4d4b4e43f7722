"""What several commands take as options, and how they report what they found."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from autograder.cli.report import USAGE, Report, found

if TYPE_CHECKING:  # each command imports what it needs, so that `--help` is quick
    from autograder.base.limits import Limits
    from autograder.model.result import Result
    from autograder.runs import classroom
    from autograder.store.out_folder import OutFolder

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = [
    "Commands",
    "add_lab",
    "add_out",
    "add_running",
    "cannot_run",
    "class_report",
    "classroom_of",
    "grade_with_progress",
    "has_gpu",
    "limits_of",
    "name_labs",
    "out_folder",
    "positive",
    "require_graded",
]

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


def add_out(command: argparse.ArgumentParser) -> None:
    """Add OUT, the folder that was graded into."""
    command.add_argument(
        "out", type=out_folder, metavar="OUT", help="the OUT of `autograder grade`"
    )


def out_folder(text: str) -> OutFolder:
    """A results folder on the command line."""
    from pathlib import Path

    from autograder.store.out_folder import OutFolder

    return OutFolder(Path(text))


def add_lab(command: argparse.ArgumentParser) -> None:
    """Add LAB, which `name_labs` completes."""
    command.add_argument("lab", metavar="LAB", help="such as lab01_formats, or lab01 for short")


def name_labs(options: argparse.Namespace) -> None:
    """Put the full names of labs in the place of what the command line has, such as `lab01`.

    Raises ValueError, with the labs there are, if one is unknown or may be several.
    """
    one, several = getattr(options, "lab", None), getattr(options, "labs", None)
    if one is None and not several:
        return
    from autograder.grading.registry import lab_named

    if one is not None:
        options.lab = lab_named(one, options.course)
    if several:
        options.labs = [lab_named(name, options.course) for name in several]


def limits_of(options: argparse.Namespace) -> Limits:
    """The limits that the options of `add_running` name; the usual ones for the others."""
    from autograder.base.limits import Limits

    given = {
        "cell_seconds": options.cell_seconds,
        "submission_seconds": options.submission_seconds,
        "memory_bytes": options.memory_gib and int(options.memory_gib * 2**30),
    }
    return Limits(**{name: value for name, value in given.items() if value is not None})


def classroom_of(options: argparse.Namespace, lab: str, out: OutFolder) -> classroom.Classroom:
    """The classroom of one lab, its results going to `out`."""
    from autograder.rules.semester import read_semester
    from autograder.runs import classroom

    return classroom.Classroom(
        lab=lab,
        out=out.resolve(),
        course=options.course.resolve(),
        secret=options.course.secret(),
        limits=limits_of(options),
        isolated=not options.insecure,
        rules=read_semester(out, options.course).ordinary,
    )


def cannot_run(options: argparse.Namespace) -> Report | None:
    """Return why no student's code is run here, where it cannot be shut in; None where it can."""
    from autograder.sandbox.host.isolation import missing_layers

    missing = [] if options.insecure else missing_layers()
    if not missing:
        return None
    last = "Nothing is graded without these layers, or with --insecure only."
    return Report(USAGE, data={"missing": missing}, problems=(*missing, last))


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

    from autograder.runs import classroom

    with tqdm(total=len(handed), desc=room.lab, unit="submission", disable=None) as bar:
        for _ in classroom.grade_all(room, handed, workers, _elsewhere(scheduler)):
            bar.update()


def _elsewhere(scheduler: str | None) -> classroom.Elsewhere | None:
    """What grades on the cluster with this scheduler; this machine's processes do without one."""
    if scheduler is None:
        return None
    try:
        from autograder.platforms.dask_cluster import on_cluster
    except ModuleNotFoundError as error:
        raise RuntimeError(
            f"--scheduler needs the package {error.name}: `pip install distributed` gets it"
        ) from None
    return on_cluster(scheduler)


def require_graded(out: OutFolder) -> None:
    """Raise ValueError where `out` is no whole folder that was graded into."""
    from autograder.publish.wholeness import require_whole
    from autograder.store.roll import taken

    require_whole(out)
    if not taken(out):
        raise ValueError(
            f"{out} holds no grades; expected the folder given to `autograder grade LAB --out OUT`"
        )


def class_report(
    options: argparse.Namespace,
    results: Sequence[Result],
    out: OutFolder,
    lab: str | None = None,
    problems: Sequence[str] = (),
    remarks: Sequence[str] = (),
) -> Report:
    """Return what a class came to, after writing the manual-review queue.

    `results` are all of those in `out`; with `lab` the report is about that lab alone, the list
    and the problems about all. A submission that is missing is a problem too.
    """
    from autograder.publish import review_queue, summary
    from autograder.publish.audit import audit
    from autograder.rules.semester import read_semester
    from autograder.store.roll import absent

    needs = review_queue.needs(results, out, options.course)
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
                review_queue.told(needs, out, options.course),
                f"Grades: {paths['grades']}   Feedback: {paths['feedback']}",
            ]
        ),
        data={"labs": list(map(asdict, labs)), "manual_review": list(map(asdict, needs))},
        remarks=remarks,
        paths=paths,
    )


def _failed(results: Sequence[Result]) -> list[str]:
    """A sentence for each submission that is not graded by the grader's own fault."""
    return [
        f"{r.student}, {r.lab}: {r.reason} Run `autograder grade` again."
        for r in results
        if r.end == "failed"
    ]
