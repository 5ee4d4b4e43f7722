"""A lecture as a still page: its text, without a script, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from peakmem.show.widgets.still_page import main, still, still_page

LECTURES = Path(__file__).resolve().parents[4] / "lectures"
VIEW = "application/vnd.jupyter.widget-view+json"


def notebook(source: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])


def test_controls_are_text_and_hidden_ones_are_left_out() -> None:
    page = still_page(notebook("from peakmem.show.widgets import memory\nmemory(predict=True)"))
    assert "model: <b>gpt2</b>" in page
    assert "Adam on the host: <b>no</b>" in page
    assert "d_model: <b>" not in page, "a control of the own shape, which is not chosen"
    assert "peak, in backward" in page, "what waits for a guess is shown"
    assert "What fits on rtx3090-24gb, by batch and sequence" in page, "what comes later is there"
    assert "Look for cheap changes" not in page, "nothing to press"
    assert "<script" not in page


def test_formulas_are_shown_without_a_script() -> None:
    text = nbformat.v4.new_markdown_cell(r"$N/K$ and $K = \sqrt{N}$, but $\frac{1}{2}$")
    (cell,) = still(nbformat.v4.new_notebook(cells=[text])).cells
    square_root = "\N{SQUARE ROOT}"
    assert cell.source.startswith(f"<i>N</i>/<i>K</i> and <i>K</i> = {square_root}<i>N</i>, but ")
    assert cell.source.endswith(r"$\frac{1}{2}$"), "a command that HTML can't replace"
    for path in sorted(LECTURES.glob("*.ipynb")):
        lecture = still(nbformat.read(path, as_version=4))
        shown = [cell.source for cell in lecture.cells if cell.cell_type == "markdown"]
        assert not [source for source in shown if "$" in source], path.name


def test_the_notebook_that_was_given_stays_as_it_was() -> None:
    given = notebook("1 + 1")
    still_page(given)
    assert given.cells[0].outputs == []
    assert len(given.cells) == 1


def test_a_view_without_its_state_is_refused() -> None:
    given = notebook("w")
    output = nbformat.v4.new_output("display_data", {VIEW: {"model_id": "gone"}})
    given.cells[0].outputs = [output]
    with pytest.raises(ValueError, match="execute it with store_widget_state"):
        still(given)


def test_the_command_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nbformat.write(notebook("print('seen')"), tmp_path / "one.ipynb")
    assert main([str(tmp_path / "one.ipynb"), str(tmp_path / "one.html")]) == 0
    assert "seen" in (tmp_path / "one.html").read_text(encoding="utf-8")
    assert main([]) == 2
    assert "usage: " in capsys.readouterr().err
