"""Finds changes of the course's own library, whose probes and meter grade exercises.

A changed probe may forge what it counts, for any exercise and from any cell.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from autograder.model.allowed import refused_part
from autograder.model.definitions import nodes_of, statements
from autograder.model.module_names import Aliases, add_assigned, add_imports, used_of_modules

__all__ = ["library_changes"]

_LIBRARY = "peakmem."


def library_changes(sources: Sequence[str], given: Aliases, entries: dict[str, bool]) -> list[str]:
    """Return the parts of the library in which code sets or deletes attributes or items.

    `given` are imported names. Parts that `entries` allow solutions to use don't count.
    """
    every = [statement for source in sources for statement in statements(source)]
    aliases = {name: {*wholes} for name, wholes in given.items()}
    for statement in every:
        add_imports(aliases, nodes_of(statement.node))
    for statement in every:
        add_assigned(aliases, nodes_of(statement.node))
    found: dict[str, None] = {}
    for statement in every:
        nodes = nodes_of(statement.node)
        names = (_changed_names(nodes) | statement.sets) & {*aliases}
        changed = {name: aliases[name] for name in names}
        for name, on_the_way in used_of_modules(nodes, changed, {}):
            part = "" if on_the_way else refused_part(name, entries)
            if part.startswith(_LIBRARY):
                found.setdefault(part)
    return list(found)


def _changed_names(nodes: Sequence[ast.AST]) -> set[str]:
    """The names in whose objects something is set or deleted, as `p` in `vars(p)["x"] = 1`."""
    targets = [
        node.value
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
    ]
    inner = (node for target in targets for node in ast.walk(target))
    return {node.id for node in inner if isinstance(node, ast.Name)}
