"""Parses a notebook file's bytes into cells, within bounds of memory and time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from autograder.base.limits import PICTURE_BYTES
from autograder.base.plural import plural
from autograder.model.note import Note
from autograder.model.submission import Quarantine

__all__ = ["MAX_FILE_BYTES", "Cell", "Kind", "parse_notebook"]

MAX_FILE_BYTES = 20 * 2**20  # it may take four times as much memory
# Small lists and dicts take most of parsed JSON's memory, about 200 bytes each.
_MAX_CONTAINERS = 400_000
_MAX_CELLS = 2_000
# Characters of all cells together, as in JSON. Some characters cost a thousand bytes in Python's
# syntax tree. The labs' solved notebooks have up to 70,000.
_MAX_SOURCE = 200_000

_CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TAG = re.compile(r"[^,\s]{1,60}")
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # SVG can hold scripts
_OTHER_FILES = {
    b"PK\x03\x04": "a zip archive",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"<": "a web page",
}

Kind = Literal["code", "markdown", "raw"]


@dataclass(frozen=True)
class Cell:
    """The part of a notebook's cell that the grader uses; the rest of the file is dropped."""

    #: The type of cell.
    kind: Kind
    #: Its text.
    source: str
    #: nbformat's id, if any.
    id: str | None = None
    #: nbgrader's id, if any.
    grade_id: str | None = None
    #: Its tags.
    tags: tuple[str, ...] = ()
    #: Images pasted into a text cell: name -> {MIME type: base64}.
    attachments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def parse_notebook(raw: bytes) -> tuple[list[Cell], list[Note], Any]:
    """Return the notebook's cells, notes about its oddities, and its metadata.

    Reads nbformat 4 and 3, and normalises every line end to a newline. Returns the metadata as
    found, whatever its type. Raises Quarantine, saying what the file is instead, if it isn't a
    notebook.
    """
    if not raw.strip():
        raise Quarantine("The file is empty.")
    text, notes = _decode(raw)
    notebook = _read_json(raw, text)
    cells = []
    for number, entry in enumerate(_cell_list(notebook), start=1):
        cell = _cell(entry)
        if cell is None:
            said = f"Entry {number} of the file isn't a valid cell and was left out."
            notes.append(Note("repair", said))
        else:
            cells.append(cell)
    if sum(len(json.dumps(cell.source)) for cell in cells) > _MAX_SOURCE:
        raise Quarantine(
            f"The notebook's cells contain over {_MAX_SOURCE:,} characters; answers need far "
            "fewer. Remove the data that was pasted into a cell."
        )
    return _bound_images(cells, notes), notes, notebook.get("metadata")


def _decode(raw: bytes) -> tuple[str, list[Note]]:
    encoding: str = json.detect_encoding(raw)
    if encoding == "utf-8" and raw.startswith(b"\xef\xbb\xbf"):
        encoding = "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        encoding, text = "latin-1", raw.decode("latin-1")
    if encoding.startswith("utf-8"):
        return text, []
    said = f"The file isn't in UTF-8; it was read as {encoding.upper()}."
    return text, [Note("repair", said)]


def _read_json(raw: bytes, text: str) -> dict[str, Any]:
    if text.count("{") + text.count("[") > _MAX_CONTAINERS:
        raise Quarantine(
            "The file's structure is far larger than a notebook's. If it is one, clear its "
            "outputs and submit it again."
        )
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise Quarantine("The file is nested more deeply than any notebook.") from None
    except ValueError as error:
        kinds = (kind for magic, kind in _OTHER_FILES.items() if raw.lstrip().startswith(magic))
        what = next(kinds, "")
        found = f"it is {what}" if what else f"it isn't JSON ({error})"
        raise Quarantine(f"The file isn't a notebook: {found}.") from None
    if not isinstance(notebook, dict):
        raise Quarantine("The file is JSON, but not a notebook.")
    return notebook


def _cell_list(notebook: Mapping[str, Any]) -> list[Any]:
    version = notebook.get("nbformat")
    if version == 4:
        cells = notebook.get("cells")
    elif version == 3:
        cells = _cells_of_version_3(notebook.get("worksheets"))
    elif "cells" in notebook or "nbformat" in notebook:
        found = str(version)[:20] if isinstance(version, int) else "no known version"
        raise Quarantine(
            f"The notebook has nbformat {found}; expected 4 or 3. "
            "Open it in JupyterLab and save it again."
        )
    else:
        raise Quarantine("The file is JSON, but not a notebook.")
    if not isinstance(cells, list):
        raise Quarantine("The notebook is damaged: it has no list of cells.")
    if len(cells) > _MAX_CELLS:
        raise Quarantine(f"The notebook has {len(cells):,} cells; expected at most {_MAX_CELLS:,}.")
    return cells


def _cells_of_version_3(worksheets: Any) -> list[Any] | None:
    if not isinstance(worksheets, list):
        return None
    cells: list[Any] = []
    for sheet in worksheets:
        entries = sheet.get("cells") if isinstance(sheet, dict) else None
        cells += entries if isinstance(entries, list) else []
    return [_from_version_3(cell) if isinstance(cell, dict) else cell for cell in cells]


def _from_version_3(cell: Mapping[str, Any]) -> dict[str, Any]:
    if cell.get("cell_type") == "code":
        return {**cell, "source": cell.get("input")}
    source = _text(cell.get("source"))
    if cell.get("cell_type") == "heading" and source is not None:
        level = cell.get("level")
        marks = "#" * level if type(level) is int and 1 <= level <= 6 else "#"
        return {**cell, "cell_type": "markdown", "source": f"{marks} {source}"}
    return dict(cell)


def _cell(entry: Any) -> Cell | None:
    if not isinstance(entry, dict):
        return None
    kind, source = entry.get("cell_type"), _text(entry.get("source"))
    if source is None or kind not in ("code", "markdown", "raw"):
        return None
    metadata = _mapping(entry.get("metadata"))
    cell_id, grade_id = entry.get("id"), _mapping(metadata.get("nbgrader")).get("grade_id")
    return Cell(
        kind=kind,
        source=source,
        id=cell_id if isinstance(cell_id, str) and _CELL_ID.fullmatch(cell_id) else None,
        grade_id=grade_id if isinstance(grade_id, str) else None,
        tags=_tags(metadata.get("tags")),
        attachments=dict(_images(entry.get("attachments"))) if kind == "markdown" else {},
    )


def _text(value: Any) -> str | None:
    """The text of an nbformat string, which may be a list of lines; None for anything else."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    if not isinstance(value, str):
        return None
    text: str = value
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        text.encode()
    except UnicodeEncodeError:  # unpaired surrogates can't be written to a file
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _tags(value: Any) -> tuple[str, ...]:
    entries = value[:20] if isinstance(value, list) else []
    tags = [tag for tag in map(_text, entries) if tag is not None and _TAG.fullmatch(tag)]
    return tuple(dict.fromkeys(tags))


def _images(value: Any) -> Iterator[tuple[str, Mapping[str, str]]]:
    for name, bodies in list(_mapping(value).items())[:50]:
        for mime, body in _mapping(bodies).items():
            text = _text(body)
            if mime in _IMAGES and text and re.fullmatch(r"[A-Za-z0-9+/=\s]*", text):
                yield _text(name[:200]) or "", {mime: text}
                break


def _bound_images(cells: list[Cell], notes: list[Note]) -> list[Cell]:
    left, dropped, kept = PICTURE_BYTES, 0, []
    for cell in cells:
        size = sum(len(b) for bodies in cell.attachments.values() for b in bodies.values())
        left -= size
        if size and left < 0:
            cell = replace(cell, attachments={})
            dropped += 1
        kept.append(cell)
    if dropped:
        said = (
            f"The pictures of {plural(dropped, 'cell')} were left out: all pictures together "
            f"may take at most {PICTURE_BYTES / 2**20:g} MiB."
        )
        notes.append(Note("repair", said))
    return kept
