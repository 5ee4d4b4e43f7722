"""Computes the values of expressions that consist of constants, without running any code.

`"op" + "tim"`, `"mitpo"[::-1]` and `"".join(["op", "tim"])` can spell a name just as a constant
does. Every value is bounded, so that reading hostile code stays cheap.

Long because it computes every kind of expression that may spell a name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from autograder.model.expressions import MAX_TEXT, MAX_TEXTS, called_name

__all__ = ["Constants", "constants_of", "texts_in", "variables_of"]

# The values that each node may have: text, bytes, int, or a list or dict of these.
Constants = dict[ast.AST, list[Any]]
Variables = Mapping[str, list[Any]]  # the values that each variable may have

_MAX_INTEGER = 2**256  # integers may spell a name's bytes
# Methods of str and bytes whose result is at most as long as the product of their arguments' sizes.
_METHODS = frozenset(
    {"capitalize", "casefold", "hex", "join", "lower", "lstrip", "removeprefix", "removesuffix"}
    | {"partition", "replace", "rpartition", "rsplit", "rstrip", "split", "splitlines", "strip"}
    | {"swapcase", "title", "upper", "__add__"}
)


def _bytes(items: Any) -> bytes:
    if isinstance(items, int):  # that many zeros, which could fill the memory
        raise TypeError
    return bytes(items)


_CODECS = frozenset({"ascii", "latin-1", "utf-8", "utf8"})
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "bytearray": _bytes,
    "bytes": _bytes,
    "chr": chr,
    "list": list,
    "reversed": lambda items: items[::-1],
    "sorted": sorted,
    "str": str,
    "tuple": list,
}
_MISTAKES = (TypeError, ValueError, LookupError, OverflowError, AttributeError)


def constants_of(nodes: Sequence[ast.AST], variables: Variables) -> Constants:
    """Return the nodes' values, for nodes that have any; `nodes` has parents before children.

    Unknown fields of formatted text are left out.
    """
    found: Constants = {}
    for node in reversed(nodes):
        values = [*islice(filter(_is_small, _values(node, found, variables)), MAX_TEXTS)]
        if values:
            found[node] = values
    return found


def variables_of(statements: Iterable[ast.stmt]) -> dict[str, list[Any]]:
    """Return the constants that variables are set to anywhere in these statements."""
    found: dict[str, list[Any]] = {}
    for statement in statements:
        nodes = [*ast.walk(statement)]
        values = constants_of(nodes, found)
        for node in nodes:
            for target, given in _bindings(node, values):
                if isinstance(target, ast.Name):
                    known = found.setdefault(target.id, [])
                    if isinstance(node, ast.AugAssign):
                        given = [*given, *_sums(known, given)]
                    known += given[: MAX_TEXTS - len(known)]
    return found


def _sums(known: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """The values that `+=` gives a variable."""
    pairs = product(known, more)
    return [a + b for a, b in pairs if type(a) is type(b) is str and len(a + b) <= MAX_TEXT]


def texts_in(values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts among the values; bytes count as the text that they spell."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, bytes):
            yield value.decode("latin-1")


def _bindings(node: ast.AST, values: Constants) -> Iterator[tuple[ast.AST | None, list[Any]]]:
    """The targets that a node sets, with the values of each."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, values.get(node.value, []))
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
        yield node.target, values.get(node.value, []) if node.value else []
    elif isinstance(node, (ast.For, ast.comprehension)):
        items = [item for value in values.get(node.iter, []) for item in _items(value)]
        yield node.target, items
    elif isinstance(node, ast.arguments):
        places = [*node.posonlyargs, *node.args]
        defaults = [*zip(reversed(places), reversed(node.defaults), strict=False)]
        defaults += [(a, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d]
        for argument, default in defaults:
            yield ast.Name(argument.arg), values.get(default, [])


def _unpacked(target: ast.AST, given: list[Any]) -> Iterator[tuple[ast.AST, list[Any]]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, given
        return
    for value in given:
        yield from zip(target.elts, ([item] for item in _items(value)), strict=False)


def _items(value: Any) -> Sequence[Any]:
    """Return the items of a list or a text, or a dict's keys; empty for other values."""
    if isinstance(value, dict):
        return list(value)
    return value if isinstance(value, (list, str, bytes)) else []


def _is_small(value: Any) -> bool:
    if isinstance(value, list):  # not lists of lists, whose texts could grow exponentially
        return len(value) <= MAX_TEXT and not any(isinstance(v, (list, dict)) for v in value)
    if isinstance(value, dict):
        return _is_small([*value, *value.values()])
    if isinstance(value, (str, bytes)):
        return len(value) <= MAX_TEXT
    return type(value) is int and abs(value) < _MAX_INTEGER


def _values(node: ast.AST, found: Constants, variables: Variables) -> Iterator[Any]:
    """The values of a node, from those of its children; they may still be too large."""
    if isinstance(node, ast.Constant):
        yield node.value
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from variables.get(node.id, ())
    elif isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) <= MAX_TEXT:
        yield from _listed(node.elts, found)
    elif isinstance(node, ast.Dict) and len(node.keys) <= MAX_TEXT and None not in node.keys:
        yield from _dicts(node, found)
    elif isinstance(node, ast.NamedExpr):
        yield from found.get(node.value, ())
    elif isinstance(node, (ast.IfExp, ast.BoolOp)):
        sides = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        yield from (value for side in sides for value in found.get(side, ()))
    elif isinstance(node, ast.JoinedStr):
        known = [part for part in node.values if part in found]
        yield from ("".join(map(str, parts)) for parts in _combined(known, found))
    elif isinstance(node, ast.FormattedValue) and node.conversion in _AS_TEXT:
        if node.format_spec is None or found.get(node.format_spec) == ["s"]:
            yield from found.get(node.value, ())
    elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Call)):
        yield from _computed(node, found)


_AS_TEXT = (-1, ord("s"))  # f"{x}" and f"{x!s}"


def _listed(nodes: Sequence[ast.expr], found: Constants) -> Iterator[list[Any]]:
    """The lists of these nodes' values; a starred node stands for the items of its value."""
    starred = [isinstance(node, ast.Starred) for node in nodes]
    inner = [node.value if isinstance(node, ast.Starred) else node for node in nodes]
    for values in _combined(inner, found):
        parts = zip(starred, values, strict=True)
        yield [item for many, value in parts for item in (_items(value) if many else [value])]


def _dicts(node: ast.Dict, found: Constants) -> Iterator[dict[Any, Any]]:
    for values in _combined([*filter(None, node.keys), *node.values], found):
        keys = values[: len(node.keys)]
        if all(isinstance(key, (str, bytes, int)) for key in keys):
            yield dict(zip(keys, values[len(keys) :], strict=True))


def _combined(nodes: Sequence[ast.expr], found: Constants) -> Iterator[tuple[Any, ...]]:
    yield from islice(product(*(found.get(node, ()) for node in nodes)), MAX_TEXTS)


def _computed(
    node: ast.BinOp | ast.UnaryOp | ast.Subscript | ast.Call, found: Constants
) -> Iterator[Any]:
    """The results of an operator, a slice or a call, except those that Python would refuse."""
    operate: Callable[..., Any] | None
    if isinstance(node, ast.UnaryOp):
        operands, operate = [node.operand], _negative if isinstance(node.op, ast.USub) else None
    elif isinstance(node, ast.BinOp):
        operands, operate = [node.left, node.right], _OPERATORS.get(type(node.op))
        if isinstance(node.op, ast.Mod) and node.right not in found:
            operands, operate = [node.left], _without_fields
    elif isinstance(node, ast.Subscript):
        bounds = node.slice
        parts = (
            [bounds.lower, bounds.upper, bounds.step] if isinstance(bounds, ast.Slice) else [bounds]
        )
        operands = [node.value, *(part for part in parts if part)]
        is_given = [part is not None for part in parts]
        operate = _slicer(is_given) if isinstance(bounds, ast.Slice) else _item
    else:
        operands, operate = _call(node, found)
    if operate is None:
        return
    for values in _combined(operands, found):
        try:
            yield operate(*values)
        except _MISTAKES:
            continue


def _call(node: ast.Call, found: Constants) -> tuple[list[ast.expr], Callable[..., Any] | None]:
    """The operands of a call, and the function to apply to them; None if it isn't a known one."""
    name, arguments = called_name(node), list(node.args)
    if any(isinstance(argument, ast.Starred) for argument in arguments):
        arguments = []
        if name != "format":
            return [], None
    if node.keywords and name != "format":
        return [], None
    if isinstance(node.func, ast.Name):
        if name == "map" and len(arguments) == 2 and getattr(arguments[0], "id", "") == "chr":
            return arguments[1:], lambda items: [chr(item) for item in items]
        return arguments, _FUNCTIONS.get(name)
    if not isinstance(node.func, ast.Attribute):
        return [], None
    if name == "fromhex":
        return arguments, bytes.fromhex
    operands = [node.func.value, *arguments]
    if name == "format":
        names = [keyword.arg or "" for keyword in node.keywords]
        operands += [keyword.value for keyword in node.keywords]
        known = all(operand in found for operand in operands) and "" not in names
        return (operands, _formatted(names)) if known else (operands[:1], _without_fields)
    if name == "to_bytes":
        return operands, _to_bytes
    if name in ("encode", "decode"):
        return operands, _recoded
    return operands, _method(name) if name in _METHODS else None


def _method(name: str) -> Callable[..., Any]:
    def call(value: Any, *arguments: Any) -> Any:
        if not isinstance(value, (str, bytes)):
            raise TypeError
        result = getattr(value, name)(*arguments)
        return list(result) if isinstance(result, tuple) else result

    return call


def _recoded(value: str | bytes, codec: str = "utf-8") -> str | bytes:
    if codec.lower() not in _CODECS:
        raise LookupError
    return value.encode(codec) if isinstance(value, str) else value.decode(codec)


def _formatted(names: Sequence[str]) -> Callable[..., str]:
    """Return `format` of a template and values, the last of which have these names."""

    def form(template: str, *values: Any) -> str:
        if re.search(r"\{[^}]*[:!.\[]", template):  # a width may be huge
            raise ValueError
        places = values[: len(values) - len(names)]
        return template.format(*places, **dict(zip(names, values[len(places) :], strict=True)))

    return form


def _to_bytes(value: int, length: int, order: str = "big") -> bytes:
    if not 0 <= length <= MAX_TEXT or order not in ("big", "little"):
        raise ValueError
    return value.to_bytes(length, "big" if order == "big" else "little")


def _without_fields(template: str) -> str:
    if not isinstance(template, str):
        raise TypeError
    return re.sub(r"%[-+ #0-9.*]*[a-zA-Z]|\{[^{}]*\}", "", template)


def _modulo(template: Any, values: Any) -> Any:
    if not isinstance(template, str):
        raise TypeError
    if re.search(r"%(\(\w*\))?[^sdcir%(]", template):
        raise ValueError
    return template % (tuple(values) if isinstance(values, list) else values)


def _times(a: Any, b: Any) -> Any:
    sizes = [len(_items(side)) for side in (a, b) if not isinstance(side, int)]
    counts = [side for side in (a, b) if isinstance(side, int)]
    if sizes and counts and sizes[0] * counts[0] > MAX_TEXT:
        raise OverflowError
    return a * b


def _negative(value: int) -> int:
    return -value


def _item(value: Any, index: Any) -> Any:
    return value[index]


def _slicer(is_given: Sequence[bool]) -> Callable[..., Any]:
    def cut(value: Any, *bounds: Any) -> Any:
        left = iter(bounds)
        return value[slice(*(next(left) if given else None for given in is_given))]

    return cut


_OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Mult: _times,
    ast.Mod: _modulo,
}
