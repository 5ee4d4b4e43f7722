"""Finds the cell of a notebook after which an exercise is judged.

Several exercises share one notebook, and so one namespace. An exercise is judged on the names as
they were at its own cell, so a later cell of another exercise can't replace them. This module reads
source text and runs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from autograder.model.definitions import DEFINITIONS, statements
from autograder.model.submission import RunCell

if TYPE_CHECKING:
    from autograder.model.task import Task

__all__ = [
    "is_own",
    "is_stub",
    "is_written",
    "later_cells",
    "order_of",
    "raises_not_implemented",
    "state_of",
]


def state_of(task: Task, cells: Sequence[RunCell]) -> int:
    """Return the index of the cell after which `task` is judged; -1 if there are no cells.

    This is the last of the exercise's own and added cells that sets or changes a name that the
    exercise defines. A cell that only imports such a name, perhaps to compare an answer with a
    library's function, counts only if no other of these cells sets it. If none of them does, it is
    the last of all other cells that do. If no cell does, it is the last cell of all, because names
    bound in a way that the source doesn't show (as by `exec`) exist at the end.
    """
    binding = [cell for cell in cells if _sets(task, cell)]
    written = [cell for cell in binding if not _is_stub(task, cell)]
    own = [cell for cell in written if is_own(task, cell)]
    answers = [cell for cell in own if not _only_imports(task, cell)]
    others = [cell for cell in written if cell.kind == "solution"]
    candidates = answers or own or others or binding or list(cells)
    return max((cell.index for cell in candidates), default=-1)


def later_cells(task: Task, cells: Sequence[RunCell]) -> list[RunCell]:
    """Return the cells below the exercise, in the order in which they are searched for names.

    A name not bound at the exercise comes from the first of these cells that binds it: added cells
    come before given ones, those before other exercises' cells, and near cells before far ones.
    """
    state = state_of(task, cells)
    below = [cell for cell in cells if cell.index > state]
    return sorted(below, key=lambda cell: (_rank(task, cell), cell.index))


def order_of(task: Task, cells: Sequence[RunCell]) -> list[int]:
    """Return the indices of `cells` in the order in which the exercise searches them for a name."""
    state = state_of(task, cells)
    places = {id(cell): place for place, cell in enumerate(cells)}
    above = [cell for cell in reversed(cells) if cell.index <= state]
    return [places[id(cell)] for cell in (*above, *later_cells(task, cells))]


def is_written(task: Task, cells: Sequence[RunCell]) -> bool:
    """Tell whether any cell defines the exercise's names as more than stubs."""
    return any(_sets(task, cell) and not _is_stub(task, cell) for cell in cells)


def _rank(task: Task, cell: RunCell) -> int:
    if is_own(task, cell):
        return 0
    return 2 if cell.kind == "solution" else 1


def is_own(task: Task, cell: RunCell) -> bool:
    """Tell whether a cell is the exercise's own or an added one, rather than another exercise's."""
    return cell.kind == "own" or (cell.kind == "solution" and cell.task == task.id)


def _sets(task: Task, cell: RunCell) -> bool:
    return any(True for _ in _setting(task, cell))


def _setting(task: Task, cell: RunCell) -> Iterator[ast.stmt]:
    for statement in statements(cell.source):
        if not statement.binds.union(statement.changes).isdisjoint(task.defines):
            yield statement.node


def _only_imports(task: Task, cell: RunCell) -> bool:
    """Whether only imports set the exercise's names in the cell."""
    return all(isinstance(node, ast.Import | ast.ImportFrom) for node in _setting(task, cell))


def _is_stub(task: Task, cell: RunCell) -> bool:
    """Whether the cell leaves all of the exercise's names that it sets as stubs."""
    return cell.is_untouched or all(is_stub(node) for node in _setting(task, cell))


def is_stub(node: ast.stmt) -> bool:
    """Tell whether this defines a function or a class that just raises NotImplementedError.

    A function may do given work first, as long as it can't return before it raises.
    """
    if not isinstance(node, DEFINITIONS):
        return False
    body = [part for part in node.body if not _is_text(part)]
    if isinstance(node, ast.ClassDef):
        return bool(body) and all(is_stub(part) for part in body)
    raising = next((i for i, part in enumerate(body) if raises_not_implemented(part)), None)
    return raising is not None and not any(map(_may_return, body[:raising]))


def _may_return(node: ast.stmt) -> bool:
    return any(isinstance(part, (ast.Return, ast.Yield, ast.YieldFrom)) for part in ast.walk(node))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def raises_not_implemented(node: ast.AST) -> bool:
    """Tell whether a statement raises NotImplementedError."""
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == NotImplementedError.__name__
