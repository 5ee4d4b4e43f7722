"""Makes one-change variants of a solution cell: the slips that students make.

The maintained libraries don't fit. mutmut and cosmic-ray rewrite the files of a package and run its
test command for each mutant. Here the code is a notebook's cell, the test is a task's judge outside
the process that runs the code, and hundreds of cells go through one running sandbox. Nor do those
libraries know torch's slips (`mul_` for `mul`, a lost `detach()`, no `no_grad`). The remaining
work, to list changes of a syntax tree, is done here and in `slips` with the standard library's
`ast`.

A mutant's id consists of its task, the line, and the change, with a number if one line has the same
change twice. So it stays the same while other lines are edited.

Some parts aren't mutated, because no grade depends on them: docstrings, annotations, messages of
exceptions, the order of `max`'s and `min`'s arguments, and `strict=True`, which only checks an
assumption.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.trials.slips import Change, is_idle, shown, slips_at

__all__ = ["Mutant", "mutants_of"]


@dataclass(frozen=True)
class Mutant:
    """A task's solution cell with one change."""

    #: Its id.
    id: str
    #: The id of its task.
    task: str
    #: The changed line, without its comment.
    line: str
    #: The change, as `before -> after`.
    change: str
    #: The changed cell.
    source: str


@dataclass(frozen=True)
class _Slot:
    """A node of a syntax tree and its place there."""

    #: The node that holds it.
    parent: ast.AST
    #: The field of `parent` that holds it.
    field: str
    #: Its index in that field, if the field is a list.
    index: int | None
    #: The node.
    node: ast.AST

    def holding(self, new: ast.AST | list[ast.stmt], whole: ast.Module) -> str:
        """Return the source of `whole` with `new` in this place; the tree stays unchanged."""
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
            change = what or f"{shown(slot.node)} -> {shown(new)}"
            name = f"{task}: {line}: {change}"
            numbers[name] += 1
            number = f" ({numbers[name]})" if numbers[name] > 1 else ""
            found.append(
                Mutant(id=f"{name}{number}", task=task, line=line, change=change, source=text)
            )
    return found


def _line_number(node: ast.AST) -> int:
    """The first line of a node or of its parts, since a comprehension has none of its own."""
    return next((n.lineno for n in ast.walk(node) if hasattr(n, "lineno")), 1)


def _compiles(text: str) -> bool:
    try:
        compile(text, "<mutant>", "exec")
    except (SyntaxError, ValueError):  # such as `break` outside of a loop
        return False
    return True


def _bound_names(tree: ast.AST) -> frozenset[str]:
    """The names that the cell itself binds; the other names it uses are mostly modules."""
    nodes = list(ast.walk(tree))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(stored | {n.arg for n in nodes if isinstance(n, ast.arg)})


def _slots(tree: ast.AST) -> Iterator[_Slot]:
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "ctx"):
            continue
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or is_idle(node):
                continue
            yield _Slot(tree, field, index if isinstance(value, list) else None, node)
            if not isinstance(node, (ast.Raise, ast.JoinedStr)):
                yield from _slots(node)


def _changes(slot: _Slot, bound: frozenset[str]) -> Iterator[Change]:
    node = slot.node
    if isinstance(node, ast.stmt):
        if not (isinstance(slot.parent, ast.Module) or isinstance(node, ast.Pass)):
            yield "delete it", []
    elif slot.field == "decorator_list":
        yield f"without @{shown(node)}", []
    yield from slips_at(node, bound)
