"""Reads expressions of a syntax tree: the names they mention or call, the texts they may yield."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import islice, product

__all__ = [
    "MAX_TEXT",
    "MAX_TEXTS",
    "Texts",
    "called_name",
    "dotted_name",
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
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def texts_of_variables(statements: Iterable[ast.stmt]) -> Texts:
    """Return the texts that variables are set to anywhere in these statements."""
    found: Texts = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                texts = list(texts_of(node.value, {}))
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).extend(texts)
    return found


def text_arguments(call: ast.Call, texts: Texts) -> Iterator[str]:
    """Yield the texts that a call's arguments may have as values."""
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        yield from texts_of(argument, texts)


def texts_of(node: ast.AST, texts: Texts) -> Iterator[str]:
    """Yield the texts that an expression may have as its value, f-string fields left out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
        value = node.value
        if len(value) <= MAX_TEXT:
            yield value if isinstance(value, str) else value.decode("latin-1")
    elif isinstance(node, ast.Name):
        yield from texts.get(node.id, ())[:MAX_TEXTS]
    elif isinstance(node, ast.JoinedStr):
        parts = [text for part in node.values for text in texts_of(part, texts)]
        if sum(map(len, parts)) <= MAX_TEXT:
            yield "".join(parts)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pairs = product(texts_of(node.left, texts), texts_of(node.right, texts))
        sums = (left + right for left, right in islice(pairs, MAX_TEXTS))
        yield from (text for text in sums if len(text) <= MAX_TEXT)
