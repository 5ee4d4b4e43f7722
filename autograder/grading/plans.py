"""Plans which cells of a notebook run, for all exercises together or for one exercise alone.

Exercises share one process: names, libraries, memory, time. Work on one can make a correct answer
to another look incorrect. So an exercise is judged on the names as they were at its own cell, and
an exercise that isn't correct runs once more without the student's work on the others. In that run,
anything that its reference solution builds on comes from the instructor, and everything else that
the student's code uses comes from the student: calling another exercise's function earns nothing
unless the student solved it. This module reads source text and runs nothing.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autograder.model.definitions import reachable, statements
from autograder.model.state import is_own, is_stub, is_written, order_of, state_of
from autograder.model.submission import RunCell, Submission
from autograder.model.task import Task
from autograder.notebooks.graded import marks_of
from autograder.notebooks.released import task_of

__all__ = ["Keep", "Plan", "plan_alone", "plan_together"]

# By a cell's index and by task: the names whose values after that cell belong to the task's state.
Keep = Mapping[int, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Plan:
    """The cells to run, and the names to keep after each of them."""

    #: The cells, in order.
    cells: Sequence[RunCell]
    #: The names that make up each exercise's state.
    keep: Keep
    #: Whether solutions are among the cells, which students must not see.
    has_solutions: bool = False
    #: Whether the students' cells are compiled so that their conversions are seen.
    watched: bool = False


def plan_together(tasks: Iterable[Task], cells: Sequence[RunCell]) -> Plan:
    """Return the plan to run a notebook as it is, with a state for each exercise.

    A state has the names that the exercise uses, with their values after its cell. A name not bound
    by then has the value from the first later added cell that binds it, or else its value at the
    end.
    """
    keep: dict[int, dict[str, list[str]]] = defaultdict(dict)
    watched = False
    for task in tasks:
        watched = watched or task.ban.conversions
        place = state_of(task, cells)
        _, names = _reach(task, cells)
        keep[place][task.id] = sorted(names)
        for cell in cells:
            if cell.index > place and is_own(task, cell):
                keep[cell.index][task.id] = sorted(names & _bound(cell))
    return Plan(cells, keep, watched=watched)


def plan_alone(task: Task, submission: Submission, solutions: Mapping[str, str]) -> Plan | None:
    """Return the plan to run one exercise without the student's other exercises.

    Returns None if that would change nothing, because the exercise isn't written or the student
    wrote nothing else. From `solutions`, by task, the plan runs the statements that this task's
    solution builds on. Besides the exercise's own cells, it runs added cells that bind a name it
    uses, and other exercises' statements that bind such a name if nothing else does.
    """
    cells = submission.cells
    if not is_written(task, cells):
        return None
    place = state_of(task, cells)
    reached, names = _reach(task, cells)
    given = [cell for cell in cells if cell.kind in ("given", "check")]
    put_in = list(_built_on(task, submission, given, solutions))
    own = [cell for cell in cells if cell.index == place or cell.task == task.id]
    elsewhere = names.difference(*map(_bound, [*given, *put_in, *own]))
    there = {cell.index for cell in [*given, *own]}
    others = [cell for cell in cells if cell.index not in there]
    kept, dropped = own, False
    for cell in others:
        if cell.kind == "own" and _lends(cell, names, elsewhere):
            kept.append(cell)
            continue
        if cell.kind == "solution" and (source := _part_of(cell, reached, elsewhere)):
            kept.append(replace(cell, source=source))
        dropped = dropped or not _is_blank(cell, names)
    if not dropped and not any(names & _bound(cell) for cell in put_in):
        return None
    return Plan(
        cells=sorted([*given, *put_in, *kept], key=lambda cell: cell.index),
        keep=_as_the_last_leaves_them(task, names, kept, place),
        has_solutions=bool(put_in),
        watched=task.ban.conversions,
    )


def _reach(task: Task, cells: Sequence[RunCell]) -> tuple[list[ast.stmt], frozenset[str]]:
    """The statements that an exercise depends on, and all names that it uses."""
    try:
        found = reachable(task.defines, [c.source for c in cells], order_of(task, cells))
    except RecursionError:
        return [], frozenset(task.defines)
    return found.statements, frozenset(found.names)


def _bound(cell: RunCell) -> frozenset[str]:
    return frozenset[str]().union(*(statement.binds for statement in statements(cell.source)))


def _built_on(
    task: Task, submission: Submission, given: Iterable[RunCell], solutions: Mapping[str, str]
) -> Iterator[RunCell]:
    """The parts of other solutions that this exercise's solution builds on, each in its place."""
    solved = list(_solution_cells(submission, solutions))
    reached, _ = _reach(task, sorted([*given, *solved], key=lambda cell: cell.index))
    for cell in solved:
        if cell.task != task.id and (source := _part_of(cell, reached)):
            yield RunCell(index=cell.index, source=source, kind="given", task=cell.task)


def _solution_cells(submission: Submission, solutions: Mapping[str, str]) -> Iterator[RunCell]:
    """The reference solutions of all exercises, each at its exercise's place in the notebook."""
    for index, cell in enumerate(submission.notebook["cells"]):
        grade_id = marks_of(cell).get("grade_id", "")
        task = task_of(grade_id)
        if task in solutions and task != grade_id:
            yield RunCell(index=index, source=solutions[task], kind="solution", task=task)


def _lends(cell: RunCell, names: Collection[str], elsewhere: Collection[str]) -> bool:
    """Whether an added cell binds one of `names`; repeating an existing import doesn't count."""
    return any(
        statement.binds.intersection(
            elsewhere if isinstance(statement.node, (ast.Import, ast.ImportFrom)) else names
        )
        for statement in statements(cell.source)
    )


def _part_of(
    cell: RunCell, reached: Collection[ast.stmt], binding: Collection[str] | None = None
) -> str:
    """The source of a cell's statements that were reached, and that bind one of `binding`."""
    needed = {id(node) for node in reached}
    nodes = [
        statement.node
        for statement in statements(cell.source)
        if id(statement.node) in needed
        and (binding is None or statement.binds.intersection(binding))
    ]
    try:
        return "\n".join(map(ast.unparse, nodes))
    except RecursionError:
        return ""


def _is_blank(cell: RunCell, names: Collection[str]) -> bool:
    """Whether a cell has only stubs, and imports and constants that bind none of `names`."""
    if cell.is_untouched:
        return True
    if any(line.lstrip().startswith(("%", "!")) for line in cell.source.splitlines()):
        return False
    return all(
        is_stub(statement.node)
        or (_only_binds(statement.node) and statement.binds.isdisjoint(names))
        for statement in statements(cell.source)
    )


def _only_binds(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        plain = all(isinstance(target, ast.Name) for target in targets)
        return plain and isinstance(node.value, (ast.Constant, type(None)))
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _as_the_last_leaves_them(
    task: Task, names: Collection[str], kept: Iterable[RunCell], place: int
) -> Keep:
    """Keep each name as the student's last cell that binds it leaves it."""
    last = dict.fromkeys(names, place)
    for cell in sorted(kept, key=lambda cell: cell.index):
        last |= dict.fromkeys(_bound(cell).intersection(names), cell.index)
    keep: dict[int, dict[str, list[str]]] = defaultdict(dict)
    for name, index in sorted(last.items()):
        keep[index].setdefault(task.id, []).append(name)
    return keep
