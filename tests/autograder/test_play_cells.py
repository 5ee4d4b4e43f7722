"""Each lab's interactive cell outputs a widget, in a kernel like the students'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow  # a kernel that imports torch, for each lab

SOLUTIONS = Path(__file__).parents[2] / "solutions"
WIDGET = "application/vnd.jupyter.widget-view+json"
PLAY_CELLS = {
    "lab01_formats": "lab01-bit_flipper",
    "lab02_sizing": "lab02-sliders",
    "lab03_adam": "lab03-calculator",
    "lab04_checkpointing": "lab04-sliders",
    "lab05_accumulation": "lab05-calculator",
    "lab06_swap": "lab06-sliders",
    "lab07_mixed_precision": "lab07-slider",
    "lab08_shards": "lab08-sliders",
    "lab10_attention": "lab10-sliders",
}


@pytest.mark.parametrize(("lab", "name"), PLAY_CELLS.items())
def test_the_play_cell_shows_a_widget(lab: str, name: str, tmp_path: Path) -> None:
    outputs = _outputs_of(lab, name, tmp_path)
    assert [o["evalue"] for o in outputs if o["output_type"] == "error"] == []
    assert [o for o in outputs if WIDGET in o.get("data", {})], outputs


def _outputs_of(lab: str, name: str, folder: Path) -> list[dict[str, Any]]:
    """Run what is defined above the cell `name`, the student's functions solved, and that cell."""
    notebook = nbformat.read(SOLUTIONS / lab / f"{lab}.ipynb", as_version=4)
    number = [cell.id for cell in notebook.cells].index(name)
    *above, play = notebook.cells[: number + 1]
    notebook.cells = [*filter(_defines, above), play]
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    outputs: list[dict[str, Any]] = play.outputs
    return outputs


def _defines(cell: Any) -> bool:
    """Tell whether a cell is code that checks, grades and shows nothing."""
    if cell.cell_type != "code" or "raises-exception" in cell.metadata.get("tags", []):
        return False
    return not cell.metadata.get("nbgrader", {}).get("grade", False)
