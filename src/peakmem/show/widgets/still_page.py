"""Turns a lecture into one still HTML page with its calculators' last state; needs no network.

    python -m peakmem.show.widgets.still_page lectures/lecture1_memory.ipynb lecture1.html

The cells run once. Then static HTML replaces each calculator: the values of its controls as text,
and its text and pictures. Results hidden behind a question are shown, because a still page can't
take guesses.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

__all__ = ["main", "still", "still_page"]

_VIEW = "application/vnd.jupyter.widget-view+json"
_STATE = "application/vnd.jupyter.widget-state+json"
_REFERENCE = "IPY_MODEL_"
_AT_ONCE = "from peakmem.show.widgets.calculator import Calculator; Calculator.at_once = True"
_HIDDEN = ("ButtonModel", "FileUploadModel", "PlayModel")  # nothing to press in a still page
_FORMULA = re.compile(r"\$([^$\n]+)\$")
_FIELD = 'style="display:inline-block;margin:2px 16px 2px 0;font-size:16px"'

State = dict[str, Any]


def still(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return an executed notebook with its widgets turned into HTML.

    Raises ValueError if the notebook has a widget's view but not its state.

    >>> cell = nbformat.v4.new_code_cell()
    >>> still(nbformat.v4.new_notebook(cells=[cell])).cells[0].outputs
    []
    """
    copy: nbformat.NotebookNode = nbformat.from_dict(dict(notebook))
    models = copy.metadata.pop("widgets", {}).get(_STATE, {}).get("state", {})
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            cell.source = _FORMULA.sub(_formula, cell.source)
        for output in cell.get("outputs", []):
            view = output.get("data", {}).get(_VIEW)
            if view is None:
                continue
            if view["model_id"] not in models:
                raise ValueError(
                    f"cell {cell.id} shows a widget whose state is not in the notebook; "
                    "execute it with store_widget_state"
                )
            output["data"] = {"text/html": _html(view["model_id"], models)}
    return copy


def still_page(notebook: nbformat.NotebookNode) -> str:
    """Run a notebook, and return it as a page that loads nothing and runs no scripts."""
    executed = nbformat.from_dict(dict(notebook))
    executed.cells.insert(0, nbformat.v4.new_code_cell(_AT_ONCE))
    # A busy machine's outputs may come late: by default they would be left out after 4 s.
    client = NotebookClient(executed, store_widget_state=True, timeout=600, iopub_timeout=600)
    client.execute()
    del executed.cells[0]
    exporter = HTMLExporter(exclude_input=True, exclude_input_prompt=True)
    exporter.exclude_output_prompt = True
    page, _ = exporter.from_notebook_node(still(executed))
    # The remaining scripts render formulas and diagrams, and would load from the network.
    return re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)


def _formula(found: re.Match[str]) -> str:
    """Return a formula as HTML, since a still page has no script that renders LaTeX."""
    text = re.sub(r"\\sqrt\{(\w+)\}", "\N{SQUARE ROOT}\\1", found[1])
    if "\\" in text:
        return found[0]  # a command that HTML can't replace
    return re.sub("[A-Za-z]+", r"<i>\g<0></i>", text)


def _html(model_id: str, models: dict[str, State]) -> str:
    """Return a widget and its children as HTML."""
    state = models[model_id]["state"]
    name = models[model_id]["model_name"]
    if name in _HIDDEN or (_is_hidden(state, models) and name != "VBoxModel"):
        return ""
    if "children" in state:
        inner = [_html(child.removeprefix(_REFERENCE), models) for child in state["children"]]
        return f'<div style="max-width:820px">{"".join(inner)}</div>'
    if name == "HTMLModel":
        return str(state.get("value", ""))
    return _field(state)


def _is_hidden(state: State, models: dict[str, State]) -> bool:
    layout = models.get(str(state.get("layout", "")).removeprefix(_REFERENCE), {})
    return bool(layout.get("state", {}).get("display") == "none")


def _field(state: State) -> str:
    """Return a control's label and value; empty for a field without a label, such as a guess."""
    label = state.get("description", "")
    if not label:
        return ""
    options, index = state.get("_options_labels"), state.get("index")
    value = options[index] if options and index is not None else state.get("value", "")
    if isinstance(value, bool):
        value = "yes" if value else "no"
    return f"<span {_FIELD}>{escape(label)}: <b>{escape(str(value))}</b></span>"


def main(arguments: list[str]) -> int:
    """Write the page of one notebook; return 0, or 2 with a sentence for wrong arguments."""
    if len(arguments) != 2:
        print("usage: python -m peakmem.show.widgets.still_page NOTEBOOK HTML", file=sys.stderr)
        return 2
    notebook = nbformat.read(arguments[0], as_version=4)
    Path(arguments[1]).write_text(still_page(notebook), encoding="utf-8")
    print(f"Wrote {arguments[1]}, which needs no network.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
