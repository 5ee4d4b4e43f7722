"""Finds small changes of the reference solutions that would still earn full points.

Each mutant is graded in the sandbox by its task's own judge, in a separate notebook: the solved
one, reduced to the cells that the task's names depend on, with only its own task. So no mutant can
affect another, and each costs no more than a process and its task's cases. A first round in this
process would save little, because the task itself takes most of the time, and measured tasks would
have other figures.

A mutant that earns full points *survives*. Either it does everything that the exercise asks for,
and a file says why (bank/mutants/<lab>.toml in this course), or the task's cases have a hole.
"""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from autograder.base import pool
from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.base.spelling import did_you_mean
from autograder.content import find_lab, find_task
from autograder.grading.grade import grade
from autograder.model.definitions import reachable
from autograder.model.status import NEEDS
from autograder.model.submission import RunCell, Submission
from autograder.model.task import Verdict
from autograder.notebooks.intake import take_in
from autograder.notebooks.questions import source_notebook
from autograder.notebooks.released import release_of, solution_sources
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.unprotected import Unprotected
from autograder.trials.answer_bank import submission_with
from autograder.trials.mutants import Mutant, mutants_of

__all__ = ["Solved", "check_mutants", "grade_mutants", "read_explained", "solve", "tasks_named"]

_SECRET = b"the mutants' cases"
_UNCHANGED = "the solution itself"

Graded = tuple[Mutant, Verdict | str]  # a string says why there is no verdict


@dataclass(frozen=True)
class Solved:
    """A lab with all its exercises solved, and the settings for grading mutants of them."""

    #: The lab's name.
    lab: str
    #: By task, a submission reduced to the cells that the task's names depend on.
    submissions: Mapping[str, Submission]
    #: What one submission may use.
    limits: Limits
    #: Whether mutants run in the sandbox.
    isolated: bool = True
    #: Seeds the drawn cases.
    seed: int = 0

    def mutants(self, tasks: Iterable[str]) -> list[Mutant]:
        """Return the mutants of these tasks, each task's after its unchanged solution."""
        found = []
        for task in tasks:
            source = _solution(self.submissions[task], task).source
            found.append(
                Mutant(
                    id=f"{task}: {_UNCHANGED}",
                    task=task,
                    line="",
                    change=_UNCHANGED,
                    source=source,
                )
            )
            found += mutants_of(task, source)
        return found

    def with_mutant(self, mutant: Mutant) -> Submission:
        """Return the submission with a mutant in it; only its id and the seed draw its cases."""
        submission = self.submissions[mutant.task]
        cells = list(submission.cells)
        place = cells.index(_solution(submission, mutant.task))
        cells[place] = replace(cells[place], source=mutant.source)
        return replace(submission, raw=f"{mutant.id} {self.seed}".encode(), cells=tuple(cells))


@dataclass(frozen=True)
class MutationReport:
    """The outcome of grading the mutants of a lab, or of some of its tasks."""

    #: Unexpected outcomes, a sentence each; empty if there are none.
    problems: tuple[str, ...]
    #: The number of graded mutants.
    graded: int
    #: The number of mutants that lost points.
    killed: int
    #: The ids of all mutants that earned full points.
    survivors: tuple[str, ...]
    #: The survivors that no file explains.
    unexplained: tuple[str, ...]
    #: Mutants that couldn't be judged: they earned nothing, but weren't judged incorrect.
    doubted: tuple[str, ...]
    #: Tasks that need a GPU, if there is none.
    not_run: tuple[str, ...]


def solve(
    lab: str, course: Course, limits: Limits, *, isolated: bool = True, seed: int = 0
) -> Solved:
    """Return the lab of `course` with its instructor's solutions in it."""
    tasks = {task.id for task in find_lab(lab).tasks}
    release = release_of(lab, course.releases)
    solutions = solution_sources(source_notebook(lab, course))
    sources = {task: source for task, source in solutions.items() if task in tasks}
    raw = json.dumps(submission_with(release, sources)).encode()
    whole = take_in("mutant", lab, raw, release)
    submissions = {task: _cut(whole, find_task(task).defines) for task in sources}
    return Solved(lab=lab, submissions=submissions, limits=limits, isolated=isolated, seed=seed)


def _cut(whole: Submission, names: Sequence[str]) -> Submission:
    """The submission without the cells that these names don't depend on, such as a lab's plots."""
    reached = reachable(names, [cell.source for cell in whole.cells])
    needed = set(map(ast.dump, reached.statements))

    def is_needed(cell: RunCell) -> bool:
        try:
            return not needed.isdisjoint(map(ast.dump, ast.parse(cell.source).body))
        except SyntaxError:
            return True  # for example a magic, which Python alone can't parse

    return replace(whole, cells=tuple(filter(is_needed, whole.cells)))


def _solution(submission: Submission, task: str) -> RunCell:
    return next(c for c in submission.cells if (c.kind, c.task) == ("solution", task))


def tasks_named(solved: Solved, names: Sequence[str] | None) -> list[str]:
    """Return the ids of these tasks of the lab, by default of all.

    A task may be named without its lab, as in `state_bytes`. Raises ValueError if a name is no
    task's.
    """
    tasks = {task: task for task in solved.submissions}
    tasks |= {task.partition("-")[2]: task for task in solved.submissions}
    unknown = [name for name in names or () if name not in tasks]
    if unknown:
        near, known = did_you_mean(unknown[0], tasks), ", ".join(solved.submissions)
        raise ValueError(f"{solved.lab} has no task {unknown[0]!r}; its tasks are {known}.{near}")
    return [tasks[name] for name in names or solved.submissions]


def read_explained(path: Path) -> dict[str, str]:
    """Return the reasons why the mutants listed in a file may survive, by their ids.

    Raises ValueError if the file doesn't have this form: tables `[[survivor]]`, each with a
    `reason` and the ids of `mutants`, none of them listed twice. A missing file counts as empty.
    """
    if not path.exists():
        return {}
    reasons: dict[str, str] = {}
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        if set(read) != {"survivor"}:
            raise ValueError(f"it holds {', '.join(read) or 'nothing'}")
        for table in read["survivor"]:
            for name in table["mutants"]:
                if name in reasons or not table["reason"].strip():
                    raise ValueError(f"{name} is listed twice, or without a reason")
                reasons[name] = table["reason"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}: {error}; expected tables [[survivor]] with a reason and mutants"
        ) from None
    return reasons


def check_mutants(
    graded: Iterable[Graded], explained: Mapping[str, str], tasks: Sequence[str]
) -> MutationReport:
    """Return the outcome of all mutants of `tasks`, compared with those that are explained."""
    by_end: dict[str, list[str]] = {}
    problems: list[str] = []
    for mutant, verdict in graded:
        end = _end(verdict)
        if mutant.change != _UNCHANGED:
            by_end.setdefault(end, []).append(mutant.id)
        elif end in ("killed", "doubted"):
            assert isinstance(verdict, Verdict)
            problems.append(f"{mutant.id} is not right: {verdict.message}")
        if isinstance(verdict, str):
            problems.append(f"{mutant.id} was not judged: {verdict}")
    ids = {end: tuple(names) for end, names in by_end.items()}
    survivors, not_run = ids.get("survived", ()), ids.get("not run", ())
    unexplained = tuple(name for name in survivors if name not in explained)
    problems += [f"{name}: survived" for name in unexplained]
    problems += _idle(explained, {*survivors, *not_run}, tasks)
    return MutationReport(
        problems=tuple(problems),
        graded=sum(len(names) for end, names in by_end.items() if end != "not run"),
        killed=len(ids.get("killed", ())),
        survivors=survivors,
        unexplained=unexplained,
        doubted=ids.get("doubted", ()),
        not_run=tuple(sorted({name.partition(":")[0] for name in not_run})),
    )


def _end(verdict: Verdict | str) -> str:
    if isinstance(verdict, str):
        return "failed"
    if verdict.status in NEEDS:
        return "not run"
    ends = {"right": "survived", "could_not_judge": "doubted"}
    return ends.get(verdict.status, "killed")


def _idle(explained: Mapping[str, str], survivors: set[str], tasks: Sequence[str]) -> Iterator[str]:
    """A sentence for each entry that names a mutant which didn't survive."""
    for name in explained:
        if name.partition(":")[0] in tasks and name not in survivors:
            yield f"{name}: listed as a survivor, but no such mutant survived"


# Running


def grade_mutants(solved: Solved, mutants: Sequence[Mutant], workers: int) -> Iterator[Graded]:
    """Yield each mutant with its verdict, as soon as it is graded."""
    work: pool.Work[Mutant, Verdict] = pool.Work(
        partial(_grading, solved),
        preload=(__name__, f"autograder.content.{find_lab(solved.lab).number}"),
        wall_seconds=2 * solved.limits.submission_seconds,
    )
    for mutant, outcome in pool.run_all(mutants, work, workers):
        yield mutant, outcome.reason if isinstance(outcome, pool.Failure) else outcome


@contextmanager
def _grading(solved: Solved, slot: int) -> Iterator[Callable[[Mutant], Verdict]]:
    """Yield a function that grades mutants in one sandbox, in a worker's process."""
    lab = find_lab(solved.lab)
    measured = any(task.trust == "measured" for task in lab.tasks)
    backend = None if solved.isolated else Unprotected()
    with Sandbox(
        lab.hides,
        slot=slot,
        limits=solved.limits,
        backend=backend,
        measured=measured,
        ranks=lab.ranks,
    ) as sandbox:

        def verdict_on(mutant: Mutant) -> Verdict:
            alone = replace(lab, tasks=(find_task(mutant.task),))
            graded = grade(alone, solved.with_mutant(mutant), sandbox, _SECRET)
            (verdict,) = graded.result.verdicts
            return verdict

        yield verdict_on
