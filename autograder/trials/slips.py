"""Lists the slips that a student may make at one node of a syntax tree, by the node's kind."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping

__all__ = ["Change", "is_idle", "shown", "slips_at"]

_MAX_SHOWN = 60  # characters of the change that an id shows
Change = tuple[str, ast.AST | list[ast.stmt]]  # an operator's name, and the replacement


def shown(node: ast.AST | list[ast.stmt]) -> str:
    """Return a node as an id shows it: its source on one line, shortened if necessary."""
    assert isinstance(node, ast.AST)
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def is_idle(node: ast.AST) -> bool:
    """Tell whether no grade depends on a node."""
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def slips_at(node: ast.AST, bound: frozenset[str]) -> Iterator[Change]:
    """Yield every slip at a node of a cell that itself binds the names `bound`."""
    if isinstance(node, ast.Call):
        yield from _unwrapped(node, bound)
    for kind, changes in _BY_TYPE.items():
        if isinstance(node, kind):
            yield from changes(node)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of the node with changed fields."""
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
    ("max", "min"),
    ("any", "all"),
    ("floor", "ceil"),
    ("isnan", "isinf"),
    ("zeros_like", "ones_like"),
    ("float16", "bfloat16"),
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
    """Drop a call, as `x` for `abs(x)` or for `x.detach()`."""
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
        if not is_idle(keyword):
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
        yield f"without if {shown(condition)}", _with(node, ifs=_without(list(node.ifs), i))


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
        yield f"without with {shown(item)}", new  # type: ignore[misc]


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
