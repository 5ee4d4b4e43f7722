"""No part of the library that a lab can import answers one of its exercises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from autograder.content import find_lab, find_task, lab_names, lab_of
from autograder.model.task import Task
from peakmem.labs.session import HIDDEN_MODULES
from tests.autograder.answer_search import answers_to, public_names

REPOSITORY = Path(__file__).parents[2]

# Measured exercises time torch's work on tensors, or need a GPU; the search compares plain values.
TASKS = [task for name in lab_names() for task in find_lab(name).tasks if task.trust == "value"]

# Functions that answer an exercise nevertheless, with the reason.
TAUGHT: dict[str, set[str]] = {}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_nothing_that_can_be_imported_answers_it(task: Task) -> None:
    assert answers_to(task, lab_of(task.id)) == TAUGHT.get(task.id, set())


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("lab01-decode_fp32", "peakmem.numbers.formats.decode"),
        ("lab01-encode_fp32", "peakmem.numbers.formats.encode"),
    ],
)
def test_what_answers_an_exercise_is_found_where_it_is_not_hidden(task: str, name: str) -> None:
    assert name in answers_to(find_task(task), lab_of(task), hides=())


def test_what_a_labs_solutions_may_use_is_searched_too() -> None:
    name = "peakmem.labs.lab06.simulate_plan"
    assert name in public_names((), find_lab("lab06_swap").allows)
    assert name not in public_names(())


def test_what_imports_a_hidden_module_cannot_be_imported() -> None:
    names = public_names(["peakmem.specs.recipes"])
    assert "peakmem.specs.recipes.state_shapes" not in names
    assert "peakmem.predict.estimate.estimate" not in names
    assert "peakmem.measure.reference_models.training_step" in names


@pytest.mark.parametrize("lab", HIDDEN_MODULES)
def test_a_labs_own_cells_import_nothing_that_is_hidden(lab: str) -> None:
    hidden = HIDDEN_MODULES[lab]
    there = {name.rpartition(".")[0] for name in public_names(hidden)}
    gone = {name.rpartition(".")[0] for name in public_names(())} - there
    notebook = json.loads((REPOSITORY / "labs" / lab / f"{lab}.ipynb").read_text("utf-8"))
    code = "".join("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code")
    used = set(re.findall(r"peakmem(?:\.\w+)+", code))
    used |= {place for name in used for place in _behind(name)}
    assert used.isdisjoint(gone)


def _behind(name: str) -> list[str]:
    """The module that a students' name of one stands for."""
    file = REPOSITORY / "src" / f"{name.replace('.', '/')}.py"
    text = file.read_text("utf-8") if file.exists() else ""
    return re.findall(r"(?m)^from (\S+) import \*", text)
