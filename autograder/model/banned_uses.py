"""Finds banned uses in the syntax tree of a solution.

The check reads source text and runs nothing. It follows a task's solution into its helpers, with
each name as it was at the task's cell. So it finds a banned call in any cell, but ignores cells of
other exercises that may use the name. The check isn't a security boundary: it misses names built at
run time. Ambiguous code passes, because accusing an honest solution is worse.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from autograder.model.allowed import ENTRIES, EVALUATE, REFLECTION, is_refused_name, refused_part
from autograder.model.constants import Constants, constants_of, texts_in, variables_of
from autograder.model.definitions import (
    DEFINITIONS,
    Reached,
    changing_unseen,
    nodes_of,
    reachable,
    statements,
)
from autograder.model.expressions import called_name, dotted_name, words_of, words_of_text
from autograder.model.harmless import given_away, harmless_nodes, plain_text
from autograder.model.module_names import (
    Aliases,
    add_assigned,
    add_everything,
    add_imports,
    imported_on_the_way,
    read_by_text,
    used_of_modules,
)
from autograder.model.restrictions import NOTHING_BANNED
from autograder.model.state import order_of
from autograder.model.submission import RunCell
from autograder.model.tampering import changed_parts
from autograder.model.task import Task

__all__ = ["Use", "banned_uses", "is_defined_unseen", "may_change_unseen", "uses_beside"]


@dataclass(frozen=True)
class Use:
    """A banned name that a solution uses."""

    #: The name.
    name: str
    #: True if the exercise's own ban forbids it; False if no exercise allows it.
    by_task: bool


_LOOPS = (
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
# Names that read annotations, which otherwise aren't uses, and the name that reads docstrings.
_READ_ANNOTATIONS = frozenset(
    {"__annotations__", "fields", "get_annotations", "get_type_hints", "signature"}
    | {"singledispatch"}
)
_READS_TEXT = "__doc__"
_LOOP_CALLS = frozenset(
    {"vectorize", "apply_along_axis", "frompyfunc", "fromiter", "map", "starmap"}
)


def banned_uses(
    task: Task,
    cells: Sequence[RunCell],
    allows: Iterable[str] = (),
    failed: Collection[int] = (),
) -> list[Use]:
    r"""Return the banned names that a task's solution uses, its helpers included.

    `cells` are a notebook's, and `allows` extends the list of names that every solution may use. A
    cell that doesn't parse is skipped, since it defines nothing. `failed` are the indices of cells
    that ended in an error: after one, a name may have the value that an earlier cell gave it.
    """
    own, given = _students(cells), _given(cells)
    stopped = [place for place, cell in enumerate(own) if cell.index in failed]
    reached = reachable(
        task.defines, [cell.source for cell in own], order_of(task, own), given, stopped
    )
    reader = _Reader(task, reached, given, allows)
    found: dict[Use, None] = {}
    for statement in reached.statements:
        for use in reader.uses(statement):
            found.setdefault(use)
    for name in sorted(reached.unbound - set(given)):
        if f"builtins.{name}" in task.ban.modules:
            found.setdefault(Use(name, by_task=True))
        elif is_refused_name(name):
            found.setdefault(Use(name, by_task=False))
    return list(found)


def uses_beside(task: Task, cells: Sequence[RunCell], allows: Iterable[str] = ()) -> list[Use]:
    """Return banned uses by other code that may change the solution without its source showing it.

    Such code sets attributes of modules, or binds names that its source doesn't show. It may be
    work on another exercise, so it counts only if it has to run for this one. Changes of the
    course's own modules, probes and meter among them, count for every task.
    """
    own, given = _students(cells), _given(cells)
    sources = [cell.source for cell in own]
    modules = [name for name, imports in given.items() if imports]
    entries = {**ENTRIES, **dict.fromkeys(allows, True)}
    library = [Use(part, by_task=False) for part in changed_parts(sources, given, entries)]
    changing = [] if task.ban == NOTHING_BANNED else changing_unseen(sources, modules)
    if not changing:
        return library
    used = {one.node: given_away(one.node) for one in changing}
    every = (node for nodes in used.values() for node in nodes)
    names = {node.id for node in every if isinstance(node, ast.Name)}
    beside = reachable(names, sources, order_of(task, own), given)
    reader = _Reader(task, beside, given, allows)
    found = dict.fromkeys(library)
    for statement, nodes in used.items():
        found |= dict.fromkeys(reader.uses_of_task(statement, nodes))
    for statement in beside.statements:
        found |= dict.fromkeys(use for use in reader.uses(statement) if use.by_task)
    return list(found)


def may_change_unseen(task: Task, cells: Sequence[RunCell]) -> bool:
    """Tell whether the student's code may rebind any name through text that can't be read.

    `exec` may run text from anywhere, and a magic may run a file. Such code may do the work of an
    exercise that bans something.
    """
    unseen = (
        statement.runs_unseen for cell in _students(cells) for statement in statements(cell.source)
    )
    return task.ban != NOTHING_BANNED and any(unseen)


def is_defined_unseen(task: Task, cells: Sequence[RunCell]) -> bool:
    """Tell whether no statement binds the exercise's names, so that no solution could be read."""
    bound = {name for cell in cells for line in statements(cell.source) for name in line.binds}
    return not bound.issuperset(task.defines)


def _students(cells: Sequence[RunCell]) -> list[RunCell]:
    return [cell for cell in cells if cell.kind in ("own", "solution")]


def _given(cells: Sequence[RunCell]) -> Aliases:
    return _given_names(
        tuple(cell.source for cell in cells if cell.kind not in ("own", "solution"))
    )


@lru_cache(maxsize=8)  # all tasks of all submissions share these
def _given_names(sources: tuple[str, ...]) -> Aliases:
    """The names that the lab's own cells bind, with the imports behind each."""
    names: Aliases = {}
    for source in sources:
        for statement in statements(source):
            names |= {name: names.get(name, set()) for name in statement.binds}
            add_imports(names, nodes_of(statement.node))
    return names


class _Reader:
    """Reads the statements that make up a task's solution."""

    def __init__(self, task: Task, reached: Reached, given: Aliases, allows: Iterable[str]) -> None:
        self._ban, self._defines, self._names = task.ban, task.defines, reached.names
        self._entries = {**ENTRIES, **dict.fromkeys([*allows, *task.ban.allows], True)}
        self._aliases = {name: {*given.get(name, ())} for name in reached.unbound}
        self._variables = variables_of(reached.statements)
        for statement in reached.statements:
            add_imports(self._aliases, nodes_of(statement))
            add_everything(self._aliases, nodes_of(statement), task.ban.modules)
        for statement in reached.statements:
            add_assigned(self._aliases, nodes_of(statement))
        every = [node for statement in reached.statements for node in nodes_of(statement)]
        words = {word for node in every for word in words_of(node)}
        methods = {node.name for node in every if isinstance(node, ast.FunctionDef)}
        self._reflection = REFLECTION | ({EVALUATE} - methods)
        self._reads_annotations = not words.isdisjoint(_READ_ANNOTATIONS)
        self._reads_docstrings = _READS_TEXT in words
        self._floats = {"float", "float64", "abs", "type", *_set_to_float(reached.statements)}
        modules = {whole for wholes in self._aliases.values() for whole in wholes}
        self._takes_codes = not self._ban.coded.isdisjoint(words | modules)

    def uses(self, statement: ast.stmt, among: Collection[ast.AST] | None = None) -> Iterator[Use]:
        """Yield the banned names used by a statement, or by the given nodes of it."""
        nodes = nodes_of(statement)
        constants = constants_of(nodes, self._variables)
        harmless = harmless_nodes(
            statement,
            nodes,
            self._names,
            annotations=not self._reads_annotations,
            docstrings=not self._reads_docstrings,
        )
        parameters = _parameters(nodes) if _name_of(statement) in self._defines else set()
        counted = [
            node for node in nodes if node not in harmless and (among is None or node in among)
        ]
        plain = plain_text(nodes) if self._takes_codes else set()
        for node in counted:
            texts = list(texts_in(constants.get(node, ())))
            words = [*words_of(node), *(word for text in texts for word in words_of_text(text))]
            yield from (Use(name, by_task=True) for name in self._of_task(node, words, parameters))
            if self._takes_codes and node not in plain:
                codes = [text for text in texts if re.fullmatch(self._ban.codes, text)]
                yield from (Use(repr(text), by_task=True) for text in codes)
            if texts or isinstance(node, (ast.Attribute, ast.MatchClass)):
                yield from (Use(word, by_task=False) for word in words if word in self._reflection)
        yield from self._of_modules(statement, counted, constants)

    def uses_of_task(self, statement: ast.stmt, nodes: Collection[ast.AST]) -> Iterator[Use]:
        """Yield the exercise's banned names among these nodes, and in texts that `exec` may run."""
        yield from (use for use in self.uses(statement, nodes) if use.by_task)
        values = constants_of(nodes_of(statement), self._variables).values()
        for text in texts_in(value for known in values for value in known):
            words = re.findall(r"\w+", text)
            yield from (Use(word, by_task=True) for word in words if word in self._ban.names)

    def _of_modules(
        self, statement: ast.stmt, counted: list[ast.AST], constants: Constants
    ) -> Iterator[Use]:
        for name in imported_on_the_way(statement, counted):
            yield from self._of_module(name, on_the_way=True)
        for name, on_the_way in used_of_modules(counted, self._aliases, constants):
            yield from self._of_module(name, on_the_way=on_the_way)
        for name in read_by_text(counted, self._aliases, constants):
            part = refused_part(name, self._entries, self._ban.modules)
            if part in self._ban.modules or self._entries.get(part) is False:
                yield from self._of_module(name)

    def _of_module(self, name: str, *, on_the_way: bool = False) -> Iterator[Use]:
        if on_the_way and _is_partly_allowed(name, self._entries):
            return
        if part := refused_part(name, self._entries, self._ban.modules):
            yield Use(part, by_task=part in self._ban.modules)

    def _of_task(self, node: ast.AST, words: list[str], parameters: set[str]) -> Iterator[str]:
        ban = self._ban
        yield from (name for name in words if name in ban.names)
        dotted = dotted_name(node)
        yield from (m for m in ban.modules if "." in m and dotted == m)
        if ban.loops:
            yield from (name for name in words if name in _LOOP_CALLS)
            if isinstance(node, _LOOPS):
                yield "a Python loop"
        if isinstance(node, ast.Attribute) and node.attr in ban.methods:
            of = (
                called_name(node.value)
                if isinstance(node.value, ast.Call)
                else dotted_name(node.value)
            )
            if of in parameters or of.rpartition(".")[2] in self._floats or _is_float(node.value):
                yield f"{of}.{node.attr}".lstrip(".")


def _set_to_float(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """The variables that are aliases of `float`."""
    for statement in statements:
        for node in nodes_of(statement):
            if isinstance(node, ast.Assign) and dotted_name(node.value) == "float":
                yield from filter(None, map(dotted_name, node.targets))


def _is_float(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is float


def _is_partly_allowed(name: str, entries: dict[str, bool]) -> bool:
    """Whether some names in the module are allowed, so that importing it isn't a banned use."""
    return name not in entries and any(
        allowed and entry.startswith(f"{name}.") for entry, allowed in entries.items()
    )


def _name_of(statement: ast.stmt) -> str:
    return statement.name if isinstance(statement, DEFINITIONS) else ""


def _parameters(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.arg for node in nodes if isinstance(node, ast.arg)}
