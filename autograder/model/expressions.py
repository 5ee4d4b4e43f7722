"""Reads expressions of a syntax tree: the names they mention or call, the texts they may yield."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

__all__ = [
    "MAX_TEXT",
    "MAX_TEXTS",
    "Texts",
    "called_name",
    "dotted_name",
    "last_name",
    "text_arguments",
    "texts_of",
    "texts_of_variables",
    "words_of",
]

Texts = dict[str, list[str]]  # the texts that each variable is set to
# Bounds on the texts that an expression may yield: format codes are short, and a pattern or a sum
# of texts could be made to take hours.
MAX_TEXTS = 20
MAX_TEXT = 200  # characters
# No module's dotted name has so many parts. Each attribute of a chain ends a name of its own, and
# reading all of them in full takes time that grows with the square of the chain's length.
_MAX_PARTS = 20


def words_of(node: ast.AST) -> Iterator[str]:
    """Yield the words that a node mentions; for an attribute also the word with a leading dot."""
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


def dotted_name(node: ast.AST) -> str:
    """Return a dotted name; empty for other nodes and for names of over 20 parts."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _MAX_PARTS:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def called_name(call: ast.Call) -> str:
    """Return the last part of a called function's name; empty if it has no name."""
    return last_name(call.func)


def last_name(node: ast.AST) -> str:
    """Return a variable's name, or an attribute's without its object; empty for other nodes."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def texts_of_variables(statements: Sequence[ast.stmt]) -> Texts:
    """Return the texts that variables, attributes and parameters are set to in these statements."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    parameters = {
        node.name: [a.arg for a in node.args.posonlyargs + node.args.args]
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    found: Texts = {}
    for node in nodes:
        for name, value in _bindings(node, parameters):
            if texts := list(islice(texts_of(value, found), MAX_TEXTS)):
                found.setdefault(name, []).extend(texts)
    return found


def _bindings(
    node: ast.AST, parameters: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a node sets: names of variables, attributes or parameters, each with its value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _unpacked(node.target, node.value)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield from _unpacked(node.target, node.iter)
    elif isinstance(node, ast.arguments):
        positional = [a.arg for a in node.posonlyargs + node.args]
        yield from zip(reversed(positional), reversed(node.defaults), strict=False)
        optional = zip(node.kwonlyargs, node.kw_defaults, strict=True)
        yield from ((a.arg, default) for a, default in optional if default is not None)
    elif isinstance(node, ast.Call):
        yield from zip(parameters.get(called_name(node), ()), node.args, strict=False)
        yield from ((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg)


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        pairs = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        values = value.elts if pairs else [value] * len(target.elts)  # type: ignore[attr-defined]
        for part, one in zip(target.elts, values, strict=True):
            yield from _unpacked(part, one)
    elif name := last_name(target):
        yield name, value


def text_arguments(call: ast.Call, texts: Texts) -> Iterator[str]:
    """Yield the texts that a call's arguments may have as values, but for numpy's `order`."""
    keywords = [keyword.value for keyword in call.keywords if keyword.arg != "order"]
    for argument in [*call.args, *keywords]:
        yield from texts_of(argument, texts)


def texts_of(node: ast.AST, texts: Texts) -> Iterator[str]:
    """Yield the texts that an expression may have as its value, f-string fields left out.

    A collection yields those of its items, of which a subscript takes one.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
        value = node.value
        if len(value) <= MAX_TEXT:
            yield value if isinstance(value, str) else value.decode("latin-1")
    elif isinstance(node, (ast.Name, ast.Attribute)):
        yield from texts.get(last_name(node), ())[:MAX_TEXTS]
    elif isinstance(node, ast.JoinedStr):
        parts = [text for part in node.values for text in texts_of(part, texts)]
        if sum(map(len, parts)) <= MAX_TEXT:
            yield "".join(parts)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pairs = product(texts_of(node.left, texts), texts_of(node.right, texts))
        sums = (left + right for left, right in islice(pairs, MAX_TEXTS))
        yield from (text for text in sums if len(text) <= MAX_TEXT)
    else:
        for part in _alternatives(node):
            yield from texts_of(part, texts)


def _alternatives(node: ast.AST) -> Sequence[ast.AST]:
    """The expressions whose texts this one may have, or contain."""
    if isinstance(node, (ast.NamedExpr, ast.Subscript, ast.Starred)):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [node.left, node.right]
    if isinstance(node, (ast.BoolOp, ast.Dict)):
        return node.values
    if isinstance(node, ast.List):  # of a record's fields, say, each a name and a code
        rows = [item.elts[1:] if isinstance(item, ast.Tuple) else [item] for item in node.elts]
        return [item for row in rows for item in row]
    return node.elts if isinstance(node, (ast.Tuple, ast.Set)) else ()
