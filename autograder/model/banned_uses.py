"""Finds banned uses in the syntax tree of a solution.

The check reads source text and runs nothing. It follows a task's solution into its helpers, with
each name as it stood at the task's cell. So a banned call is found in any cell, and a cell of
another exercise that may use the name is left alone. The check isn't a lock: it misses names built
at run time. Ambiguous code passes, because accusing an honest solution is worse.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from autograder.model.allowed import BUILTINS, ENTRIES, REFLECTION, refused_part
from autograder.model.definitions import DEFINITIONS, Reached, reachable, statements
from autograder.model.expressions import (
    called_name,
    dotted_name,
    last_name,
    text_arguments,
    texts_of,
    texts_of_variables,
    words_of,
)
from autograder.model.module_names import (
    Aliases,
    add_assigned,
    add_everything,
    add_imports,
    binds_a_root,
    bound_name,
    imported_on_the_way,
    used_of_modules,
)
from autograder.model.state import order_of
from autograder.model.submission import RunCell
from autograder.model.task import Task

__all__ = ["Use", "banned_uses"]


@dataclass(frozen=True)
class Use:
    """A banned name that a solution uses."""

    #: The name.
    name: str
    #: Whether the exercise's own ban forbids it; otherwise no exercise allows it.
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
_LOOP_CALLS = frozenset(
    {"vectorize", "apply_along_axis", "frompyfunc", "fromiter", "map", "starmap"}
)
# Calls that query a type and convert nothing.
_QUESTIONS = frozenset({"isinstance", "issubdtype", "issubclass", "finfo"})


def banned_uses(task: Task, cells: Sequence[RunCell], allows: Iterable[str] = ()) -> list[Use]:
    r"""Return the banned names that a task's solution uses, its helpers included.

    `cells` are a notebook's, and `allows` extends the list of names that every solution may use. A
    cell that doesn't parse is skipped, since it defines nothing.
    """
    own = [cell for cell in cells if cell.kind in ("own", "solution")]
    given = _given_names(cell.source for cell in cells if cell.kind not in ("own", "solution"))
    reached = reachable(task.defines, [c.source for c in own], order_of(task, own), given)
    reader = _Reader(task, reached, given, allows)
    found: dict[Use, None] = {}
    for statement in reached.statements:
        for use in reader.uses(statement):
            found.setdefault(use)
    for name in sorted(reached.unbound - set(given)):
        if f"builtins.{name}" in task.ban.modules:
            found.setdefault(Use(name, by_task=True))
        elif name in BUILTINS:
            found.setdefault(Use(name, by_task=False))
    return list(found)


def _given_names(sources: Iterable[str]) -> Aliases:
    """The names that the lab's own cells bind, each with its imports."""
    names: Aliases = {}
    for source in sources:
        for statement in statements(source):
            names |= {name: names.get(name, set()) for name in statement.binds}
            add_imports(names, ast.walk(statement.node))
    return names


class _Reader:
    """Reads the statements that make up a task's solution."""

    def __init__(self, task: Task, reached: Reached, given: Aliases, allows: Iterable[str]) -> None:
        self._ban, self._defines, self._names = task.ban, task.defines, reached.names
        self._entries = {**ENTRIES, **dict.fromkeys([*allows, *task.ban.allows], True)}
        self._aliases = {name: given.get(name, set()) for name in reached.unbound}
        self._texts = texts_of_variables(reached.statements) if task.ban.called else {}
        for statement in reached.statements:
            add_imports(self._aliases, ast.walk(statement))
            add_everything(self._aliases, ast.walk(statement), task.ban.modules)
        for statement in reached.statements:
            add_assigned(self._aliases, ast.walk(statement))

    def uses(self, statement: ast.stmt) -> Iterator[Use]:
        nodes = list(ast.walk(statement))
        harmless = _harmless(statement, nodes, self._names)
        parameters = _parameters(nodes) if _name_of(statement) in self._defines else set()
        counted = [node for node in nodes if node not in harmless]
        for node in counted:
            yield from (Use(name, by_task=True) for name in self._of_task(node, parameters))
            if isinstance(node, (ast.Attribute, ast.Constant)):
                words = [word for word in words_of(node) if word in REFLECTION]
                yield from (Use(word, by_task=False) for word in words)
        for name in imported_on_the_way(statement, counted):
            yield from self._of_module(name, on_the_way=True)
        for name, on_the_way in used_of_modules(counted, self._aliases):
            yield from self._of_module(name, on_the_way=on_the_way)

    def _of_module(self, name: str, *, on_the_way: bool = False) -> Iterator[Use]:
        if on_the_way and _is_partly_allowed(name, self._entries):
            return
        if part := refused_part(name, self._entries, self._ban.modules):
            yield Use(part, by_task=part in self._ban.modules)

    def _of_task(self, node: ast.AST, parameters: set[str]) -> Iterator[str]:
        ban = self._ban
        yield from (name for name in words_of(node) if name in ban.names)
        dotted = dotted_name(node)
        yield from (m for m in ban.modules if "." in m and dotted == m)
        if ban.loops:
            yield from (name for name in words_of(node) if name in _LOOP_CALLS)
            if isinstance(node, _LOOPS):
                yield "a Python loop"
        given = self._codes(node) if ban.called else ()
        yield from (repr(text) for text in given if re.fullmatch(ban.arguments, text))
        if isinstance(node, ast.Attribute) and node.attr in ban.methods:
            of = (
                called_name(node.value)
                if isinstance(node.value, ast.Call)
                else dotted_name(node.value)
            )
            if of in parameters or of.rpartition(".")[2] in {"float", "float64", "abs"}:
                yield f"{of}.{node.attr}"

    def _codes(self, node: ast.AST) -> Iterator[str]:
        """The texts that a node gives to functions of the ban whose texts are checked."""
        called = self._ban.called
        if isinstance(node, ast.Assign):  # `x.dtype = "f"`
            if any(isinstance(t, ast.Attribute) and t.attr in called for t in node.targets):
                yield from texts_of(node.value, self._texts)
        elif isinstance(node, ast.Call):
            # `partial(struct.unpack, "f")` hands the function on, along with its text.
            handed_on = [a for a in node.args if isinstance(a, ast.Attribute)]
            names = {last_name(one) for one in (node.func, *handed_on)}
            for one in (node.func, *node.args):
                whole = self._aliases.get(last_name(one), ()) if isinstance(one, ast.Name) else ()
                names |= {name.rpartition(".")[2] for name in whole}
            if names & called:
                yield from text_arguments(node, self._texts)
            else:
                given = [keyword.value for keyword in node.keywords if keyword.arg in called]
                yield from (text for value in given for text in texts_of(value, self._texts))


def _is_partly_allowed(name: str, entries: dict[str, bool]) -> bool:
    """Whether some names in the module are allowed, so that importing it alone is no use."""
    return name not in entries and any(
        allowed and entry.startswith(f"{name}.") for entry, allowed in entries.items()
    )


def _harmless(statement: ast.stmt, nodes: Sequence[ast.AST], names: set[str]) -> set[ast.AST]:
    """The nodes of a statement that mention a name without using it.

    They are annotations, docstrings, type queries, and imports of names that the solution never
    uses.
    """
    roots: list[ast.AST | None] = []
    casting = _casting(nodes)
    typed = {id(n.value) for n in nodes if isinstance(n, ast.Attribute) and n.attr == "dtype"}
    for node in nodes:
        if isinstance(node, ast.arg):
            roots.append(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            roots.append(node.returns)
        elif isinstance(node, ast.AnnAssign):
            roots.append(node.annotation)
        elif isinstance(node, ast.Compare):
            # `x.dtype == np.float32` only compares; `np.float32(x) == y` casts, so calls count.
            roots += [side for side in (node.left, *node.comparators) if side not in casting]
        elif isinstance(node, ast.Call) and called_name(node) in _QUESTIONS:
            if id(node) in typed:  # `np.finfo(np.float32).dtype` is the type again
                continue
            roots += [argument for argument in node.args[-1:] if argument not in casting]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            roots.append(node.value)
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        # `import torch.utils.checkpoint` binds `torch`, and each use of that is checked itself.
        roots += [a for a in statement.names if bound_name(a) not in names or binds_a_root(a)]
    return _with_all_below(root for root in roots if root is not None)


def _with_all_below(roots: Iterable[ast.AST]) -> set[ast.AST]:
    """All nodes of these trees, which may overlap."""
    found: set[ast.AST] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += ast.iter_child_nodes(node)
    return found


def _casting(nodes: Sequence[ast.AST]) -> set[ast.AST]:
    """The nodes that convert a value, themselves or below; `nodes` has parents before children."""
    found: set[ast.AST] = set()
    for node in reversed(nodes):
        if (isinstance(node, ast.Call) and called_name(node) != "dtype") or any(
            child in found for child in ast.iter_child_nodes(node)
        ):
            found.add(node)
    return found


def _name_of(statement: ast.stmt) -> str:
    return statement.name if isinstance(statement, DEFINITIONS) else ""


def _parameters(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.arg for node in nodes if isinstance(node, ast.arg)}
