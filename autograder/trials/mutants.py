"""Makes a solution cell's one-change variants: the slips a student makes.

The kept libraries do not fit. mutmut and cosmic-ray rewrite the files of a package and run its test
command once a mutant; here the code is a notebook's cell, the tests are a task's judge outside of
the process that runs it, and hundreds of cells go through a sandbox that stays up. Their operators
know nothing of torch either (`mul_` for `mul`, a lost `detach()`, no `no_grad`). What is left is to
list the changes of a syntax tree, which the standard library's `ast` does in this module.

A mutant's id is made of its task, the line, and the change, with a number where one line has the
same change twice. So it stays the same while other lines are edited.

Not mutated, since nothing that is graded depends on it: docstrings, annotations, messages of
exceptions, the order of what `max` and `min` compare, and `strict=True`, which only checks an
assumption.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

__all__ = ["Mutant", "mutants_of"]

_MAX_SHOWN = 60  # characters of what is changed, in an id


@dataclass(frozen=True)
class Mutant:
    """A task's solution cell with one change.

    `line` is the line it is on, without its comment; `change` says what it was and what it became.
    """

    id: str
    task: str
    line: str
    change: str
    source: str


Change = tuple[str, ast.AST | list[ast.stmt]]  # an operator's name, and what it puts in place


@dataclass(frozen=True)
class _Slot:
    """A node and the place that it stands in: a field of `parent`, or one item of that field."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST

    def holding(self, new: ast.AST | list[ast.stmt], whole: ast.Module) -> str:
        """The source of `whole` with `new` in this place; the tree is left as it was."""
        if self.index is None:
            setattr(self.parent, self.field, new)
            text = _source(whole)
            setattr(self.parent, self.field, self.node)
            return text
        items = getattr(self.parent, self.field)
        before = list(items)
        items[self.index : self.index + 1] = new if isinstance(new, list) else [new]
        if not items and self.field == "body":
            items.append(ast.Pass())
        text = _source(whole)
        items[:] = before
        return text


def _source(tree: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(tree))


def mutants_of(task: str, source: str) -> list[Mutant]:
    r"""Return every mutant of a task's solution cell, in the order of its lines.

    No two have the same source, and none has the original's.

    >>> for mutant in mutants_of("lab09-less", "def less(a, b):\n    return a < b"):
    ...     print(mutant.id)
    lab09-less: return a < b: delete it
    lab09-less: return a < b: return None
    lab09-less: return a < b: a < b -> a <= b
    lab09-less: return a < b: a < b -> a > b
    """
    tree = ast.parse(source)
    lines = source.splitlines()
    bound = _bound_names(tree)
    found: list[Mutant] = []
    seen, numbers = {ast.unparse(tree)}, Counter[str]()
    for slot in _slots(tree):
        line = lines[_line_number(slot.node) - 1].partition("  #")[0].strip()
        for what, new in _changes(slot, bound):
            text = slot.holding(new, tree)
            if text in seen or not _compiles(text):
                continue
            seen.add(text)
            change = what or f"{_shown(slot.node)} -> {_shown(new)}"
            name = f"{task}: {line}: {change}"
            numbers[name] += 1
            number = f" ({numbers[name]})" if numbers[name] > 1 else ""
            found.append(Mutant(f"{name}{number}", task, line, change, text))
    return found


def _line_number(node: ast.AST) -> int:
    """The first line of a node, or of what it is made of: a comprehension has none of its own."""
    return next((n.lineno for n in ast.walk(node) if hasattr(n, "lineno")), 1)


def _shown(node: ast.AST | list[ast.stmt]) -> str:
    assert isinstance(node, ast.AST)
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def _compiles(text: str) -> bool:
    try:
        compile(text, "<mutant>", "exec")
    except (SyntaxError, ValueError):  # such as `break` outside of a loop
        return False
    return True


def _bound_names(tree: ast.AST) -> frozenset[str]:
    """The names that the cell binds itself; what else it uses are modules, mostly."""
    nodes = list(ast.walk(tree))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(stored | {n.arg for n in nodes if isinstance(n, ast.arg)})


def _slots(tree: ast.AST) -> Iterator[_Slot]:
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "ctx"):
            continue
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or _is_idle(node):
                continue
            yield _Slot(tree, field, index if isinstance(value, list) else None, node)
            if not isinstance(node, (ast.Raise, ast.JoinedStr)):
                yield from _slots(node)


def _is_idle(node: ast.AST) -> bool:
    """Whether nothing that is graded depends on it."""
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(slot: _Slot, bound: frozenset[str]) -> Iterator[Change]:
    node = slot.node
    if isinstance(node, ast.stmt):
        if not (isinstance(slot.parent, ast.Module) or isinstance(node, ast.Pass)):
            yield "delete it", []
    elif slot.field == "decorator_list":
        yield f"without @{_shown(node)}", []
    if isinstance(node, ast.Call):
        yield from _unwrapped(node, bound)
    for kind, changes in _BY_TYPE.items():
        if isinstance(node, kind):
            yield from changes(node)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of the node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _without(items: list[ast.AST], index: int) -> list[ast.AST]:
    return items[:index] + items[index + 1 :]


# Expressions

_COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Mapping[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.Div),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.MatMult: (ast.Mult,),
}
_TWINS = [
    *(("max", "min"), ("any", "all"), ("floor", "ceil"), ("isnan", "isinf")),
    *(("zeros_like", "ones_like"), ("float16", "bfloat16")),
]
_TWIN = {**dict(_TWINS), **{other: one for one, other in _TWINS}, "float32": "float16"}


def _compared(node: ast.Compare) -> Iterator[Change]:
    for i, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            yield "", _with(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])


def _computed(node: ast.BinOp) -> Iterator[Change]:
    for other in _ARITHMETIC.get(type(node.op), ()):
        yield "", _with(node, op=other())
    yield "", node.left
    yield "", node.right


def _unary(node: ast.UnaryOp) -> Iterator[Change]:
    yield "", node.operand


def _boolean(node: ast.BoolOp) -> Iterator[Change]:
    yield "", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for i in range(len(node.values)):
        rest = _without(list(node.values), i)
        yield "", rest[0] if len(rest) == 1 else _with(node, values=rest)


def _constant(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    others: list[object] = []
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, str):
        others = [f"{value}_"]
    elif isinstance(value, int):
        doubled = [2 * value, value // 2] if value >= 4 and value & (value - 1) == 0 else []
        others = [value + 1, value - 1, 0, -value, *doubled]
    elif isinstance(value, float):
        others = [value + 1, value - 1, 0.0, -value, 2 * value]
    for other in others:
        if other != value:
            yield "", _literal(other)


def _literal(value: object) -> ast.expr:
    """A constant; a negative one as it is parsed, so that a power of it keeps its brackets."""
    text = repr(value)
    if text.startswith("-"):
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))  # type: ignore[operator]
    return ast.Constant(value)  # type: ignore[arg-type]


def _conditional(node: ast.IfExp) -> Iterator[Change]:
    yield "", node.body
    yield "", node.orelse


def _named(node: ast.Name | ast.Attribute) -> Iterator[Change]:
    field = "id" if isinstance(node, ast.Name) else "attr"
    name = getattr(node, field)
    if isinstance(node.ctx, ast.Load) and name in _TWIN:
        yield "", _with(node, **{field: _TWIN[name]})


def _unwrapped(node: ast.Call, bound: frozenset[str]) -> Iterator[Change]:
    """A call left out, as `x` for `abs(x)` or for `x.detach()`."""
    function = node.func
    if isinstance(function, ast.Attribute) and _root(function) in bound:
        yield "", function.value
    elif len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
        yield "", node.args[0]


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else "self"


def _called(node: ast.Call) -> Iterator[Change]:
    function, arguments = node.func, node.args
    starred = any(isinstance(argument, ast.Starred) for argument in arguments)
    if len(arguments) == 2 and not starred and ast.unparse(function) not in ("max", "min"):
        yield "", _with(node, args=arguments[::-1])
    for i, keyword in enumerate(node.keywords):
        if not _is_idle(keyword):
            yield "", _with(node, keywords=_without(list(node.keywords), i))
    if isinstance(function, ast.Attribute) and function.attr[0] != "_" == function.attr[-1]:
        yield "", _with(node, func=_with(function, attr=function.attr[:-1]))
    if isinstance(function, ast.Name) and function.id == "range":
        stop = min(len(arguments) - 1, 1)
        for shifted in _off_by_one(arguments[stop]):
            yield "", _with(node, args=[*arguments[:stop], shifted, *arguments[stop + 1 :]])


def _off_by_one(node: ast.expr) -> Iterator[ast.expr]:
    for operator in (ast.Add(), ast.Sub()):
        yield ast.BinOp(node, operator, ast.Constant(1))


def _sliced(node: ast.Slice) -> Iterator[Change]:
    lower = [ast.Constant(1)] if node.lower is None else [None, *_off_by_one(node.lower)]
    upper = [_literal(-1)] if node.upper is None else [None, *_off_by_one(node.upper)]
    for other in lower:
        yield "", _with(node, lower=other)
    for other in upper:
        yield "", _with(node, upper=other)
    if node.step is not None:
        yield "", _with(node, step=None)


def _filtered(node: ast.comprehension) -> Iterator[Change]:
    for i, condition in enumerate(node.ifs):
        yield f"without if {_shown(condition)}", _with(node, ifs=_without(list(node.ifs), i))


# Statements


def _branch(node: ast.If | ast.While) -> Iterator[Change]:
    for truth in (True, False):
        yield f"condition {truth}", _with(node, test=ast.Constant(truth))


def _returned(node: ast.Return) -> Iterator[Change]:
    if node.value is not None:
        yield "return None", _with(node, value=ast.Constant(None))
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        yield "return the first element", _with(node, value=node.value.elts[0])


def _augmented(node: ast.AugAssign) -> Iterator[Change]:
    for other in _ARITHMETIC.get(type(node.op), ()):
        yield "", _with(node, op=other())
    yield "", ast.Assign([node.target], node.value)


def _raised(node: ast.Raise) -> Iterator[Change]:
    if isinstance(node.exc, ast.Call):
        yield "raise RuntimeError", ast.Raise(ast.Call(ast.Name("RuntimeError"), node.exc.args, []))


def _managed(node: ast.With) -> Iterator[Change]:
    for i, item in enumerate(node.items):
        rest = _without(list(node.items), i)
        new = [_with(node, items=rest)] if rest else list(node.body)
        yield f"without with {_shown(item)}", new  # type: ignore[misc]


def _jump(node: ast.Break | ast.Continue) -> Iterator[Change]:
    yield "", ast.Continue() if isinstance(node, ast.Break) else ast.Break()


_BY_TYPE: Mapping[type[ast.AST] | tuple[type[ast.AST], ...], Callable[..., Iterator[Change]]] = {
    ast.Compare: _compared,
    ast.BinOp: _computed,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Constant: _constant,
    ast.IfExp: _conditional,
    (ast.Name, ast.Attribute): _named,
    ast.Call: _called,
    ast.Slice: _sliced,
    ast.comprehension: _filtered,
    (ast.If, ast.While): _branch,
    ast.Return: _returned,
    ast.AugAssign: _augmented,
    ast.Raise: _raised,
    ast.With: _managed,
    (ast.Break, ast.Continue): _jump,
}
