"""Finds changes of the course's own library, whose probes and meter grade exercises.

A changed probe may forge what it counts, for any exercise and from any cell.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from autograder.model.allowed import refused_part
from autograder.model.definitions import Statement, nodes_of, statements
from autograder.model.module_names import Aliases, add_assigned, add_imports, used_of_modules

__all__ = ["changed_parts"]

_LIBRARY = "peakmem."


def changed_parts(sources: Sequence[str], given: Aliases, entries: dict[str, bool]) -> list[str]:
    """Return the parts of the library in which code sets or deletes attributes or items.

    `given` are names that the lab's own cells import, until a student's cell sets them. Parts that
    `entries` allow solutions to use don't count.
    """
    every = [statement for source in sources for statement in statements(source)]
    students = _aliases_in({}, every)
    rebound: set[str] = set()
    found: dict[str, None] = {}
    for statement in every:
        nodes = nodes_of(statement.node)
        of_labs = {name: wholes for name, wholes in given.items() if name not in rebound}
        rebound |= statement.rebinds
        everywhere = _merged(of_labs, students)
        # Local variables stand for modules only if the statement itself makes them do so.
        known = {name: everywhere[name] for name in statement.takes & everywhere.keys()}
        aliases = _aliases_in(known, [statement])
        changed = {n: aliases[n] for n in (_changed_names(nodes) | statement.sets) & {*aliases}}
        for name, on_the_way in used_of_modules(nodes, changed, {}):
            part = "" if on_the_way else refused_part(name, entries)
            if part.startswith(_LIBRARY):
                found.setdefault(part)
    return list(found)


def _aliases_in(known: Aliases, found_in: Sequence[Statement]) -> Aliases:
    """The names in `known`, and those that the statements import or set to something in modules."""
    aliases = _merged(known, {})
    for statement in found_in:
        add_imports(aliases, nodes_of(statement.node))
    for statement in found_in:
        add_assigned(aliases, nodes_of(statement.node))
    return aliases


def _merged(some: Aliases, others: Aliases) -> Aliases:
    names = some.keys() | others.keys()
    return {name: some.get(name, set()) | others.get(name, set()) for name in names}


def _changed_names(nodes: Sequence[ast.AST]) -> set[str]:
    """The names in whose objects something is set or deleted, as `p` in `vars(p)["x"] = 1`."""
    targets = [
        node.value
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
    ]
    inner = (node for target in targets for node in ast.walk(target))
    return {node.id for node in inner if isinstance(node, ast.Name)}
