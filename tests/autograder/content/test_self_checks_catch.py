"""Self-checks refuse the bank's wrong answers, except for a few named ones."""

from __future__ import annotations

import ast
import contextlib
import io
import warnings
from functools import cache
from typing import Any

import matplotlib
import pytest
import torch

from autograder.content import find_lab, find_task, lab_names
from autograder.trials.answer_bank import read_bank
from autograder.trials.entry import Entry
from tests.answers import BANK
from tests.grading import cell_of, solved

pytestmark = pytest.mark.slow

#: Wrong answers that self-checks miss, and why.
PASSES = {
    # Lab 1
    "lab01-decode_fp32/wrong_buffer_of_a_square_root": "it is right; the grader sees its float32",
    "lab01-decode_fp32/wrong_by_map": "it is right; the grader sees its float32",
    "lab01-decode_fp32/wrong_caught": "it is right; the grader sees its float32",
    "lab01-decode_fp32/wrong_code_inf": "it is right; the grader sees struct's code f",
    "lab01-decode_fp32/wrong_code_from_a_text": "it is right; the grader sees struct's code f",
    "lab01-decode_fp32/wrong_record_of_both": "it is right; the grader sees its float32",
    "lab01-decode_e4m3/wrong_numpy_does_it": "it is right; the grader sees its float16",
    # Lab 2
    # Lab 3
    "lab03-adam_step/wrong_torch_optim": "it computes right; the grader sees torch.optim",
    "lab03-lean_adam_step/wrong_fused_by_data": "it is right; the grader sees torch's operator",
    "lab03-lean_adam_step/wrong_hidden_in_globals": "of numpy's memory, the peak alone is metered",
    "lab03-lean_adam_step/wrong_in_a_thread": "the meter sees one thread; the kernel sees all",
    # Lab 4
    "lab04-checkpoint/wrong_torchs_own": "it is right; the grader sees torch's checkpoint",
    "lab04-run_in_segments/wrong_torchs_own": "it is right; the grader sees torch's checkpoint",
    "lab04-checkpoint/wrong_torchs_own_by_data": "it is right; the grader sees torch's checkpoint",
    "lab04-run_in_segments/wrong_torchs_own_by_data": "it is right; the grader sees torch's own",
    # Lab 5
    # Lab 6
    "lab06-offloaded_adam/wrong_last_one_kept_in_numpy": "of numpy's memory, the peak is metered",
    # Lab 7
    # Lab 8
    "lab08-ring_all_reduce/wrong_library_by_data": "it sums right; the grader sees the operator",
    "lab08-data_parallel/wrong_torchs_own_by_data": "it is right; the grader sees torch's wrapper",
    # Lab 9
    "lab09-adam8bit/wrong_other_defaults": "only the grader runs it again with them written out",
    # Lab 10
    "lab10-tiled_attention/wrong_torchs_own": "it is right; the grader sees torch's attention",
    "lab10-tiled_attention/wrong_torchs_own_by_data": "it is right; the grader sees the operator",
}
ENTRIES = [
    pytest.param(lab, entry, id=entry.label)
    for lab in lab_names()
    for entry in read_bank(BANK, find_lab(lab))
    if not find_task(entry.task).needs_gpu
]


@cache
def _names(lab: str) -> dict[str, Any]:
    """What a solved lab's cells define; of demos and self-checks only `_defines` parts are run."""
    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": "notebook"}
    tasks = {task.id for task in find_lab(lab).tasks}
    for cell in solved(lab)["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] != "code" or marks.get("grade_id") in tasks:
            continue
        tree = ast.parse("".join(cell["source"]))
        if "raises-exception" in cell["metadata"].get("tags", []):
            tree.body = [part for part in tree.body if _defines(part, marks["grade_id"])]
        exec(compile(tree, "<cell>", "exec", dont_inherit=True), names)
    return names


def _defines(part: ast.stmt, grade_id: str) -> bool:
    """Whether a statement imports, or defines a function or a class, or a constant of a demo."""
    if isinstance(part, ast.Assign) and not grade_id.endswith("-check"):
        return all(ast.unparse(target).isupper() for target in part.targets)
    return isinstance(part, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef))


def _passes(lab: str, entry: Entry) -> bool:
    names = dict(_names(lab))
    source = "".join(cell_of(solved(lab), f"{entry.task}-check")["source"])
    try:
        # An answer may leave gradients switched off, or use what is deprecated.
        with (
            torch.enable_grad(),
            warnings.catch_warnings(action="ignore"),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            for cell in (entry.source, source):  # not with this module's future annotations
                exec(compile(cell, "<cell>", "exec", dont_inherit=True), names)
    except Exception:  # an answer may raise anything
        return False
    return True


@pytest.mark.parametrize(("lab", "entry"), ENTRIES)
def test_right_answers_pass_and_wrong_ones_do_not(lab: str, entry: Entry) -> None:
    assert _passes(lab, entry) == (entry.kind == "right" or entry.label in PASSES)
