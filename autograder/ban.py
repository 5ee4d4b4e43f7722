"""Ban: what a solution may not use, and the reading of its syntax tree that tells.

The check reads source text and runs nothing. It follows a task's solution into the helpers it
names, so a banned call does not pass by standing in another cell, and a cell of another exercise
that may use the thing is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["NOTHING_BANNED", "Ban", "banned_uses"]


@dataclass(frozen=True)
class Ban:
    """What one task's solution may not use.

    `names` are identifiers, attributes and imported names (`float32`, `fromhex`); they count in
    strings too where the string is exactly that name (`"float32"`, as dtype strings and `getattr`
    take it). `modules` are imports, with all that is below them (`torch.optim`). `arguments` are
    patterns that no string argument of the functions in `called` may match in full, such as the
    format codes of `struct`. `loops` bans Python loops, comprehensions, `map` and np.vectorize.
    `reason` is the sentence a student reads.
    """

    names: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    arguments: str = ""
    loops: bool = False
    reason: str = ""


NOTHING_BANNED = Ban()

_LOOPS = (
    *(ast.For, ast.AsyncFor, ast.While),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_LOOP_CALLS = frozenset({"vectorize", "apply_along_axis", "frompyfunc", "map", "fromiter"})


def banned_uses(ban: Ban, defines: Sequence[str], cells: Iterable[str]) -> list[str]:
    r"""Return what `ban` forbids in the definitions of `defines` and all they lead to, by name.

    `cells` are the sources of the student's cells; one that does not parse is passed over, since
    it defines nothing.

    >>> banned_uses(Ban(names=frozenset({"float32"})), ["f"], ["def f(x): return g(x)",
    ...     "import numpy as np\ndef g(x): return np.float32(x)"])
    ['float32']
    """
    if ban == NOTHING_BANNED:
        return []
    found: dict[str, None] = {}
    for statement in _reachable(defines, cells):
        for use in _uses(ban, statement):
            found.setdefault(use)
    return list(found)


def _reachable(defines: Sequence[str], cells: Iterable[str]) -> list[ast.stmt]:
    """The top-level statements that bind `defines`, or a name that one of them mentions, and on."""
    binders: dict[str, list[ast.stmt]] = {}
    for cell in cells:
        for statement in _parse(cell):
            for name in _bound(statement):
                binders.setdefault(name, []).append(statement)
    reached: dict[int, ast.stmt] = {}
    waiting = list(defines)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for statement in binders.get(name, ()):
            reached[id(statement)] = statement
            waiting += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return list(reached.values())


def _parse(cell: str) -> list[ast.stmt]:
    # Magics and shell escapes are no Python: those lines are blanked, the rest is still read.
    lines = ["" if re.match(r"\s*[%!?]", line) else line for line in cell.splitlines()]
    try:
        return ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Every name that a top-level statement may bind, change or set an attribute of."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _uses(ban: Ban, statement: ast.stmt) -> Iterator[str]:
    harmless = _harmless(statement)
    pattern = re.compile(ban.arguments) if ban.arguments else None
    for node in ast.walk(statement):
        if node in harmless:
            continue
        for name in _mentions(node):
            if name in ban.names or (ban.loops and name in _LOOP_CALLS):
                yield name
        for module in _imports(node):
            yield from (m for m in ban.modules if module == m or module.startswith(m + "."))
        dotted = _dotted(node)
        yield from (m for m in ban.modules if "." in m and dotted == m)
        if ban.loops and isinstance(node, _LOOPS):
            yield "a Python loop"
        if pattern and isinstance(node, ast.Call) and _called(node) in ban.called:
            yield from (repr(text) for text in _strings(node) if pattern.fullmatch(text))


def _harmless(statement: ast.stmt) -> set[ast.AST]:
    """Nodes that mention a name without using it: annotations, comparisons of a dtype, docs."""
    nodes: set[ast.AST] = set()
    for node in ast.walk(statement):
        roots: list[ast.AST | None] = []
        if isinstance(node, ast.arg):
            roots = [node.annotation]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            roots = [node.returns]
        elif isinstance(node, ast.AnnAssign):
            roots = [node.annotation]
        elif isinstance(node, ast.Compare):
            # `x.dtype == np.float32` asks; `np.float32(x) == y` casts, so calls stay in.
            sides = [node.left, *node.comparators]
            roots = [s for s in sides if not any(isinstance(n, ast.Call) for n in ast.walk(s))]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            roots = [node.value]
        for root in roots:
            if root is not None:
                nodes.update(ast.walk(root))
    return nodes


def _mentions(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias):
        yield node.name.rpartition(".")[2]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.strip("<>=!|")


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and _called(node) in {"__import__", "import_module"}:
        yield from _strings(node)


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _strings(call: ast.Call) -> Iterator[str]:
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, (str, bytes)):
            value = argument.value
            yield value if isinstance(value, str) else value.decode("latin-1")
