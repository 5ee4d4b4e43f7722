"""Checks that a lab's notebook has every cell that its tasks need for grading.

The build checks each source and each release against the lab's tasks, because nbgrader silently
accepts most of these faults: wrong points, an unlocked cell, a hidden test that scores another
exercise.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from autograder.authoring.length import length_violations
from autograder.authoring.outline import outline_violations
from autograder.model.state import raises_not_implemented
from autograder.model.task import Lab, Task

__all__ = ["release_violations", "source_violations"]

_GRADE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")  # nbformat's rule for cell ids
_SHOW_NOTHING = {
    "plt.show",
    "print",
    "self_check",
    "show_figure",
}  # these return no value that nbgrader would read as points
_HIDDEN = 'from autograder.grading.stock import score\n\nscore("{task}", globals())'


def source_violations(label: str, notebook: NotebookNode, lab: Lab) -> list[str]:
    """Return a sentence for each mismatch between a source notebook and its lab's tasks.

    Each names `label` (the file) and the cell, and says what was expected and what to do.
    """
    found = [*_notebook_violations(notebook, lab)]
    for index, cell in enumerate(notebook.cells):
        found += [f"cell {_name(cell, index)}: {said}" for said in _cell_violations(cell, lab)]
    for task in lab.tasks:
        found += _exercise_violations(notebook, task)
    found += [*outline_violations(notebook, lab), *length_violations(notebook)]
    return [f"{label}, {said}" for said in found]


def release_violations(label: str, notebook: NotebookNode, lab: Lab) -> list[str]:
    """Return a sentence for each released solution cell that isn't a NotImplementedError stub."""
    cells = _by_grade_id(notebook)
    found = []
    for task in lab.tasks:
        cell = f"{label}, cell {task.id}-solution"
        tree = _parse(cells[f"{task.id}-solution"].source)
        if isinstance(tree, str):
            found.append(
                f"{cell}: with the stub in place of the solution, this is not Python: {tree}. "
                "Put `### BEGIN SOLUTION` where a statement is allowed."
            )
            continue
        for name in task.defines:
            definition = _definition(tree, name)
            if definition is None or not any(map(raises_not_implemented, ast.walk(definition))):
                found.append(
                    f"{cell}: expected {name} in the release to be a stub that raises "
                    "NotImplementedError. Put its `def` line above `### BEGIN SOLUTION`, and its "
                    "body between the markers."
                )
    return found


def _notebook_violations(notebook: NotebookNode, lab: Lab) -> Iterator[str]:
    if notebook.metadata.kernelspec.get("name") != "python3":
        yield (
            "header: expected a kernelspec named python3, which nbgrader runs. "
            "Copy the header of another lab's source."
        )
    ids = Counter(_metadata(cell).get("grade_id") for cell in notebook.cells)
    for grade_id, count in ids.items():
        if grade_id is not None and count > 1:
            yield f"cell {grade_id}: {count} cells have this grade_id. Give each its own."
    known = {task.id for task in lab.tasks}
    for cell in notebook.cells:
        metadata = _metadata(cell)
        by_hand = cell.cell_type == "markdown"
        grade_id = metadata.get("grade_id")
        if metadata.get("points") and not by_hand and grade_id not in known:
            yield (
                f"cell {grade_id}: it gives points, but {lab.name} has no task of this "
                f"id; its tasks are {', '.join(sorted(known))}. Rename the cell, or add the task."
            )


def _cell_violations(cell: NotebookNode, lab: Lab) -> Iterator[str]:
    """Faults of one cell that show without knowing the tasks."""
    if cell.cell_type == "code" and isinstance(tree := _parse(cell.source), str):
        yield f"this is not Python: {tree}"
    metadata = _metadata(cell)
    for marker, role in (("SOLUTION", "solution"), ("HIDDEN TESTS", "grade")):
        begins, ends = (cell.source.count(f"{word} {marker}") for word in ("BEGIN", "END"))
        if begins != ends:
            yield f"expected an END {marker} for each BEGIN {marker}, got {ends} for {begins}."
        if begins and not metadata.get(role):
            yield (
                f"it has a BEGIN {marker}, so expected {role} true in its nbgrader metadata; "
                "without it the region could reach the students. Set it."
            )
    if not metadata:
        return
    grade_id = str(metadata.get("grade_id"))
    if not _GRADE_ID.fullmatch(grade_id) or not grade_id.startswith(f"{lab.number}-"):
        yield (
            f"expected a grade_id that starts with {lab.number}- and has at most 64 letters, "
            "digits, - and _. Rename it."
        )
    if metadata.get("schema_version") != 3:
        yield "expected schema_version 3; nbgrader refuses any other. Set it."
    if metadata.get("locked") is metadata.get("solution"):
        locked = not metadata.get("solution")
        yield (
            f"expected locked {_word(locked)}: cells that students write are unlocked, and all "
            "others are restored before grading. Set it."
        )


def _exercise_violations(notebook: NotebookNode, task: Task) -> Iterator[str]:
    """Faults of the three cells that each task needs: solution, self-check and grade cell."""
    cells = _by_grade_id(notebook)
    roles: dict[str, dict[str, Any]] = {
        f"{task.id}-solution": {"grade": False, "solution": True},
        f"{task.id}-check": {"grade": True, "solution": False, "points": 0},
        task.id: {"grade": True, "solution": False, "points": task.points},
    }
    if not roles.keys() & cells.keys():
        yield (
            f"task {task.id}: expected its code cells {', '.join(roles)}, but there is none. "
            "Add them, or take the task out of its lab."
        )
        return
    places = []
    for grade_id, expected in roles.items():
        cell = cells.get(grade_id)
        if cell is None or cell.cell_type != "code":
            yield f"cell {grade_id}: expected a code cell of this grade_id. Add it."
            continue
        places.append(notebook.cells.index(cell))
        for key, value in expected.items():
            got = _metadata(cell).get(key)
            if got != value:
                yield (
                    f"cell {grade_id}: expected {key} {_word(value)}, but it is {_word(got)}. "
                    "Change it in the cell's nbgrader metadata, or change the task."
                )
        check = {"-solution": _solution_faults, "-check": _check_faults}.get(
            grade_id.removeprefix(task.id), _grade_faults
        )
        yield from (f"cell {grade_id}: {said}" for said in check(cell, task))
    if places != sorted(places):
        order = f"{task.id}-solution, {task.id}-check, {task.id}"
        yield f"cell {task.id}: expected the order {order}. Move it."


def _solution_faults(cell: NotebookNode, task: Task) -> Iterator[str]:
    if _split(cell.source, "SOLUTION") is None:
        yield (
            "expected a region from `### BEGIN SOLUTION` to `### END SOLUTION`; without one, "
            "nbgrader replaces the whole cell, its `def` lines too. Mark the solution."
        )
    tree = _parse(cell.source)
    if isinstance(tree, str):
        return
    for name in task.defines:
        if _definition(tree, name) is None:
            yield (
                f"expected a function or class {name} at the top level, which the task asks for. "
                "Define it, or change the task's `defines`."
            )


def _check_faults(cell: NotebookNode, task: Task) -> Iterator[str]:
    if "raises-exception" not in cell.metadata.get("tags", []):
        yield (
            'expected the tag "raises-exception", because otherwise Run All stops at the first '
            "unsolved exercise. Add it."
        )
    if not cell.source.startswith("# Self-check of "):
        yield (
            "expected its first line to be `# Self-check of <number>, <title>`, because nbgrader's "
            "Validate identifies a failing cell only by its text. Add it."
        )
    tree = _parse(cell.source)
    last = tree.body[-1] if isinstance(tree, ast.Module) and tree.body else None
    if isinstance(last, ast.Expr) and not _shows_nothing(last.value):
        yield (
            "its last line may show a value, which nbgrader takes for points; a value above 0 "
            "makes it fail the whole submission. End with self_check(...), print(...) or an assert."
        )


def _grade_faults(cell: NotebookNode, task: Task) -> Iterator[str]:
    wanted = _HIDDEN.format(task=task.id)
    split = _split(cell.source, "HIDDEN TESTS")
    inside, outside = split or ("", cell.source)
    trees = [_parse(inside), _parse(outside)]
    dumps = [tree if isinstance(tree, str) else ast.dump(tree) for tree in trees]
    if dumps != [ast.dump(ast.parse(wanted)), ast.dump(ast.parse(""))]:
        yield (
            "expected comments, and between `### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS` "
            f"exactly {' '.join(wanted.split())!r}, because nbgrader reads the points from the "
            "value of the cell's last line. Copy these two lines."
        )


def _name(cell: NotebookNode, index: int) -> str:
    first = cell.source.strip().partition("\n")[0]
    return str(_metadata(cell).get("grade_id") or f"number {index + 1} ({first[:40]!r})")


def _metadata(cell: NotebookNode) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = cell.metadata.get("nbgrader", {})
    return metadata


def _by_grade_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    return {_metadata(cell).get("grade_id", ""): cell for cell in notebook.cells}


def _word(value: Any) -> str:
    return f"{value:g}" if type(value) is float else str(value).lower()


def _split(source: str, marker: str) -> tuple[str, str] | None:
    """The text between the lines `BEGIN marker` and `END marker`, and the text outside."""
    inside: list[str] = []
    outside: list[str] = []
    current, found = outside, False
    for line in source.split("\n"):
        if f"BEGIN {marker}" in line:
            current, found = inside, True
        elif f"END {marker}" in line:
            current = outside
        else:
            current.append(line)
    return ("\n".join(inside), "\n".join(outside)) if found else None


def _parse(source: str) -> ast.Module | str:
    """The cell's syntax tree, with magics translated as IPython does; or why it has none."""
    try:
        return ast.parse(TransformerManager().transform_cell(source))
    except (SyntaxError, ValueError) as error:
        return str(error)


def _definition(tree: ast.Module, name: str) -> ast.stmt | None:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return next((s for s in tree.body if isinstance(s, kinds) and s.name == name), None)


def _shows_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _SHOW_NOTHING
