"""Reads expressions of a syntax tree: the names that they mention or call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = [
    "MAX_TEXT",
    "MAX_TEXTS",
    "called_name",
    "dotted_name",
    "words_of",
    "words_of_text",
]

# Bounds on the values that an expression may yield. Names and format codes are short, and a hostile
# pattern or sum of texts could take hours.
MAX_TEXTS = 20
MAX_TEXT = 200  # characters
# No module's dotted name has so many parts. Every attribute in a chain ends another name, and
# reading all of them in full takes time quadratic in the chain's length.
_MAX_PARTS = 20


def words_of(node: ast.AST) -> Iterator[str]:
    """Yield the words that a node mentions; an attribute also yields `.name`."""
    if isinstance(node, ast.Name):
        yield node.id
        return
    if isinstance(node, ast.MatchClass):  # `case object(optim=x)` reads the attribute
        yield from (word for name in node.kwd_attrs for word in (name, f".{name}"))
        return
    if isinstance(node, ast.Attribute):
        word = node.attr
    elif isinstance(node, ast.alias):
        word = node.name.rpartition(".")[2]
    else:
        return
    yield word
    yield f".{word}"


def words_of_text(text: str) -> Iterator[str]:
    """Yield the words that a text names, as for an attribute; a dotted name yields its parts."""
    word = text.strip("<>=!|")
    yield word
    yield f".{word}"
    parts = word.split(".", _MAX_PARTS)
    if len(parts) > 1 and all(part.isidentifier() or part.isdigit() for part in parts):
        yield from (spelled for part in parts for spelled in (part, f".{part}"))


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
