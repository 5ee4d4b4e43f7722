"""Resolves a solution's variables to modules, and lists the names that it uses from modules."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from autograder.model.constants import Constants, texts_in
from autograder.model.expressions import MAX_TEXT, MAX_TEXTS, called_name, dotted_name

__all__ = [
    "Aliases",
    "add_assigned",
    "add_everything",
    "add_imports",
    "binds_a_root",
    "bound_name",
    "imported_on_the_way",
    "read_by_text",
    "used_of_modules",
]

Aliases = dict[str, set[str]]  # the modules, or names in modules, that each variable may stand for


def add_imports(aliases: Aliases, nodes: Iterable[ast.AST]) -> None:
    """Add the variables that these nodes import, in place."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else bound_name(alias)
                aliases.setdefault(bound_name(alias), set()).add(whole)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                aliases.setdefault(bound_name(alias), set()).add(_from(node, alias))


def add_everything(aliases: Aliases, nodes: Iterable[ast.AST], names: Iterable[str]) -> None:
    """Add the dotted names that `from module import *` brings in, in place."""
    modules = {
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    }
    for name in names:
        module, _, last = name.rpartition(".")
        if module in modules:
            aliases.setdefault(last, set()).add(name)


def add_assigned(aliases: Aliases, nodes: Iterable[ast.AST]) -> None:
    """Add the variables set to something in a module, as by `t = torch.utils`, in place."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                known = aliases.setdefault(name, set())
                more = [whole for whole in _resolved(node.value, aliases) if len(whole) < MAX_TEXT]
                known.update(more[: max(0, MAX_TEXTS - len(known))])


def _from(node: ast.ImportFrom, alias: ast.alias) -> str:
    if node.level:
        return "." * node.level + (node.module or alias.name)
    return f"{node.module}" if alias.name == "*" else f"{node.module}.{alias.name}"


def imported_on_the_way(statement: ast.stmt, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield names imported inside the statement or by `*`; other imports count when used."""
    for node in nodes:
        if isinstance(node, ast.Import) and node is not statement:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            everything = any(alias.name == "*" for alias in node.names)
            if node is not statement or everything:
                yield from (_from(node, alias) for alias in node.names)


def used_of_modules(
    nodes: Sequence[ast.AST], aliases: Aliases, constants: Constants
) -> Iterator[tuple[str, bool]]:
    """Yield the dotted names used from modules, and whether each is part of a longer one."""
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Call) and node.args:
            name, owners = called_name(node), _resolved(node.args[0], aliases)
            if name == "getattr" and len(node.args) > 1:
                texts = texts_in(constants.get(node.args[1], ()))
                yield from ((f"{owner}.{text}", False) for text in texts for owner in owners)
            elif name in _LISTING:
                yield from ((f"{owner}.__dict__", False) for owner in owners)
        elif isinstance(node, ast.Attribute) or _is_read(node):
            yield from ((name, id(node) in inner) for name in _resolved(node, aliases))


def read_by_text(nodes: Sequence[ast.AST], aliases: Aliases, constants: Constants) -> Iterator[str]:
    """Yield the dotted names in modules that texts may spell, as in `attrgetter("optim.Adam")`.

    The object that such a text is applied to is unknown, so each is combined with every module.
    """
    modules = {whole for wholes in aliases.values() for whole in wholes}
    for node in nodes:
        if isinstance(node, ast.Call) and called_name(node) in _BY_TEXT:
            for text in texts_in(v for a in node.args for v in constants.get(a, ())):
                path = text.partition(".")[2] if called_name(node) == "get_field" else text
                yield from (f"{module}.{path}" for module in modules)


# Functions that list everything in a module, and functions that read what a text names.
_LISTING = frozenset({"vars", "dir"})
_BY_TEXT = frozenset({"attrgetter", "methodcaller", "get_field", "getattr_static"})
_BY_TEXT |= {"__getattribute__", "__getattr__"}


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _resolved(node: ast.AST, aliases: Aliases) -> list[str]:
    root, dot, rest = dotted_name(node).partition(".")
    return [f"{whole}{dot}{rest}" for whole in aliases.get(root, ())]


def binds_a_root(alias: ast.alias) -> bool:
    """Tell whether an import binds only the top package, as `import torch.utils` does."""
    return "." in alias.name and not alias.asname


def bound_name(alias: ast.alias) -> str:
    """Return the variable that an import binds."""
    return (alias.asname or alias.name).partition(".")[0]
