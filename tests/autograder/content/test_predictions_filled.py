"""No cell of a solved notebook fails once a student has filled in every prediction."""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.content import lab_names
from tests.grading import solved

pytestmark = pytest.mark.slow

# `predicted_name = None  # your prediction, a number`: a cell may have several such lines.
_PREDICTION = re.compile(r"^(predicted_\w+ = )None(  # your prediction(.*))$", re.MULTILINE)


def filled_in(source: str) -> str:
    """A cell with a prediction of the kind that each line's comment asks for."""
    return _PREDICTION.sub(lambda m: m[1] + _value(m[3]) + m[2], source)


def _value(asked: str) -> str:
    if example := re.search(r"such as (.+)$", asked):
        return example[1]
    if quoted := re.search(r'"[^"]*"', asked):
        return quoted[0]
    if parts := re.search(r"\((.+,.+)\)", asked):
        return repr((1,) * len(parts[1].split(",")))
    return '"some words"' if "in words" in asked or "one of" in asked else "1"


def test_a_prediction_is_of_the_kind_that_its_comment_asks_for():
    asked = {
        "a number": "1",
        "between 0 and 1": "1",
        '"swap" or "recompute"': '"swap"',
        "such as 0b10000001": "0b10000001",
        "(after put, after del, after get)": "(1, 1, 1)",
        "in words": '"some words"',
    }
    for comment, value in asked.items():
        line = f"  # your prediction, {comment}"
        assert filled_in(f"predicted_a = None{line}\n") == f"predicted_a = {value}{line}\n"


@pytest.mark.parametrize("name", lab_names())
def test_no_cell_fails_once_all_predictions_are_filled_in(name: str, tmp_path: Path) -> None:
    notebook = nbformat.from_dict(solved(name))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = filled_in(cell.source)
            assert not re.search(r"^predicted_\w+ = None", cell.source, re.MULTILINE), cell.source
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(tmp_path)}},
    )
    # A kernel of its own: a module that another test has loaded would hide a missing import.
    client.execute(env=environment)
    failed = {
        cell.id: f"{output.ename}: {output.evalue}"
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    }
    assert failed == {}
