"""Carries an instructor's edits of a built notebook back into the lab's source.

Points, cell types and texts are easiest to change in JupyterLab, with nbgrader's Create Assignment
panel. `autograder build --pull LAB` writes the current cells of `solutions/<lab>/<lab>.ipynb` into
`solutions/<lab>.py`, and builds again. Unchanged cells keep their exact text in the source. It is
all or nothing: if the new source wouldn't build, or the source has also changed since the build,
nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder.authoring.build import BuildError, build, find_sources, is_self_check, read_source
from autograder.base.course import Course
from autograder.notebooks.stamp import KEPT, content, digest, recorded

__all__ = ["pull"]

_CELL_STARTS = re.compile(r"^(?=# ?%%(?:\s|$))", re.MULTILINE)


def pull(course: Course, lab: str) -> list[str]:
    """Carry edits of the built notebook of `lab` into its source; return a sentence for each.

    Afterwards everything is built, and `check` has no complaints. Outputs and execution counts are
    dropped. Without edits nothing is written.

    Raises BuildError, having changed nothing, if both the source and the notebook were changed
    since the build, if the source can't hold an edit, or if the result doesn't build. Raises
    ValueError if there is no such lab or no built notebook of it.
    """
    (source,) = find_sources(course, [lab])
    path = course.solved_notebook(lab)
    label = course.name_of(path)
    if not path.is_file():
        return []
    notebook = nbformat.read(path, as_version=4)
    text = source.read_text(encoding="utf-8")
    number = lab.partition("_")[0]
    old = read_source(text, number)
    if digest(notebook) in (digest(old), recorded(notebook)):
        return []
    changes = list(_changes(old.cells, notebook.cells))
    if digest(old) != recorded(notebook):
        raise BuildError([_both_changed(label, course.name_of(source), notebook), *changes])
    _write(source, _carry(text, old, notebook, label))
    try:
        build(course, [lab])
    except BaseException as error:
        _write(source, text)
        if isinstance(error, BuildError):
            remedy = f"Nothing was written. Correct {label}, save it, and pull again."
            raise BuildError([*error.violations, remedy]) from None
        raise
    return changes


def _write(source: Path, text: str) -> None:
    source.write_text(text, encoding="utf-8", newline="\n")


def _both_changed(label: str, source: str, notebook: NotebookNode) -> str:
    why = f"{source} was changed since the build too"
    if recorded(notebook) is None:
        why = "it has no record of the source that it was built from"
    return (
        f"{label} was edited, but {why}, so pulling could undo changes in the source. Move the "
        f"notebook elsewhere, run `autograder build {Path(label).stem}`, make your edits in the "
        "new one, and pull. From the source to the notebook, these cells differ:"
    )


def _carry(text: str, old: NotebookNode, notebook: NotebookNode, label: str) -> str:
    """The source `text`, which parses as `old`, with its cells replaced by those of `notebook`."""
    twins = {cell.id: cell for cell in old.cells}
    cells = []
    for cell in notebook.cells:
        twin = twins.get(cell.id)
        if twin is None or content(twin) != content(cell):
            cells.append(_as_in_sources(cell, twin))
        else:
            cells.append(twin)
    written = jupytext.reads(text, fmt="py:percent")
    written.cells = cells
    new = _keep_unchanged(text, old.cells, jupytext.writes(written, fmt="py:percent"), cells)
    _require_same(read_source(new, ""), notebook, label)
    return new


def _as_in_sources(cell: NotebookNode, twin: NotebookNode | None) -> NotebookNode:
    """A changed cell with the metadata that sources keep, in the order of the old cell's."""
    order = list(twin.metadata) if twin is not None else []
    kept = content(cell)["metadata"]
    if twin is not None and "jupyter" in order and not is_self_check(twin):
        kept["jupyter"] = twin.metadata["jupyter"]  # the source collapses this cell
    metadata = {key: kept[key] for key in dict.fromkeys([*order, *KEPT]) if key in kept}
    return NotebookNode(
        cell_type=cell.cell_type, source=cell.source.rstrip(), metadata=NotebookNode(metadata)
    )


def _keep_unchanged(
    text: str, before: Sequence[NotebookNode], canonical: str, after: Sequence[NotebookNode]
) -> str:
    """`canonical`, jupytext's text of the cells `after`, with unchanged cells' text from `text`.

    Jupytext writes only one style, but a source may have its own blank lines and order of keys.
    """
    head, *old_chunks = _CELL_STARTS.split(text)
    _, *chunks = _CELL_STARTS.split(canonical)
    if (len(old_chunks), len(chunks)) != (len(before), len(after)):
        return canonical  # a cell contains something like the start of a cell
    places = {id(cell): place for place, cell in enumerate(before)}
    new = head
    for index, (cell, chunk) in enumerate(zip(after, chunks, strict=True)):
        place = places.get(id(cell))
        if place is not None:
            kept = old_chunks[place]
            if after[index + 1 : index + 2] == before[place + 1 : place + 2]:
                chunk = kept
            else:  # the blank lines at a cell's end depend on the next cell
                chunk = kept.rstrip("\n") + chunk[len(chunk.rstrip("\n")) :]
        new += chunk
    return new


def _require_same(read: NotebookNode, notebook: NotebookNode, label: str) -> None:
    """Raise BuildError unless the new source parses as the notebook's cells, with nothing lost."""
    got, wanted = ([content(cell) for cell in nb.cells] for nb in (read, notebook))
    if got == wanted:
        return
    place = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), -1)
    raise BuildError(
        [
            f"{label}, cell {_name(notebook.cells[place])}: a percent source can't hold it as it "
            "is. Link a picture's file instead of pasting the picture, and start no line of code "
            "with `# %%`. Nothing was written."
        ]
    )


def _changes(before: Sequence[NotebookNode], after: Sequence[NotebookNode]) -> Iterator[str]:
    """A sentence for each cell that was added, deleted, moved or edited."""
    old_ids, new_ids = ([cell.id for cell in cells] for cells in (before, after))
    twins = dict(zip(old_ids, before, strict=True))
    for cell in before:
        if cell.id not in new_ids:
            yield f"{_name(cell)}: deleted"
    kept = [i for i in old_ids if i in new_ids], [i for i in new_ids if i in twins]
    matches = SequenceMatcher(None, kept[0], kept[1], autojunk=False).get_matching_blocks()
    in_place = {kept[0][m.a + i] for m in matches for i in range(m.size)}
    for above, cell in zip([None, *after], after, strict=False):
        where = f"after {_name(above)}" if above is not None else "at the top"
        if cell.id not in twins:
            yield f"{_name(cell)}: new {cell.cell_type} cell, {where}"
            continue
        said = [] if cell.id in in_place else [f"moved, now {where}"]
        said += _differences(content(twins[cell.id]), content(cell))
        if said:
            yield f"{_name(twins[cell.id])}: {'; '.join(said)}"


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    if old["cell_type"] != new["cell_type"]:
        yield f"{old['cell_type']} -> {new['cell_type']}"
    roles = [both["metadata"].get("nbgrader", {}) for both in (old, new)]
    for key in sorted(roles[0].keys() | roles[1].keys()):
        if roles[0].get(key) != roles[1].get(key):
            yield f"{key} {_word(roles[0].get(key))} -> {_word(roles[1].get(key))}"
    for key in ("tags", "slideshow"):
        was, now = (both["metadata"].get(key) for both in (old, new))
        if was != now:
            yield f"{key} {_word(was)} -> {_word(now)}"
    if old["source"] != new["source"]:
        lines = [both["source"].splitlines() for both in (old, new)]
        steps = SequenceMatcher(None, lines[0], lines[1], autojunk=False).get_opcodes()
        edits = [step for step in steps if step[0] != "equal"]
        removed, added = sum(s[2] - s[1] for s in edits), sum(s[4] - s[3] for s in edits)
        yield f"text -{removed} +{added} lines"
    if old["attachments"] != new["attachments"]:
        yield "pasted pictures"


def _name(cell: NotebookNode) -> str:
    """The cell's grade_id, or else its first words."""
    grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
    first = next(iter(cell.source.strip().splitlines()), "")
    return str(grade_id or repr(first if len(first) <= 40 else first[:39] + "…"))


def _word(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
