"""Record: what a built notebook keeps of how it was built, so that edits to it are noticed.

The build writes a digest of the cells into the notebook's metadata, which JupyterLab keeps when it
saves. As long as the cells give that digest, nobody edited the notebook; as long as the source
gives it, the source is the one that the notebook was built from. It is one digest of all cells:
it goes out with the release too, and one for each cell would let a short answer be guessed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from nbformat import NotebookNode

__all__ = ["KEPT", "content", "digest", "recorded", "write_record"]

# The metadata of a cell that a source holds, in its order: see `cell_metadata_filter` in a source.
# The rest says how JupyterLab showed the cell.
KEPT = ("tags", "slideshow", "nbgrader")


def content(cell: NotebookNode) -> dict[str, Any]:
    """Return what makes the cell: type, text, metadata of KEPT, pasted pictures; no outputs."""
    return {
        "cell_type": cell.cell_type,
        "source": cell.source.rstrip(),
        "metadata": {key: cell.metadata[key] for key in KEPT if cell.metadata.get(key)},
        "attachments": cell.get("attachments") or {},
    }


def digest(notebook: NotebookNode) -> str:
    """Return the digest of all cells' content, 32 hexadecimal digits."""
    text = json.dumps([content(cell) for cell in notebook.cells], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_record(notebook: NotebookNode) -> None:
    """Write into the notebook's metadata what it is built as."""
    notebook.metadata["peakmem"] = NotebookNode(built=digest(notebook))


def recorded(notebook: NotebookNode) -> str | None:
    """Return the digest that the notebook was built with; None where it keeps no record."""
    built = notebook.metadata.get("peakmem", {}).get("built")
    return None if built is None else str(built)
