"""A lab's first cell: it names the device, hides answers, installs missing packages."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import peakmem
from autograder.content import find_lab
from peakmem.labs.session import HIDDEN_MODULES, Refusal, lift_refusals, refusals_lifted


def test_the_device_line_says_that_apples_gpu_is_not_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for here, words in [(True, "; Apple's GPU is not used)"), (False, "(no CUDA GPU here)")]:
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda here=here: here)
        peakmem.lab("lab05_accumulation")
        assert words in capsys.readouterr().out


@pytest.mark.parametrize("name", HIDDEN_MODULES)
def test_exercises_marked_gpu_are_named_only_in_labs_that_have_one(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    tasks = find_lab(name).tasks  # before its modules are hidden
    needs_gpu = any(task.needs_gpu for task in tasks)
    peakmem.lab(name)
    said = "Exercises marked GPU are left out of your total." in capsys.readouterr().out
    assert said == needs_gpu


def test_a_block_may_import_what_the_notebook_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal("lab01_formats", ["json.tool"])
    monkeypatch.setattr(sys, "meta_path", [refusal, *sys.meta_path])
    monkeypatch.delitem(sys.modules, "json.tool", raising=False)
    with pytest.raises(ImportError, match="holds answers of lab01_formats"):
        importlib.import_module("json.tool")
    with refusals_lifted() as lifted:
        importlib.import_module("json.tool")
    assert lifted == [refusal]
    assert sys.meta_path[0] is refusal
    assert lift_refusals() == [refusal]
    assert lift_refusals() == []


@pytest.fixture
def first_lines(repository: Path) -> str:
    """The part of lab 1's first cell before it needs the course."""
    notebook = json.loads(
        (repository / "labs/lab01_formats/lab01_formats.ipynb").read_text("utf-8")
    )
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    before, found, _ = "".join(cell["source"]).partition("import numpy")
    assert found
    return before


def test_lab_1_installs_nothing_where_the_course_is_there(
    first_lines: str, installs: list[list[str]]
) -> None:
    exec(first_lines, {})
    assert installs == []


def test_lab_1_installs_the_wheel_beside_it_where_the_course_is_missing(
    first_lines: str,
    installs: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "peakmem" else find(n))
    with pytest.raises(AssertionError, match="Upload the file peakmem-"):
        exec(first_lines, {})
    (tmp_path / "peakmem-0.1.0-py3-none-any.whl").touch()
    exec(first_lines, {})
    assert [command[1:] for command in installs] == [
        ["-m", "pip", "install", "--quiet", "peakmem-0.1.0-py3-none-any.whl"]
    ]


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that the cell would have run."""
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command))
    return commands
