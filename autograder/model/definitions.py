"""Finds the statements of a notebook that make up a function, helpers included.

It reads source text and runs nothing.

Long because one search needs everything that a statement binds, changes and calls.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from autograder.model.allowed import REFLECTION
from autograder.model.cell_source import Part, parsed
from autograder.model.module_names import bound_name

__all__ = [
    "DEFINITIONS",
    "Reached",
    "Statement",
    "changing_unseen",
    "clear_cache",
    "nodes_of",
    "reachable",
    "redefined",
    "statements",
]

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

# Honest notebooks take a few hundred steps. If all names led to each other, it would never end.
_MAX_STEPS = 50_000

# Names whose use may bind any other name without the source showing it.
_BINDS_UNSEEN = frozenset({"exec", "eval", "get_ipython", "globals", "locals", "vars"})
_BINDS_UNSEEN |= {"__builtin__", "__builtins__", "__import__", "exit", "quit"}
# Attributes that lead to a namespace, in which any name may be set.
_TO_NAMES = REFLECTION | {"__dict__"}
# Modules that lead to IPython's shell or to namespaces.
_UNSEEN_MODULES = frozenset({"IPython", "__main__", "builtins", "importlib", "runpy"})


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell."""

    #: Its syntax tree.
    node: ast.stmt
    #: The names that it sets.
    binds: frozenset[str]
    #: The names in `binds` that it is sure to set if it runs without an error.
    rebinds: frozenset[str]
    #: The names of objects whose attributes or items it sets.
    changes: frozenset[str]
    #: The names of objects whose methods it calls, as in `tools.append(x)`, or passes to setattr.
    calls: frozenset[str]
    #: The top-level names that it uses, without parameters and local variables.
    takes: frozenset[str]
    #: The names in `takes` that it uses when it runs.
    now: frozenset[str]
    #: The names in `takes` that are used when a function it defines is called; may overlap `now`.
    later: frozenset[str]

    @cached_property
    def binds_unseen(self) -> bool:
        """Whether it may bind names that don't appear in its source."""
        if isinstance(self.node, ast.ImportFrom) and self.node.names[0].name == "*":
            return True
        return self.runs_unseen

    @cached_property
    def runs_unseen(self) -> bool:
        """Whether it may bind names unseen by running code, unlike `from ... import *`."""
        nodes = nodes_of(self.node)
        return (
            not self.takes.isdisjoint(_BINDS_UNSEEN)
            or any(isinstance(node, ast.Attribute) and node.attr in _TO_NAMES for node in nodes)
            or any(map(_leads_to_names, nodes))
        )

    @cached_property
    def sets(self) -> set[str]:
        """The names of objects that it passes to `setattr`."""
        return _given_to_setattr(nodes_of(self.node))

    @cached_property
    def text(self) -> str:
        """The statement as `ast.unparse` writes it; cached, because names are often redefined."""
        try:
            return ast.unparse(self.node)
        except RecursionError:
            return ""


@dataclass(frozen=True)
class Reached:
    """The statements and names that a set of names depends on."""

    #: Top-level statements, in the notebook's order.
    statements: list[ast.stmt]
    #: All names that those statements depend on, including the requested names.
    names: set[str]
    #: The names that no statement is sure to bind before their use, such as Python's own.
    unbound: set[str]


def reachable(
    names: Iterable[str],
    cells: Sequence[str],
    order: Sequence[int] | None = None,
    known: Collection[str] = (),
    failed: Collection[int] = (),
) -> Reached:
    """Return the statements that `names` depend on, directly and through others.

    `cells` are sources in the order in which they run; a cell that doesn't parse defines nothing.
    `order` lists the cells' indices in the order in which they are searched for a name, and the
    first cell that binds it wins; by default the last cell comes first. `known` are names that
    exist without these cells. `failed` are the indices of cells that ended in an error, so that
    names they bind may still have earlier values.

    A function looks up its names when it is called, in that order. A top-level statement looks up
    its names when it runs, so the last binding before it counts; the same holds for the names of a
    function that it may call. A statement that only changes a name, or binds it conditionally,
    counts together with the binding before it. A name that nothing seems to bind may come from any
    statement that binds unseen.

    Raises RecursionError if the names lead to each other in too many ways to follow.
    """
    search = _Search(cells, range(len(cells))[::-1] if order is None else order, known, failed)
    waiting: list[tuple[str, _Place | None]] = [(name, None) for name in names]
    seen = set(waiting)
    unbound: set[str] = set()
    while waiting:
        name, before = waiting.pop()
        places = search.binders(name, before)
        if not places and before is None and name not in known and not hasattr(builtins, name):
            places = search.binding_unseen()
        if not search.surely_bind(places, name):
            unbound.add(name)
        for place in places:
            more = set(search.follow(place, before)) - seen
            seen |= more
            waiting += more
    return Reached(search.reached(), {name for name, _ in seen}, unbound)


_Place = tuple[int, int]  # index of a cell, and of a statement in it


class _Search:
    """Cells' statements by the names that they bind, and the statements reached so far."""

    def __init__(
        self,
        cells: Sequence[str],
        order: Sequence[int],
        known: Collection[str],
        failed: Collection[int],
    ) -> None:
        self._order = order
        self._failed = failed
        self._cells = [statements(cell) for cell in cells]
        self._binders: dict[str, dict[int, list[int]]] = {}
        imported = _imported(statement for lines in self._cells for statement in lines)
        imported |= set(known)
        for cell, lines in enumerate(self._cells):
            for line, statement in enumerate(lines):
                # A call of `torch.manual_seed` doesn't change `torch`.
                for name in statement.binds | statement.changes | (statement.calls - imported):
                    self._binders.setdefault(name, {}).setdefault(cell, []).append(line)
        self._unseen = [
            [line for line, statement in enumerate(lines) if statement.binds_unseen]
            for lines in self._cells
        ]
        self._reached: set[_Place] = set()
        self._steps = 0

    def surely_bind(self, places: Iterable[_Place], name: str) -> bool:
        """Whether a statement at one of these places is sure to bind the name, and none deletes it.

        If none is, the name may still be Python's own.
        """
        found = [*places]
        freed = any(_deletes(self._at(place).node, name) for place in found)
        return not freed and any(self._rebinds(place, name) for place in found)

    def _rebinds(self, place: _Place, name: str) -> bool:
        return name in self._at(place).rebinds and place[0] not in self._failed

    def reached(self) -> list[ast.stmt]:
        return [self._at(place).node for place in sorted(self._reached)]

    def binders(self, name: str, before: _Place | None) -> list[_Place]:
        """The statements that a name's value may come from, before a place or at the end."""
        found: list[_Place] = []
        by_cell = self._binders.get(name, {})
        cells = self._order if before is None else sorted(by_cell, reverse=True)
        for cell in cells:
            for line in reversed(by_cell.get(cell, ())):
                self._count(1)
                if before is not None and (cell, line) >= before:
                    continue
                found.append((cell, line))
                if self._rebinds((cell, line), name):
                    return [*found, *self._rebinding_unseen((cell, line), before)]
        return found

    def _rebinding_unseen(self, place: _Place, before: _Place | None) -> Iterator[_Place]:
        """The statements below `place` in its cell that may rebind its name unseen."""
        cell, first = place
        for line in self._unseen[cell]:
            if first < line and (before is None or (cell, line) < before):
                yield cell, line

    def binding_unseen(self) -> list[_Place]:
        return [(cell, line) for cell, lines in enumerate(self._unseen) for line in lines]

    def follow(self, place: _Place, before: _Place | None) -> Iterator[tuple[str, _Place | None]]:
        """The names that the statement at `place` uses, each with the place before which it does.

        `before` is the place where the statement's result is used.
        """
        statement = self._at(place)
        self._reached.add(place)
        self._count(len(statement.takes))
        yield from ((name, place) for name in statement.now)
        for name in statement.later:
            yield name, None
            if before is not None:
                yield name, before

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MAX_STEPS:
            raise RecursionError("this notebook's names refer to each other in too many ways")

    def _at(self, place: _Place) -> Statement:
        return self._cells[place[0]][place[1]]


def _leads_to_names(node: ast.AST) -> bool:
    """Tell whether a node imports a module that leads to namespaces; IPython.display doesn't."""
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        modules = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return False
    return any(
        module.partition(".")[0] in _UNSEEN_MODULES
        and not f"{module}.".startswith("IPython.display.")
        for module in modules
    )


def changing_unseen(cells: Iterable[str], modules: Collection[str]) -> list[Statement]:
    """Return statements that may change any solution, even if none of its names leads there.

    They bind names that their source doesn't show, or set attributes of modules. `modules` are
    names that have already been imported.
    """
    every = [statement for cell in cells for statement in statements(cell)]
    imported = _imported(every) | set(modules)
    return [
        statement
        for statement in every
        if statement.runs_unseen
        or not imported.isdisjoint(statement.changes)
        or not imported.isdisjoint(statement.sets)
    ]


def _imported(every: Iterable[Statement]) -> set[str]:
    """The names that imports bind at the top level."""
    imports = (ast.Import, ast.ImportFrom)
    return {name for one in every if isinstance(one.node, imports) for name in one.binds}


def redefined(cells: Iterable[str]) -> list[str]:
    """Return the functions and classes that a later cell binds to something else, sorted.

    Code that called the first definition gets the last one once all cells have run.
    """
    before: dict[str, Statement] = {}
    found: set[str] = set()
    for cell in cells:
        here: dict[str, Statement] = {}
        for statement in statements(cell):
            for name in statement.binds - found:
                if name in before and before[name].text != statement.text:
                    found.add(name)
                if isinstance(statement.node, DEFINITIONS):
                    here[name] = statement
        before |= here
    return sorted(found)


def clear_cache() -> None:
    """Free the memory of parsed cells; a hostile one may take hundreds of MiB."""
    statements.cache_clear()
    nodes_of.cache_clear()


@lru_cache(maxsize=4096)  # every task reads the same statements
def nodes_of(statement: ast.stmt) -> tuple[ast.AST, ...]:
    """Return a statement's nodes, in the order of `ast.walk`."""
    return tuple(ast.walk(statement))


@lru_cache(maxsize=1024)  # every task reads the same cells
def statements(cell: str) -> list[Statement]:
    """Return the statements at the top level of a cell; empty if it doesn't parse."""
    return [_statement(part) for part in parsed(cell)]


def _statement(part: Part) -> Statement:
    node, source, by_magic = part
    rebinds = frozenset[str]() if by_magic else frozenset(_rebound(node))
    try:
        top = symtable.symtable(source, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        every = frozenset(named | {n.name for n in ast.walk(node) if isinstance(n, DEFINITIONS)})
        return Statement(
            node,
            binds=every | rebinds,
            rebinds=rebinds,
            changes=every,
            calls=every,
            takes=every,
            now=every,
            later=every,
        )
    binds = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    now = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    later: set[str] = set()
    tables = [(table, False) for table in top.get_children()]
    while tables:
        table, in_function = tables.pop()
        in_function = in_function or _runs_when_called(table)
        tables += [(inner, in_function) for inner in table.get_children()]
        outer = [s for s in table.get_symbols() if s.is_global()]
        binds |= {s.get_name() for s in outer if s.is_declared_global() and s.is_assigned()}
        (later if in_function else now).update(s.get_name() for s in outer if s.is_referenced())
    now -= _of_its_loop(node)
    takes = frozenset(now | later)
    targets = (ast.Attribute, ast.Subscript)
    changes = {
        _root(n) for n in nodes_of(node) if isinstance(n, targets) and isinstance(n.ctx, ast.Store)
    }
    methods = {
        _root(n.func)
        for n in _run_now(node)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    }
    return Statement(
        node,
        binds=frozenset(binds),
        rebinds=rebinds & binds,
        changes=frozenset(changes & takes),
        calls=frozenset((methods | _given_to_setattr(_run_now(node))) & now),
        takes=takes,
        now=frozenset(now),
        later=frozenset(later),
    )


def _rebound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement is sure to set, unlike those in a branch or of `global`."""
    if isinstance(node, DEFINITIONS):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (bound_name(alias) for alias in node.names)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        targets: list[ast.expr] = []
        targets += node.targets if isinstance(node, ast.Assign) else [node.target]
        while targets:
            target = targets.pop()
            if isinstance(target, ast.Name):
                yield target.id
            elif isinstance(target, (ast.Tuple, ast.List)):
                targets += target.elts
            elif isinstance(target, ast.Starred):
                targets.append(target.value)


def _of_its_loop(statement: ast.stmt) -> set[str]:
    """The names that a loop binds, if they are read only in its body, where they are bound."""
    if not isinstance(statement, ast.For):
        return set()
    bound = {node.id for node in ast.walk(statement.target) if isinstance(node, ast.Name)}
    outside = [n for part in (statement.iter, *statement.orelse) for n in ast.walk(part)]
    read = {node.id for node in outside if isinstance(node, ast.Name)}
    return {name for name in bound - read if not _deletes(statement, name)}


def _deletes(statement: ast.stmt, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del)
        for node in nodes_of(statement)
    )


def _given_to_setattr(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        _root(n.args[0])
        for n in nodes
        if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "setattr" and n.args
    }


def _run_now(node: ast.stmt) -> Iterator[ast.AST]:
    """The nodes that run with the statement, without the bodies of functions."""
    waiting: list[ast.AST] = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += [one.args, *one.decorator_list]
        elif isinstance(one, ast.Lambda):
            waiting.append(one.args)
        else:
            waiting += ast.iter_child_nodes(one)


def _runs_when_called(table: symtable.SymbolTable) -> bool:
    """Whether the table is a function's rather than a comprehension's, which runs at once."""
    return table.get_type() == "function" and table.get_name() not in _COMPREHENSIONS


_COMPREHENSIONS = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr"})


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
