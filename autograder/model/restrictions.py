"""What a solution may not use, and the reading of its syntax tree that tells.

The check reads source text and runs nothing. It follows a task's solution into the helpers it
names, with the names as they stood at its cell, so a banned call does not pass by standing in
another cell, and a cell of another exercise that may use the thing is left alone. It is no lock:
who builds a name at run time is not seen. An honest solution accused is the worse fault, so what
could be either passes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING

from autograder.model.allowed import BUILTINS, ENTRIES, REFLECTION, refused_part
from autograder.model.definitions import DEFINITIONS, Reached, reachable, statements
from autograder.model.state import order_of
from autograder.model.submission import RunCell

if TYPE_CHECKING:
    from autograder.model.task import Task

__all__ = ["NOTHING_BANNED", "Ban", "Use", "banned_uses"]


@dataclass(frozen=True)
class Ban:
    """What one task's solution may not use, beside what none may (`autograder.model.allowed`).

    `names` are identifiers, attributes and imported names (`float32`); they count in strings too
    where the string is exactly that name (`"float32"`, as dtype strings and `getattr` take it). A
    name with a leading dot (`.half`) is never a variable of that name.
    `modules` are modules with all that is below them (`torch.optim`), or single functions of theirs
    (`math.fsum`), Python's own among them (`builtins.sum`). `allows` are such names that this
    task's solution may use nevertheless.
    `arguments` is a pattern that no text given to the functions in `called` may match in full, such
    as the format codes of `struct`. `methods` are methods of float (`hex`); since bytes have some
    of the same names, they count where they are asked of `float`, `float(...)`, `abs(...)` or a
    parameter of the solution. `loops` bans Python loops, comprehensions, `map` and np.vectorize.
    `reason` is the sentence a student reads.
    """

    names: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    allows: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    arguments: str = ""
    methods: frozenset[str] = frozenset()
    loops: bool = False
    reason: str = ""


NOTHING_BANNED = Ban()


@dataclass(frozen=True)
class Use:
    """Something that a solution uses and may not, by `name`.

    `by_task` tells whether the exercise's own ban is why; else no exercise allows it.
    """

    name: str
    by_task: bool


Aliases = dict[str, set[str]]  # of a variable: the modules, or names in modules, that it stands for
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


def banned_uses(task: Task, cells: Sequence[RunCell], allows: Iterable[str] = ()) -> list[Use]:
    r"""Return what `task` forbids in the definitions of its names and all they lead to.

    `cells` are a notebook's, `allows` what the lab allows beside what all solutions may use. One
    that does not parse is passed over, since it defines nothing.
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
    """The names that the lab's own cells bind, each with what it imports."""
    names: Aliases = {}
    for source in sources:
        for statement in statements(source):
            names |= {name: names.get(name, set()) for name in statement.binds}
            _add_imports(names, ast.walk(statement.node))
    return names


class _Reader:
    """Reads the statements that a task's solution is made of."""

    def __init__(self, task: Task, reached: Reached, given: Aliases, allows: Iterable[str]) -> None:
        self._ban, self._defines, self._names = task.ban, task.defines, reached.names
        self._entries = {**ENTRIES, **dict.fromkeys([*allows, *task.ban.allows], True)}
        self._aliases = {name: given.get(name, set()) for name in reached.unbound}
        self._texts = _texts(reached.statements) if task.ban.called else {}
        for statement in reached.statements:
            _add_imports(self._aliases, ast.walk(statement))
        for statement in reached.statements:
            _add_assigned(self._aliases, ast.walk(statement))

    def uses(self, statement: ast.stmt) -> Iterator[Use]:
        nodes = list(ast.walk(statement))
        harmless = _harmless(statement, nodes, self._names)
        parameters = _parameters(nodes) if _name_of(statement) in self._defines else set()
        counted = [node for node in nodes if node not in harmless]
        for node in counted:
            yield from (Use(name, by_task=True) for name in self._of_task(node, parameters))
            if isinstance(node, (ast.Attribute, ast.Constant)):
                words = [word for word in _mentions(node) if word in REFLECTION]
                yield from (Use(word, by_task=False) for word in words)
        for name in _imported_on_the_way(statement, counted):
            yield from self._of_module(name, on_the_way=True)
        for name, on_the_way in _used_of_modules(counted, self._aliases):
            yield from self._of_module(name, on_the_way=on_the_way)

    def _of_module(self, name: str, *, on_the_way: bool = False) -> Iterator[Use]:
        if on_the_way and _is_partly_allowed(name, self._entries):
            return
        if part := refused_part(name, self._entries, self._ban.modules):
            yield Use(part, by_task=part in self._ban.modules)

    def _of_task(self, node: ast.AST, parameters: set[str]) -> Iterator[str]:
        ban = self._ban
        yield from (name for name in _mentions(node) if name in ban.names)
        dotted = _dotted(node)
        yield from (m for m in ban.modules if "." in m and dotted == m)
        if ban.loops:
            yield from (name for name in _mentions(node) if name in _LOOP_CALLS)
            if isinstance(node, _LOOPS):
                yield "a Python loop"
        if isinstance(node, ast.Call) and _called(node) in ban.called:
            given = _arguments(node, self._texts)
            yield from (repr(text) for text in given if re.fullmatch(ban.arguments, text))
        if isinstance(node, ast.Attribute) and node.attr in ban.methods:
            of = _called(node.value) if isinstance(node.value, ast.Call) else _dotted(node.value)
            if of in parameters or of.rpartition(".")[2] in {"float", "float64", "abs"}:
                yield f"{of}.{node.attr}"


# Modules


def _add_imports(aliases: Aliases, nodes: Iterable[ast.AST]) -> None:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else _asked_for(alias)
                aliases.setdefault(_asked_for(alias), set()).add(whole)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                aliases.setdefault(_asked_for(alias), set()).add(_from(node, alias))


def _add_assigned(aliases: Aliases, nodes: Iterable[ast.AST]) -> None:
    """Add the variables that are set to something in a module: `t = torch.utils`."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                known = aliases.setdefault(name, set())
                more = [whole for whole in _resolved(node.value, aliases) if len(whole) < _MAX_TEXT]
                known.update(more[: max(0, _MAX_TEXTS - len(known))])


def _from(node: ast.ImportFrom, alias: ast.alias) -> str:
    if node.level:
        return "." * node.level + (node.module or alias.name)
    return f"{node.module}" if alias.name == "*" else f"{node.module}.{alias.name}"


def _imported_on_the_way(statement: ast.stmt, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """What is imported inside of the statement, or by `*`; other imports count by their use."""
    for node in nodes:
        if isinstance(node, ast.Import) and node is not statement:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            everything = any(alias.name == "*" for alias in node.names)
            if node is not statement or everything:
                yield from (_from(node, alias) for alias in node.names)


def _used_of_modules(nodes: Sequence[ast.AST], aliases: Aliases) -> Iterator[tuple[str, bool]]:
    """The dotted names that are used of modules, and whether each stands in a longer one."""
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Call) and _called(node) == "getattr" and len(node.args) > 1:
            owners = _resolved(node.args[0], aliases)
            yield from ((f"{o}.{t}", False) for o in owners for t in _text(node.args[1], {}))
        elif isinstance(node, ast.Attribute) or _is_read(node):
            yield from ((name, id(node) in inner) for name in _resolved(node, aliases))


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _resolved(node: ast.AST, aliases: Aliases) -> list[str]:
    root, dot, rest = _dotted(node).partition(".")
    return [f"{whole}{dot}{rest}" for whole in aliases.get(root, ())]


def _is_partly_allowed(name: str, entries: dict[str, bool]) -> bool:
    """Whether some names in the module may be used, so that importing it is no use by itself."""
    return name not in entries and any(
        allowed and entry.startswith(f"{name}.") for entry, allowed in entries.items()
    )


def _harmless(statement: ast.stmt, nodes: Sequence[ast.AST], names: set[str]) -> set[ast.AST]:
    """Those of a statement's nodes that mention a name without using it.

    Annotations, texts that stand alone, questions about a type, and imports of names that nothing
    reached asks for.
    """
    roots: list[ast.AST | None] = []
    casting = _casting(nodes)
    for node in nodes:
        if isinstance(node, ast.arg):
            roots.append(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            roots.append(node.returns)
        elif isinstance(node, ast.AnnAssign):
            roots.append(node.annotation)
        elif isinstance(node, ast.Compare):
            # `x.dtype == np.float32` asks; `np.float32(x) == y` casts, so calls stay in.
            roots += [side for side in (node.left, *node.comparators) if side not in casting]
        elif isinstance(node, ast.Call) and _called(node) in _QUESTIONS:
            roots += [argument for argument in node.args[-1:] if argument not in casting]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            roots.append(node.value)
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        # `import torch.utils.checkpoint` binds `torch`, and what is used of it will be seen.
        roots += [a for a in statement.names if _asked_for(a) not in names or _binds_a_root(a)]
    return _with_all_below(root for root in roots if root is not None)


# Whole trees at a time: a notebook may nest them, and walks of each one's own would add up to time
# that grows with the square of its length.


def _with_all_below(roots: Iterable[ast.AST]) -> set[ast.AST]:
    """The nodes of all these trees, which may be parts of one another."""
    found: set[ast.AST] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += ast.iter_child_nodes(node)
    return found


def _casting(nodes: Sequence[ast.AST]) -> set[ast.AST]:
    """Those of a tree's nodes, each before those below it, that convert something in or below."""
    found: set[ast.AST] = set()
    for node in reversed(nodes):
        if (isinstance(node, ast.Call) and _called(node) != "dtype") or any(
            child in found for child in ast.iter_child_nodes(node)
        ):
            found.add(node)
    return found


def _binds_a_root(alias: ast.alias) -> bool:
    return "." in alias.name and not alias.asname


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
                texts = list(_text(node.value, {}))
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).extend(texts)
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
