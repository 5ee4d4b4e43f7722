"""The command `autograder`: build the labs, grade a class, check that nobody was lost."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from autograder.questions import COURSE

if TYPE_CHECKING:  # each command imports what it needs, so that `--help` is quick
    from autograder import classroom
    from autograder.result import Result
    from autograder.sandbox import Limits

__all__ = ["main"]

OK, PROBLEM, USAGE = 0, 1, 2

_LIMITS = (
    ("cell-seconds", "seconds that one cell may run", "30"),
    ("submission-seconds", "seconds that one notebook may run, all in all", "300"),
    ("memory-gib", "GiB of memory that one notebook may use", "2"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 where it found a problem, or 2 for what it cannot take."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many graders run at once
    try:
        status: int = options.run(options)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"autograder {options.command}: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="autograder", description=__doc__)
    parser.add_argument(
        "--course",
        type=Path,
        default=COURSE,
        metavar="DIR",
        help="the course's folder, with solutions/ and labs/ in it (default: this one)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_build(commands)
    _add_grade(commands)
    _add_regrade(commands)
    _add_rejudge(commands)
    _add_explain(commands)
    _add_export(commands)
    _add_audit(commands)
    _add_bank(commands)
    _add_sample(commands)
    _add_demo(commands)
    _add_release(commands)
    _add_doctor(commands)
    return parser


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def _add_build(commands: Commands) -> None:
    command = commands.add_parser("build", help="build solutions/ and labs/ from the sources")
    command.add_argument("labs", nargs="*", metavar="LAB", help="default: all labs")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="write nothing; say what is stale")
    how.add_argument(
        "--pull",
        action="store_true",
        help="first carry what was edited in the built notebooks into their sources",
    )
    command.set_defaults(run=_build)


def _build(options: argparse.Namespace) -> int:
    from autograder.build import build, check, find_sources

    labs = options.labs or None
    if options.check:
        stale = check(options.course, labs)
        print("\n".join(stale) or "All built notebooks are what their sources build.")
        return PROBLEM if stale else OK
    if options.pull:
        from autograder.pull import pull

        for source in find_sources(options.course, labs):
            changes = pull(options.course, source.stem) or ["no edits to pull"]
            print(f"{source.stem}:", *changes, sep="\n  ")
    for path in build(options.course, labs):
        print(f"built {path}")
    return OK


def _add_grade(commands: Commands) -> None:
    command = commands.add_parser("grade", help="grade the submissions of one lab")
    _add_class(command)
    command.set_defaults(run=_grade)


def _add_regrade(commands: Commands) -> None:
    command = commands.add_parser(
        "regrade", help="grade again after a lab has changed; show what changes, and ask"
    )
    _add_class(command)
    command.set_defaults(run=_regrade)


def _add_class(command: argparse.ArgumentParser) -> None:
    command.add_argument("lab", metavar="LAB")
    command.add_argument(
        "--submitted",
        type=Path,
        required=True,
        metavar="DIR",
        help="the notebooks, laid out as DIR/<student>/<lab>/<lab>.ipynb",
    )
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    _add_running(command)
    command.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="have a Dask cluster grade, whose machines see OUT and the submissions at one path",
    )


def _add_running(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--workers",
        type=_positive,
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


def _grade(options: argparse.Namespace) -> int:
    from autograder import classroom

    if not options.insecure and _doctor(options, quiet=True) != OK:
        return USAGE
    room = _classroom(options, options.lab, options.out)
    for sentence in classroom.outdated(room.out, room.root, room.limits):
        if sentence.startswith(f"{room.lab}: "):
            print(f"{sentence}; they are made again.", file=sys.stderr)
    problems = _grade_rounds(room, room.out, options)
    results = _publish(options, options.out)
    for sentence in classroom.outdated(room.out, room.root):
        print(f"{sentence}; `autograder grade` makes them again.", file=sys.stderr)
    status = _report([*problems, *_broken(results)])
    return _audit(options) or status


def _regrade(options: argparse.Namespace) -> int:
    from autograder import changes, regrade

    if not options.insecure and _doctor(options, quiet=True) != OK:
        return USAGE
    room = _classroom(options, options.lab, options.out)
    problems = _grade_rounds(regrade.beside(room), room.out, options)
    comparison = regrade.compare(room)
    if comparison.new:
        print(f"Graded for the first time: {', '.join(comparison.new)}")
    print(changes.told(comparison.changes) if comparison.changes else "No score changes.")
    if (comparison.changes or comparison.new) and not changes.agreed():
        print(f"Nothing was written; the new results lie in {regrade.beside(room).out}.")
        return OK
    regrade.commit(room, comparison)
    return _report(problems) or _audit(options)


def _grade_rounds(room: classroom.Classroom, out: Path, options: argparse.Namespace) -> list[str]:
    """Grade all attempts, and make those that count, by the rules in `out`, the room's own."""
    from autograder.attempts import rounds, settle
    from autograder.semester import read_semester

    semester = read_semester(out)
    graded = rounds(room, options.submitted.resolve(), semester)
    for one in graded:
        _grade_with_progress(one.room, one.handed, options.workers, options.scheduler)
    return settle(room, graded, semester)


def _publish(options: argparse.Namespace, out: Path) -> list[Result]:
    """Write all that leaves, and show the class as a table."""
    from autograder.classroom import publish
    from autograder.export import summary

    results = publish(out, options.course)
    print(summary(results, options.course))
    print(f"\nGrades: {out / 'grades.csv'}   Feedback: {out / 'feedback'}")
    return results


def _classroom(options: argparse.Namespace, lab: str, out: Path) -> classroom.Classroom:
    from autograder import classroom

    return classroom.Classroom(
        lab=lab,
        out=out.resolve(),
        root=options.course.resolve(),
        secret=classroom.course_secret(options.course / ".course_secret"),
        limits=_limits(options),
        isolated=not options.insecure,
    )


def _limits(options: argparse.Namespace) -> Limits:
    from autograder.sandbox import Limits

    given = {
        "cell_seconds": options.cell_seconds,
        "submission_seconds": options.submission_seconds,
        "memory_bytes": options.memory_gib and int(options.memory_gib * 2**30),
    }
    return Limits(**{name: value for name, value in given.items() if value is not None})


def _broken(results: Sequence[Result]) -> list[str]:
    """A sentence for each submission that is not graded by the grader's own fault."""
    return [
        f"{r.student}, {r.lab}: {r.reason} Run `autograder grade` again."
        for r in results
        if r.end == "failed"
    ]


def _grade_with_progress(
    room: classroom.Classroom,
    handed: Sequence[classroom.Handed],
    workers: int,
    scheduler: str | None = None,
) -> None:
    from tqdm import tqdm

    from autograder import classroom

    with tqdm(total=len(handed), desc=room.lab, unit="submission", disable=None) as bar:
        for _ in classroom.grade_all(room, handed, workers, scheduler):
            bar.update()


def _add_rejudge(commands: Commands) -> None:
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
    return _audit(options)


def _add_explain(commands: Commands) -> None:
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


def _add_export(commands: Commands) -> None:
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


def _add_audit(commands: Commands) -> None:
    command = commands.add_parser("audit", help="check that no submission was lost")
    command.add_argument("out", type=Path, metavar="OUT")
    command.set_defaults(run=_audit)


def _audit(options: argparse.Namespace) -> int:
    from autograder.audit import audit

    return _report(audit(options.out))


def _report(problems: Sequence[str]) -> int:
    for problem in problems:
        print(problem, file=sys.stderr)
    return PROBLEM if problems else OK


def _add_bank(commands: Commands) -> None:
    command = commands.add_parser("bank", help="grade a bank of right and wrong answers")
    command.add_argument("dir", type=Path, metavar="DIR")
    command.add_argument("--lab", metavar="LAB", help="default: every lab that DIR has answers to")
    _add_running(command)
    command.set_defaults(run=_bank)


def _bank(options: argparse.Namespace) -> int:
    from autograder.bank import check_bank, read_bank
    from autograder.released import release_of
    from autograder.tasks import find_lab, lab_names

    if not options.insecure and _doctor(options, quiet=True) != OK:
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
        report = check_bank(release_of(name, options.course / "labs"), entries, grade)
        for line in (*report.problems, *report.inexact, *report.not_run):
            print(line)
        print(f"{name}: {report.graded} answers graded, {len(report.problems)} problems")
        problems += len(report.problems)
    return PROBLEM if problems else OK


def _grade_for_bank(
    options: argparse.Namespace, lab: str, notebooks: Sequence[Mapping[str, Any]]
) -> list[Result]:
    from autograder import classroom

    with TemporaryDirectory(prefix="autograder-bank-") as out:
        room = _classroom(options, lab, Path(out))
        return classroom.grade_notebooks(room, notebooks, options.workers)


def _add_sample(commands: Commands) -> None:
    command = commands.add_parser("sample", help="make a class of submissions with known scores")
    command.add_argument("lab", metavar="LAB")
    command.add_argument("--students", type=_positive, required=True, metavar="N")
    command.add_argument("--seed", type=int, default=0, metavar="S")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.set_defaults(run=_sample)


def _sample(options: argparse.Namespace) -> int:
    from autograder.sample import sample
    from autograder.tasks import find_lab

    bank, releases = options.course / "tests" / "bank", options.course / "labs"
    lab = find_lab(options.lab)
    sample(lab, options.students, options.seed, options.out, bank, releases, has_gpu=_has_gpu())
    print(f"{options.out / 'submitted'} holds the class, {options.out / 'truth.csv'} its scores.")
    return OK


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _add_demo(commands: Commands) -> None:
    command = commands.add_parser("demo", help="sample a class, grade it, compare with the truth")
    command.add_argument("--students", type=_positive, default=24, metavar="N")
    command.add_argument("--seed", type=int, default=0, metavar="S")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    _add_running(command)
    command.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> int:
    from autograder import classroom, demo
    from autograder.audit import audit
    from autograder.tasks import lab_names

    if not options.insecure and _doctor(options, quiet=True) != OK:
        return USAGE
    count, out = options.students, options.out
    class_ = demo.prepare(out, count, options.seed, options.course, has_gpu=_has_gpu())
    for name in lab_names():
        room = _classroom(options, name, out / "graded")
        handed = classroom.take(room, class_ / "submitted")
        _grade_with_progress(room, handed, options.workers)
    results = _publish(options, out / "graded")
    differences = demo.compare(class_ / "truth.csv", out / "graded" / "grades.csv")
    problems = [*differences, *audit(out / "graded")]
    status = _report(problems)
    print(demo.verdict(results, count, differences))
    return status


def _add_release(commands: Commands) -> None:
    command = commands.add_parser("release", help="make the zips that students get")
    command.add_argument("labs", nargs="*", metavar="LAB", help="default: all labs")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.set_defaults(run=_release)


def _release(options: argparse.Namespace) -> int:
    from autograder.release import make_release

    for path, versions in make_release(options.course, options.labs or None, options.out).items():
        print(f"{path}  ({path.stat().st_size / 2**20:.1f} MiB, {', '.join(versions)})")
    return OK


def _add_doctor(commands: Commands) -> None:
    command = commands.add_parser("doctor", help="say whether this machine can grade safely")
    command.set_defaults(run=_doctor)


def _doctor(_: argparse.Namespace, *, quiet: bool = False) -> int:
    from autograder.isolation import missing_layers

    missing = missing_layers()
    for sentence in missing:
        print(sentence, file=sys.stderr)
    if missing:
        print("Nothing is graded without these layers, or with --insecure only.", file=sys.stderr)
    elif not quiet:
        print("The sandbox works here: this machine can grade.")
    return PROBLEM if missing else OK


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 1")
    return number


def _positive_real(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number
