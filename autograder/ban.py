"""Ban: what a solution may not use, and the reading of its syntax tree that tells.

The check reads source text and runs nothing. It follows a task's solution into the helpers it
names, so a banned call does not pass by standing in another cell, and a cell of another exercise
that may use the thing is left alone. It is no lock: who builds a banned name at run time is not
seen. An honest solution accused is the worse fault, so what could be either passes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from autograder.definitions import DEFINITIONS, reachable

__all__ = ["NOTHING_BANNED", "Ban", "banned_uses"]


@dataclass(frozen=True)
class Ban:
    """What one task's solution may not use.

    `names` are identifiers, attributes and imported names (`float32`); they count in strings too
    where the string is exactly that name (`"float32"`, as dtype strings and `getattr` take it). A
    name with a leading dot (`.half`) is never a variable of that name.
    `modules` are imports, with all that is below them (`torch.optim`). `arguments` is a pattern
    that no text given to the functions in `called` may match in full, such as the format codes of
    `struct`. `methods` are methods of float (`hex`); since bytes have some of the same names, they
    count where they are asked of `float`, `float(...)`, `abs(...)` or a parameter of the solution.
    `loops` bans Python loops, comprehensions, `map` and np.vectorize. `reason` is the sentence a
    student reads.
    """

    names: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    arguments: str = ""
    methods: frozenset[str] = frozenset()
    loops: bool = False
    reason: str = ""


NOTHING_BANNED = Ban()

Texts = dict[str, list[str]]  # of a variable: the texts that it is set to

_LOOPS = (
    *(ast.For, ast.AsyncFor, ast.While),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_LOOP_CALLS = frozenset({"vectorize", "apply_along_axis", "frompyfunc", "map", "fromiter"})

# Of the texts that an expression may stand for, so many are looked at, each of so many characters:
# format codes are short, and a pattern or a sum of texts could be made to take hours.
_MAX_TEXTS = 20
_MAX_TEXT = 200
# Of a dotted name; no module's has so many. Each attribute of a chain is the end of a name of its
# own, and all of them in full take time that grows with the square of the chain's length.
_MAX_PARTS = 20

# Calls that ask about a type and convert nothing.
_QUESTIONS = frozenset({"isinstance", "issubdtype", "issubclass", "finfo"})


def banned_uses(ban: Ban, defines: Sequence[str], cells: Iterable[str]) -> list[str]:
    r"""Return what `ban` forbids in the definitions of `defines` and all they lead to, by name.

    `cells` are the sources of the student's cells in the order they run; one that does not parse
    is passed over, since it defines nothing.

    >>> banned_uses(Ban(names=frozenset({"float32"})), ["f"], ["def f(x): return g(x)",
    ...     "import numpy as np\ndef g(x): return np.float32(x)"])
    ['float32']
    """
    if ban == NOTHING_BANNED:
        return []
    statements, names = reachable(defines, cells)
    texts = _texts(statements) if ban.called else {}
    found: dict[str, None] = {}
    for statement in statements:
        for use in _uses(ban, statement, defines, names, texts):
            found.setdefault(use)
    return list(found)


def _uses(
    ban: Ban, statement: ast.stmt, defines: Sequence[str], names: set[str], texts: Texts
) -> Iterator[str]:
    nodes = list(ast.walk(statement))
    harmless = _harmless(statement, nodes, names)
    parameters = _parameters(nodes) if _name_of(statement) in defines else set()
    for node in nodes:
        if node in harmless:
            continue
        yield from (name for name in _mentions(node) if name in ban.names)
        for module in _imports(node):
            yield from (m for m in ban.modules if module == m or module.startswith(m + "."))
        dotted = _dotted(node)
        yield from (m for m in ban.modules if "." in m and dotted == m)
        if ban.loops:
            yield from (name for name in _mentions(node) if name in _LOOP_CALLS)
            if isinstance(node, _LOOPS):
                yield "a Python loop"
        if isinstance(node, ast.Call) and _called(node) in ban.called:
            given = _arguments(node, texts)
            yield from (repr(text) for text in given if re.fullmatch(ban.arguments, text))
        if isinstance(node, ast.Attribute) and node.attr in ban.methods:
            of = _called(node.value) if isinstance(node.value, ast.Call) else _dotted(node.value)
            if of in parameters or of.rpartition(".")[2] in {"float", "float64", "abs"}:
                yield f"{of}.{node.attr}"


def _harmless(statement: ast.stmt, nodes: Iterable[ast.AST], names: set[str]) -> set[ast.AST]:
    """Those of a statement's nodes that mention a name without using it.

    Annotations, texts that stand alone, questions about a type, and imports of names that nothing
    reached asks for.
    """
    roots: list[ast.AST | None] = []
    for node in nodes:
        if isinstance(node, ast.arg):
            roots.append(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            roots.append(node.returns)
        elif isinstance(node, ast.AnnAssign):
            roots.append(node.annotation)
        elif isinstance(node, ast.Compare):
            # `x.dtype == np.float32` asks; `np.float32(x) == y` casts, so calls stay in.
            roots += [side for side in (node.left, *node.comparators) if not _casts(side)]
        elif isinstance(node, ast.Call) and _called(node) in _QUESTIONS:
            roots += [argument for argument in node.args[-1:] if not _casts(argument)]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            roots.append(node.value)
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        aliases = [alias for alias in statement.names if _asked_for(alias) not in names]
        roots += aliases
    return {node for root in roots if root is not None for node in ast.walk(root)}


def _casts(side: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and _called(n) != "dtype" for n in ast.walk(side))


def _asked_for(alias: ast.alias) -> str:
    return (alias.asname or alias.name).partition(".")[0]


def _name_of(statement: ast.stmt) -> str:
    return statement.name if isinstance(statement, DEFINITIONS) else ""


def _parameters(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.arg for node in nodes if isinstance(node, ast.arg)}


def _mentions(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
        return
    if isinstance(node, ast.Attribute):
        word = node.attr
    elif isinstance(node, ast.alias):
        word = node.name.rpartition(".")[2]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        word = node.value.strip("<>=!|")
    else:
        return
    yield word
    yield f".{word}"


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.alias):
        yield node.name
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and _called(node) in {"__import__", "import_module"}:
        yield from _arguments(node, {})


def _dotted(node: ast.AST) -> str:
    """A dotted name; empty for what is none, or has over _MAX_PARTS parts."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _MAX_PARTS:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


# Texts


def _texts(statements: Iterable[ast.stmt]) -> Texts:
    """The texts that variables are set to, anywhere in these statements."""
    found: Texts = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).extend(_text(node.value, {}))
    return found


def _arguments(call: ast.Call, texts: Texts) -> Iterator[str]:
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        yield from _text(argument, texts)


def _text(node: ast.AST, texts: Texts) -> Iterator[str]:
    """The texts that an expression may stand for; what an f-string fills in is left out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
        value = node.value
        if len(value) <= _MAX_TEXT:
            yield value if isinstance(value, str) else value.decode("latin-1")
    elif isinstance(node, ast.Name):
        yield from texts.get(node.id, ())[:_MAX_TEXTS]
    elif isinstance(node, ast.JoinedStr):
        parts = [text for part in node.values for text in _text(part, texts)]
        if sum(map(len, parts)) <= _MAX_TEXT:
            yield "".join(parts)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pairs = product(_text(node.left, texts), _text(node.right, texts))
        sums = (left + right for left, right in islice(pairs, _MAX_TEXTS))
        yield from (text for text in sums if len(text) <= _MAX_TEXT)
