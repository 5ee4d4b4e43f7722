"""Packs answers into as few notebooks as possible, so that none sees another's names."""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from autograder.model.task import Lab
from autograder.trials.entry import Entry

__all__ = ["bound_names", "helps_others", "pack", "together"]


@dataclass(frozen=True)
class _Names:
    """The top-level names of a cell's code."""

    #: What each name that it binds is bound to.
    bound: Mapping[str, str]
    #: The other names that it reads.
    read: frozenset[str]


def pack(entries: Iterable[Entry], given: Sequence[str] = ()) -> list[list[Entry]]:
    """Distribute the entries over notebooks by first fit, each task at most once in a notebook.

    `given` are the sources of the lab's own cells, whose names every answer may read. Right and
    wrong answers are kept apart, because a wrong one may end the process that they share.
    """
    packs: list[list[Entry]] = []
    for entry in entries:
        for others in packs:
            if others[0].kind == entry.kind and together([*others, entry], given):
                others.append(entry)
                break
        else:
            packs.append([entry])
    return packs


def bound_names(source: str) -> frozenset[str]:
    """Return the names that a cell's code binds at its top level."""
    return frozenset(_names(source).bound)


def helps_others(lab: Lab, entry: Entry) -> bool:
    """Tell whether an answer defines a name that another of the lab's exercises asks for."""
    others = {name for task in lab.tasks if task.id != entry.task for name in task.defines}
    return bool(bound_names(entry.source) & others)


def together(entries: Sequence[Entry], given: Sequence[str] = ()) -> bool:
    """Tell whether the last entry may share a notebook with all those before it."""
    *others, last = entries
    everybodys = {name: what for cell in given for name, what in _names(cell).bound.items()}
    mine = _names(last.source)
    return all(
        other.task != last.task and _apart(_names(other.source), mine, everybodys)
        for other in others
    )


def _apart(one: _Names, other: _Names, everybodys: Mapping[str, str]) -> bool:
    if any(other.bound.get(name, what) != what for name, what in one.bound.items()):
        return False
    return not any(
        everybodys.get(name) != writer.bound[name]
        for reader, writer in ((one, other), (other, one))
        for name in reader.read & writer.bound.keys()
    )


@lru_cache(maxsize=4096)
def _names(source: str) -> _Names:
    try:
        with warnings.catch_warnings(action="ignore"):
            statements = ast.parse(source).body
            table = symtable.symtable(source, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return _Names({}, frozenset())  # it won't run
    bound: dict[str, str] = {}
    for statement in statements:
        for name, what in _bindings(statement):
            bound[name] = bound.get(name, "") + what
    return _Names(bound, frozenset(_globals(table)) - bound.keys())


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Each name that a top-level statement binds, with a text that is equal for equal bindings."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            top = alias.name.partition(".")[0]
            yield alias.asname or top, f"module {alias.name if alias.asname else top}"
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name, f"{statement.module}.{alias.name}"
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name, ast.dump(statement)
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                yield node.id, ast.dump(statement)


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """The names that code reads from its notebook, also inside functions."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _globals(child)
