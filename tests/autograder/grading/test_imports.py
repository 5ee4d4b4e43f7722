"""Unused given imports are left out of a run; others are imported beforehand."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from autograder.base.limits import Limits
from autograder.grading.imports import (
    WITHOUT_TORCH,
    heavy_imports,
    modules_of,
    needed,
    needs_torch,
    probe_sources,
)
from autograder.grading.registry import find_lab
from autograder.model.submission import RunCell
from autograder.model.task import Lab
from autograder.notebooks.intake import take_in
from autograder.notebooks.questions import COURSE
from autograder.sandbox.host.sandbox import Sandbox

SETUP = """\
import os; import sys
import numpy as np
import torch
from torch import nn

CHOSEN = np.pi

def helper(x):
    return nn.Linear(x, x)

def demonstration():
    return torch.ones(helper(2))
"""


def run(*sources: str, setup: str = SETUP, names: tuple[str, ...] = ()) -> str:
    """The remaining setup cell, given these student's cells."""
    cells = [RunCell(0, setup, "given")]
    cells += [RunCell(number, source, "own") for number, source in enumerate(sources, 1)]
    found = needed(cells, names)
    assert [cell.source for cell in found[1:]] == list(sources)
    return found[0].source


def left(source: str) -> list[str]:
    return [line.split("(")[0] for line in source.splitlines() if line and line[0] != " "]


ALWAYS = ["import os; import sys", "import numpy as np", "CHOSEN = np.pi"]


def test_what_nothing_uses_goes_and_lines_keep_their_numbers() -> None:
    found = run("def answer(x): return x + 1")
    assert left(found) == ALWAYS
    assert found.splitlines().index("CHOSEN = np.pi") == SETUP.splitlines().index("CHOSEN = np.pi")


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("def answer(x): return torch.tensor(x)", ["import torch"]),
        ("helper(3)", ["from torch import nn", "def helper"]),
        (
            "demonstration()",
            ["import torch", "from torch import nn", "def helper", "def demonstration"],
        ),
        ("torch = torch", ["import torch"]),
        ("%timeit torch.ones(3)", ["import torch"]),
        ("this is not Python, but it names torch", ["import torch"]),
    ],
)
def test_what_a_cell_uses_stays_and_all_that_it_rests_on(source: str, more: list[str]) -> None:
    assert sorted(left(run(source))) == sorted([*ALWAYS, *more])


def test_a_name_that_the_probe_asks_for_stays() -> None:
    assert "def helper" in left(run(names=("helper",)))


@pytest.mark.parametrize("source", ["globals()['torch']", "eval('torch.ones(1)')"])
def test_where_names_are_not_to_be_seen_all_stays(source: str) -> None:
    assert run(source) == SETUP


def test_a_solution_put_in_for_another_exercise_is_no_setup() -> None:
    cells = [RunCell(0, SETUP, "given"), RunCell(1, "def f(): return torch", "given", "lab01-f")]
    found = needed(cells)
    assert "import torch" in found[0].source
    assert found[1] == cells[1]


def test_only_what_may_be_imported_before_a_fork_is() -> None:
    sources = ["import os, torch.nn as nn", "def f():\n    from numpy import linalg", "import zmq"]
    assert modules_of(sources) == ("torch.nn", "numpy", "numpy.linalg")


@pytest.mark.parametrize(
    ("module", "needs"),
    [
        ("torch", True),
        ("torch.nn", True),
        ("peakmem.meter", True),
        ("peakmem", False),
        ("peakmem.units.both", False),
        ("peakmem.labs.session.score", False),
        ("peakmem.labs.lab01.rounded", True),
        ("peakmem.probes.lab01", True),
        ("peakmem.probes.lab02", True),
        ("numpy.linalg", False),
    ],
)
def test_what_loads_torch_is_known(module: str, needs: bool) -> None:
    assert needs_torch([module]) == needs


def loads_torch(modules: tuple[str, ...]) -> bool:
    code = (
        "import importlib, pkgutil, sys\n"
        f"for name in {modules!r}:\n"
        "    path = getattr(importlib.import_module(name), '__path__', [])\n"
        "    for part in pkgutil.walk_packages(path, name + '.'):\n"
        "        importlib.import_module(part.name)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout == "True\n"


def test_what_is_said_to_load_no_torch_loads_none() -> None:
    assert not loads_torch(WITHOUT_TORCH)
    assert loads_torch(("peakmem.meter",))


@pytest.mark.parametrize("name", ["lab01_formats", "lab02_sizing"])
def test_of_the_first_labs_solutions_that_of_the_leak_needs_torch(name: str) -> None:
    lab = find_lab(name)
    raw = (COURSE.root / "solutions" / name / f"{name}.ipynb").read_bytes()
    release = (COURSE.root / "labs" / name / f"{name}.ipynb").read_bytes()
    assert b"import torch" in release, "else there is nothing to leave out"
    cells = take_in("ada", name, raw, lab._release).cells  # type: ignore[attr-defined]
    assert needs_torch(modules_of(cell.source for cell in cells))
    assert needs_torch(modules_of(cell.source for cell in needed(cells)))
    leak, shared = f"{name[:5]}-find_the_leak", f"peakmem.labs.{name[:5]}"
    others = [cell for cell in cells if cell.task != leak]
    assert len(others) < len(cells)
    modules = modules_of(cell.source for cell in needed(others))
    assert not needs_torch(module for module in modules if not module.startswith(shared))


def test_a_lab_says_what_its_tasks_do_before_they_are_loaded() -> None:
    for name in ("lab01_formats", "lab03_adam", "lab05_accumulation"):
        known = find_lab(name)
        loaded: Lab = known.lab  # type: ignore[attr-defined]
        assert known.measured == any(task.trust == "measured" for task in loaded.tasks)
        assert known.hides == loaded.hides


@pytest.mark.parametrize(
    ("module", "code", "compiler"),
    [
        ("numpy", "x = torch.optim", None),
        ("torch", "x = torch.ones(2)", False),
        ("torch", "step = torch.optim.Adam([x])", True),
        ("torch", "y = checkpoint(f, x)", True),
        ("torch", "torch.distributed.broadcast(x, 0)", True),
        ("peakmem.probes.lab03", "def step(optimizer: torch.optim.Optimizer): ...", False),
    ],
)
def test_what_takes_long_is_imported_before_if_the_code_needs_it(
    module: str, code: str, compiler: bool | None
) -> None:
    found = heavy_imports([module], [code])
    assert ("torch" in found) == (compiler is not None)
    assert ("torch._dynamo" in found) == bool(compiler)


def test_the_larger_set_of_imports_has_the_smaller_one() -> None:
    smaller, larger = (heavy_imports(["torch"], [code]) for code in ("", "torch.optim"))
    assert set(smaller) < set(larger)


def test_probes_are_read_from_a_module_or_a_folder() -> None:
    assert len(probe_sources("lab01")) == 1
    assert len(probe_sources("lab03")) > 1


def test_right_answers_to_the_first_labs_are_judged_without_torch() -> None:
    code = (
        "import sys; import numpy as np; from autograder.content import find_task\n"
        "from autograder.content.lab01.find_the_leak import report_of_halves\n"
        "from autograder.content.lab02.find_the_leak import report_of_losses\n"
        "from autograder.model.judge import judge; from autograder.model.task import Answer\n"
        "for lab, report in {'lab01': report_of_halves, 'lab02': report_of_losses}.items():\n"
        "    task = find_task(f'{lab}-find_the_leak')\n"
        "    cases = task.cases(np.random.default_rng(0))\n"
        "    more = {'rise_bytes': 0, 'numpy_rise_bytes': 0}\n"
        "    answers = [Answer({'results': report(**c.inputs), **more}) for c in cases]\n"
        "    print(judge(task, cases, answers).points)\n"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["2", "2", "False"]


@pytest.mark.sandbox
def test_a_sandbox_without_torch_has_none_until_a_cell_imports_it() -> None:
    there = "import sys; print('torch' in sys.modules)"
    with Sandbox(preload=("peakmem.units", "peakmem.labs.session"), measured=False) as light:
        assert not light.has_gpu
        with light.open() as student:
            assert student.run_cell(there)[0]["text"] == "False\n"
            assert student.run_cell("import torch")[:1] == []
            assert student.run_cell(there)[0]["text"] == "True\n"


@pytest.mark.sandbox
def test_torchs_libraries_take_no_addresses_of_a_cells_memory() -> None:
    """CUDA's take gigabytes, which a cell that imports torch late would lack."""
    # Little more than what becomes resident: less than the libraries, of either build.
    memory_bytes = (256 if torch.version.cuda is None else 640) * 2**20
    limits = Limits(memory_bytes=memory_bytes)
    with Sandbox(preload=(), measured=False, limits=limits) as light, light.open() as student:
        assert student.run_cell("import torch")[:1] == []


@pytest.mark.sandbox
def test_a_figure_is_shown_inline_whether_or_not_matplotlib_was_there_before() -> None:
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    for preload in ((), ("matplotlib.pyplot",)):
        with Sandbox(preload=preload, measured=False) as box, box.open() as student:
            shown = student.run_cell(draw)[-1]
            assert shown["output_type"] == "display_data"
            assert "image/png" in shown["data"]
