"""Definitions: the statements of a notebook that a function is made of, helpers and all.

Source text is read and nothing runs.
"""

from __future__ import annotations

import ast
import math
import re
import symtable
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["DEFINITIONS", "forget", "reachable", "redefined"]

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_REBINDING = (*DEFINITIONS, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell.

    `binds` are the names that it sets, `changes` those that it sets an attribute or an item of,
    `takes` those that it finds at the top level; parameters and local variables are none of these.
    """

    node: ast.stmt
    binds: frozenset[str]
    changes: frozenset[str]
    takes: frozenset[str]


def reachable(names: Sequence[str], cells: Iterable[str]) -> tuple[list[ast.stmt], set[str]]:
    """Return the top-level statements that make up `names`, and every name that they go by.

    A function finds its names when it is called, so the last binding counts; a statement at the
    top finds them as it runs, so the last one before it does. What only changes a name, or binds
    it under a condition, counts along with what it was before. A cell that does not parse defines
    nothing.
    """
    binders: dict[str, list[tuple[int, Statement]]] = {}
    for place, statement in enumerate(s for cell in cells for s in statements(cell)):
        for name in statement.binds | statement.changes:
            binders.setdefault(name, []).append((place, statement))
    reached: dict[int, ast.stmt] = {}
    waiting = [(name, math.inf) for name in names]
    seen = set(waiting)
    while waiting:
        name, before = waiting.pop()
        for place, statement in reversed(binders.get(name, ())):
            if place >= before:
                continue
            reached[place] = statement.node
            limit = math.inf if isinstance(statement.node, DEFINITIONS) else place
            more = {(other, limit) for other in statement.takes} - seen
            seen |= more
            waiting += more
            if name in statement.binds and isinstance(statement.node, _REBINDING):
                break
    return [reached[place] for place in sorted(reached)], {name for name, _ in seen}


def redefined(cells: Iterable[str]) -> list[str]:
    """Return the functions and classes that a later cell binds to something else, by name.

    Code that called the first finds the last once all cells have run.
    """
    defined: dict[str, ast.stmt] = {}
    found: set[str] = set()
    for cell in cells:
        before = dict(defined)
        for statement in statements(cell):
            for name in statement.binds:
                if name in before and _text(before[name]) != _text(statement.node):
                    found.add(name)
                if isinstance(statement.node, DEFINITIONS):
                    defined[name] = statement.node
    return sorted(found)


def _text(node: ast.stmt) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return ""


def forget() -> None:
    """Give back what is kept of cells that were read; a hostile one may take hundreds of MiB."""
    statements.cache_clear()


@lru_cache(maxsize=1024)  # the same cells are asked about by every task
def statements(cell: str) -> list[Statement]:
    # Magics and shell escapes are no Python: those lines are blanked, the rest is still read.
    lines = ["" if re.match(r"\s*[%!?]", line) else line for line in cell.splitlines()]
    try:
        nodes = ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    encoded = [line.encode() for line in lines]
    return [_statement(node, _source(node, encoded)) for node in nodes]


def _source(node: ast.stmt, lines: Sequence[bytes]) -> str:
    """A statement as it was written, of a cell whose lines are UTF-8, in which columns count."""
    decorators = getattr(node, "decorator_list", ())
    first = min(part.lineno for part in (node, *decorators))
    last = node.end_lineno or first
    begin = node.col_offset if first == node.lineno else 0  # a decorator has a line of its own
    own = [*lines[first - 1 : last - 1], lines[last - 1][: node.end_col_offset]]
    own[0] = own[0][begin:]
    return b"\n".join(own).decode()


def _statement(node: ast.stmt, source: str) -> Statement:
    try:
        top = symtable.symtable(source, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError):
        every = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        return Statement(node, every, every, every)
    binds = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    takes = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        outer = [s for s in table.get_symbols() if s.is_global()]
        binds |= {s.get_name() for s in outer if s.is_declared_global() and s.is_assigned()}
        takes |= {s.get_name() for s in outer if s.is_referenced()}
    targets = (ast.Attribute, ast.Subscript)
    changes = {
        _root(n) for n in ast.walk(node) if isinstance(n, targets) and isinstance(n.ctx, ast.Store)
    }
    return Statement(node, frozenset(binds), frozenset(changes & takes), frozenset(takes))


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
