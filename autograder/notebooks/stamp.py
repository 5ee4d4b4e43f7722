"""What a built notebook records of how it was built, so that edits to it are noticed.

The build writes a digest of the cells into the notebook's metadata, which JupyterLab keeps when it
saves. As long as the cells give that digest, nobody edited the notebook; as long as the source
gives it, the source is the one that the notebook was built from. It is one digest of all cells:
it goes out with the release too, and one for each cell would let a short answer be guessed.
Notebooks are nbformat 4's JSON here, plain or as nbformat reads it; grading does without nbformat,
whose import alone takes 0.7 s.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import peakmem
from autograder.model.note import Note

__all__ = [
    "KEPT",
    "content",
    "digest",
    "recorded",
    "release_note",
    "release_version",
    "stated_release",
    "write_record",
]

# The metadata of a cell that a source holds, in its order: see `cell_metadata_filter` in a source.
# The rest says how JupyterLab showed the cell.
KEPT = ("tags", "slideshow", "nbgrader")


def content(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes the cell: type, text, metadata of KEPT, pasted pictures; no outputs."""
    return {
        "cell_type": cell["cell_type"],
        "source": "".join(cell["source"]).rstrip(),  # JSON has it as lines
        "metadata": {key: cell["metadata"][key] for key in KEPT if cell["metadata"].get(key)},
        "attachments": cell.get("attachments") or {},
    }


def digest(notebook: Mapping[str, Any]) -> str:
    """Return the digest of all cells' content, 32 hexadecimal digits."""
    text = json.dumps([content(cell) for cell in notebook["cells"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_record(notebook: Mapping[str, Any]) -> None:
    """Write into the notebook's metadata what it is built as."""
    notebook["metadata"]["peakmem"] = {"built": digest(notebook)}


def recorded(notebook: Mapping[str, Any]) -> str | None:
    """Return the digest that the notebook was built with, or None if it keeps no record."""
    built = notebook["metadata"].get("peakmem", {}).get("built")
    return None if built is None else str(built)


def release_version(notebook: Mapping[str, Any]) -> str:
    """Return which release of its lab a released notebook is, such as 0.1.0+1f2e3d4c.

    The library's version, and the beginning of the digest of the notebook's cells.
    """
    return f"{peakmem.__version__}+{digest(notebook)[:8]}"


def stated_release(submitted: Any) -> str:
    """Return which release a submission says it is of; empty where it names none, or no real one.

    `submitted` is the metadata that its file gives the notebook, whatever that is.
    """
    ours = submitted.get("peakmem") if isinstance(submitted, dict) else None
    stated = ours.get("release") if isinstance(ours, dict) else None
    made_up = not (isinstance(stated, str) and re.fullmatch(r"[0-9.]{1,20}\+[0-9a-f]{8}", stated))
    return "" if made_up else str(stated)


def release_note(submitted: Any, release: Mapping[str, Any]) -> list[Note]:
    """Return a note if a submission says that it comes from another release than this one.

    `submitted` is as in `stated_release`.
    """
    stated = stated_release(submitted)
    present = release_version(release)
    if stated in ("", present):
        return []
    said = f"This notebook is of release {stated}; it was graded as the present one, {present}."
    return [Note("release", said)]
