"""Records in a built notebook what it was built from, to detect edits.

The build writes a digest of the cells into the notebook's metadata, which JupyterLab keeps when it
saves. As long as the cells match the digest, the notebook is unedited; as long as the source
matches it, the notebook is up to date. There is a single digest of all cells because the release
contains it too, and a digest of each cell would let students guess short answers. Notebooks are
nbformat 4 JSON here, as plain dicts or as nbformat reads them: grading avoids nbformat, whose
import takes 0.7 s.
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

# The cell metadata that a source keeps, in order; see `cell_metadata_filter` in a source. All other
# metadata is JupyterLab's display state.
KEPT = ("tags", "slideshow", "nbgrader")


def content(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell's type, text, metadata of KEPT and pasted pictures, without outputs."""
    return {
        "cell_type": cell["cell_type"],
        "source": "".join(cell["source"]).rstrip(),  # JSON may have a list of lines
        "metadata": {key: cell["metadata"][key] for key in KEPT if cell["metadata"].get(key)},
        "attachments": cell.get("attachments") or {},
    }


def digest(notebook: Mapping[str, Any]) -> str:
    """Return the digest of all cells' content, 32 hexadecimal digits."""
    text = json.dumps([content(cell) for cell in notebook["cells"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_record(notebook: Mapping[str, Any]) -> None:
    """Write the digest of its cells into the notebook's metadata."""
    notebook["metadata"]["peakmem"] = {"built": digest(notebook)}


def recorded(notebook: Mapping[str, Any]) -> str | None:
    """Return the digest that the notebook was built with; None if it has no record."""
    built = notebook["metadata"].get("peakmem", {}).get("built")
    return None if built is None else str(built)


def release_version(notebook: Mapping[str, Any]) -> str:
    """Return a released notebook's version, such as 0.1.0+1f2e3d4c.

    It consists of the library's version and the start of the digest of the notebook's cells.
    """
    return f"{peakmem.__version__}+{digest(notebook)[:8]}"


def stated_release(submitted: Any) -> str:
    """Return the release version that a submission names; empty if it names no valid one.

    `submitted` is the notebook's metadata as stored in its file, which may be of any type.
    """
    ours = submitted.get("peakmem") if isinstance(submitted, dict) else None
    stated = ours.get("release") if isinstance(ours, dict) else None
    made_up = not (isinstance(stated, str) and re.fullmatch(r"[0-9.]{1,20}\+[0-9a-f]{8}", stated))
    return "" if made_up else str(stated)


def release_note(submitted: Any, release: Mapping[str, Any]) -> list[Note]:
    """Return a note if a submission names a different release from this one.

    `submitted` is as in `stated_release`.
    """
    stated = stated_release(submitted)
    present = release_version(release)
    if stated in ("", present):
        return []
    said = (
        f"This notebook comes from release {stated}; it was graded as the current release, "
        f"{present}."
    )
    return [Note("release", said)]
