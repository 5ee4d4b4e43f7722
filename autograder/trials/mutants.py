"""Makes a solution cell's one-change variants: the slips a student makes.

The kept libraries do not fit. mutmut and cosmic-ray rewrite the files of a package and run its test
command once a mutant; here the code is a notebook's cell, the tests are a task's judge outside of
the process that runs it, and hundreds of cells go through a sandbox that stays up. Their operators
know nothing of torch either (`mul_` for `mul`, a lost `detach()`, no `no_grad`). What is left is to
list the changes of a syntax tree, which the standard library's `ast` does here and in `slips`.

A mutant's id is made of its task, the line, and the change, with a number where one line has the
same change twice. So it stays the same while other lines are edited.

Not mutated, since nothing that is graded depends on it: docstrings, annotations, messages of
exceptions, the order of what `max` and `min` compare, and `strict=True`, which only checks an
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
    """A task's solution cell with one change.

    `line` is the line it is on, without its comment; `change` says what it was and what it became.
    """

    id: str
    task: str
    line: str
    change: str
    source: str


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
            change = what or f"{shown(slot.node)} -> {shown(new)}"
            name = f"{task}: {line}: {change}"
            numbers[name] += 1
            number = f" ({numbers[name]})" if numbers[name] > 1 else ""
            found.append(Mutant(f"{name}{number}", task, line, change, text))
    return found


def _line_number(node: ast.AST) -> int:
    """The first line of a node, or of what it is made of: a comprehension has none of its own."""
    return next((n.lineno for n in ast.walk(node) if hasattr(n, "lineno")), 1)


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
