"""The GPU run without a GPU: parts that don't run are reported, and never count as passed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import gpu
from benchmarks.context import context
from benchmarks.figures import Figure, NotRun, Outcome
from benchmarks.gpu import run_parts, status, table
from benchmarks.labs import cells
from benchmarks.parts import PARTS, Part
from benchmarks.pictures import draw_figures
from benchmarks.speeds import copy_overlap, fp8_product, host_bandwidth, products
from benchmarks.steps import checkpointing, precisions
from course import GPU_NEEDS

CPU = torch.device("cpu")


def part(*figures: Figure) -> Part:
    return Part("a part", lambda _: list(figures), 1)


def fails(device: torch.device) -> list[Figure]:
    raise RuntimeError("the device\nis gone")


def not_here(device: torch.device) -> list[Figure]:
    raise NotRun("not for a CPU")


def test_a_dry_run_lists_the_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:26].strip() for line in lines] == [part.name for part in PARTS]


def test_without_a_gpu_nothing_is_run_and_nothing_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main(["--out", str(tmp_path)]) == 2
    said = capsys.readouterr().out
    assert said.count("not run  this machine has no CUDA GPU") == len(PARTS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([part(Figure("x", 1.0, "", most=1.0))], 0),
        ([part(Figure("x", 1.1, "", most=1.0))], 1),
        ([part(Figure("x", 0.9, "", least=1.0))], 1),
        ([part(), Part("fails", fails, 1)], 1),
        ([part(), Part("not here", not_here, 1)], 2),
        ([part(), Part("too long", not_here, 1000)], 2),
        ([part(Figure("x", 2.0, "", most=1.0)), Part("not here", not_here, 1)], 1),
    ],
)
def test_the_exit_status(parts: list[Part], expected: int) -> None:
    assert status(run_parts(parts, CPU, 100)) == expected


def test_the_table_says_what_became_of_each_part() -> None:
    parts = [
        part(Figure("error", 3.0, "%", most=2.0), Figure("rate", 5.0, "GB/s")),
        Part("fails", fails, 1),
        Part("too long", not_here, 1000),
    ]
    lines = table(run_parts(parts, CPU, 100)).splitlines()
    assert lines[1].split() == ["a", "part", "run", "error:", "3", "%", "<=", "2", "BROKEN"]
    assert lines[2].split() == ["a", "part", "run", "rate:", "5", "GB/s"]
    assert "failed   RuntimeError: the device" in lines[3]
    assert "not run  it is given 1000 s" in lines[4]


def test_parts_run_on_a_cpu_with_tiny_sizes(tmp_path: Path) -> None:
    figures = [*products(CPU), *precisions(CPU), *checkpointing(CPU)]
    assert all(figure.value > 0 for figure in figures)
    draw_figures([Outcome("speed", "run", tuple(figures))], tmp_path / "speed.png")
    assert (tmp_path / "speed.png").exists()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose Python finds what `course.py gpu` asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    hidden = sorted(_packages() - _packages_of(GPU_NEEDS) - {"peakmem", "autograder", "benchmarks"})
    (folder / "sitecustomize.py").write_text(_HIDE.format(hidden=hidden), encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(folder)}


_HIDE = """
import importlib.util, sys
_hidden = frozenset({hidden})

class Hider:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in _hidden:
            raise ModuleNotFoundError(name + " is hidden", name=name)

_find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] in _hidden else _find_spec(name, package)
)
sys.meta_path.insert(0, Hider)
"""


def _packages() -> set[str]:
    return set(packages_distributions())


def _packages_of(projects: Iterable[str]) -> set[str]:
    """What can be imported after these projects and all that they require were installed."""
    left, found = list(projects), set()
    while left:
        name = canonicalize_name(left.pop())
        if name not in found:
            found.add(name)
            left += _required(name)
    return {
        package
        for package, owners in packages_distributions().items()
        if any(canonicalize_name(owner) in found for owner in owners)
    }


def _required(name: str) -> list[str]:
    try:
        needs = [Requirement(need) for need in requires(name) or ()]
    except PackageNotFoundError:  # for another system or Python
        return []
    return [need.name for need in needs if need.marker is None or need.marker.evaluate()]


@pytest.mark.parametrize("lab", ["lab01_formats", "lab06_swap"])
def test_a_lab_is_run_from_its_source_and_graded(
    lab: str, repository: Path, bare: dict[str, str]
) -> None:
    """Lab 1 draws figures, which a notebook would show; lab 6 has sliders."""
    command = [sys.executable, "-m", "benchmarks.labs", f"solutions/{lab}.py"]
    done = subprocess.run(
        command, cwd=repository, env=bare, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 cells failed; " in done.stdout


def test_a_lab_that_fails_is_seen(tmp_path: Path, repository: Path) -> None:
    lab = tmp_path / "lab99.py"
    lab.write_text("# %% [markdown]\n# Text\n\n# %%\nx = 1\n\n# %%\nassert x == 2\n")
    assert [body.strip() for _, body in cells(lab.read_text())] == ["x = 1", "assert x == 2"]
    command = [sys.executable, "-m", "benchmarks.labs", str(lab)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "1 cells failed; 0 of 0 points." in done.stdout


def test_nothing_is_needed_that_the_command_does_not_ask_for(
    repository: Path, bare: dict[str, str]
) -> None:
    def runs(program: str) -> bool:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, cwd=repository, env=bare, check=False).returncode == 0

    assert runs("import benchmarks.gpu, benchmarks.labs, autograder.content.lab07")
    assert not runs("import nh3"), "nothing is hidden"


def test_a_part_is_taken_anew_beside_the_recorded_others(tmp_path: Path) -> None:
    old = [Outcome(name, "run", (Figure("x", 1.0, "s"),)) for name in ("plans", "products")]
    gpu._write(old, tmp_path, "A GPU")
    rows = ({"name": "a", "bytes": 1},)
    new = [Outcome("plans", "run", (Figure("x", 2.0, "s", most=3.0, detail=rows),))]
    gpu._write(new, tmp_path, "A GPU")
    kept = gpu._beside([], tmp_path / "a-gpu.json")
    assert kept == [old[1], new[0]]


def test_parts_of_another_torch_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu._write([Outcome("plans", "run", (Figure("x", 1.0, "s"),))], tmp_path, "A GPU")
    monkeypatch.setattr(torch, "__version__", "1.0")
    assert gpu._beside([], tmp_path / "a-gpu.json") == []


def test_a_part_that_there_is_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu.main(["--only", "plans", "speed"])
    assert "no part is named speed; --dry-run lists them" in capsys.readouterr().err


@pytest.mark.parametrize("part", [context, fp8_product, host_bandwidth, copy_overlap])
def test_what_needs_a_gpu_says_so(part) -> None:
    with pytest.raises(NotRun):
        part(CPU)


def test_checkpointing_is_measured_and_its_bound_can_break() -> None:
    figures = {figure.name: figure for figure in checkpointing(CPU)}
    ratio = figures["peak of full over keep all"]
    assert ratio.held
    assert ratio.value < 1 < figures["keep all, peak"].value / figures["full, peak"].value
    assert not Figure(ratio.name, 1.0, "x", most=ratio.most).held


def test_the_parts_fit_into_the_time_of_all() -> None:
    assert sum(part.seconds for part in PARTS) <= 600
