"""Parts of the GPU run: each measures something on a device, and states the bounds.

A part is a function that takes the device and returns figures. To add one, write the function, and
give it a row in `PARTS` with a name and its time limit in seconds.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.accuracy import measure
from benchmarks.context import context
from benchmarks.figures import Figure, NotRun
from benchmarks.grid import configurations, quick
from benchmarks.peaks import Row
from benchmarks.plans import measure_plans, planning_seconds
from benchmarks.speeds import copy_overlap, fp8_product, host_bandwidth, products
from benchmarks.steps import checkpointing, precisions

__all__ = ["PARTS", "Part"]

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Part:
    """A measurement: `run(device)` returns its figures, or raises NotRun; `seconds` it may take."""

    name: str
    run: Callable[[torch.device], list[Figure]]
    seconds: int


def gpu_tests(device: torch.device) -> list[Figure]:
    """Run the tests marked gpu, except those in files that need more than torch."""
    if device.type != "cuda":
        raise NotRun("the marked tests need CUDA")
    tests = _ROOT / "tests"
    files = [path for path in tests.rglob("test_*.py") if "mark.gpu" in path.read_text("utf-8")]
    if not files:
        raise NotRun("no test is marked gpu")
    options = ["--noconftest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "-W", "default"]
    command = [sys.executable, "-m", "pytest", *options, *map(str, files)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    count = {
        word: sum(int(n) for n in re.findall(rf"(\d+) {word}", done.stdout))
        for word in ("passed", "failed", "error")
    }
    return [
        Figure("passed", count["passed"], "tests", least=1),
        Figure("failed", count["failed"] + count["error"], "tests", most=0),
    ]


def accuracy(device: torch.device) -> list[Figure]:
    """Compare predictions with the bytes that tensors requested and the allocator gave."""
    with warnings.catch_warnings(action="ignore"):
        cases = configurations(large=True) if device.type == "cuda" else quick()
        rows = [measure(case, device) for case in cases]
    every = tuple(asdict(row) for row in rows)
    figures = [Figure("configurations", len(rows), "", least=1, detail=every)]
    for who in ("build_ledger", "trace"):
        errors = [abs(row.errors()[who]) for row in rows if who in row.errors()]
        bound = 0.5 if device.type == "cuda" else None
        figures.append(Figure(f"{who}, worst, of requested", 100 * max(errors), "%", most=bound))
        of_allocated = [abs(error) for row in rows if (error := _of_allocated(row, who))]
        if of_allocated:
            worst = 100 * max(of_allocated)
            figures.append(Figure(f"{who}, worst, of allocated", worst, "%", most=2.0))
    return figures


def _of_allocated(row: Row, who: str) -> float | None:
    """The error relative to max_memory_allocated, if that is above 1 GiB."""
    predicted = {"build_ledger": row.predicted_bytes, "trace": row.traced_bytes}[who]
    if predicted is None or row.allocated_bytes is None or row.allocated_bytes < 2**30:
        return None
    return predicted / row.allocated_bytes - 1


def labs(device: torch.device) -> list[Figure]:
    """Run each lab's solution from its source and grade it, in a separate process."""
    figures = []
    for source in sorted((_ROOT / "solutions").glob("lab*.py")):
        command = [sys.executable, "-m", "benchmarks.labs", str(source)]
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        found = re.search(r"(\d+) cells failed; ([\d.]+) of ([\d.]+) points", done.stdout)
        if found is None:
            raise RuntimeError(f"{source.stem}: {done.stderr.strip()[-200:]}")
        failed, points, total = map(float, found.groups())
        figures.append(Figure(f"{source.stem}, cells failed", failed, "cells", most=0))
        figures.append(Figure(f"{source.stem}, points", points, "points", least=total))
    return figures


def plans(device: torch.device) -> list[Figure]:
    """Run plans of a chain's training step: their peaks, times and overlap beside predictions."""
    figures = [Figure("planning 350 stages", planning_seconds(), "s", most=10.0)]
    most = 1.15 if device.type == "cuda" else None  # file copies don't overlap with compute
    for row in measure_plans(device):
        peak = row.peak_bytes / row.predicted_peak_bytes
        figures.append(Figure(f"{row.name}, peak", peak, "of predicted", 0.98, 1.02))
        figures.append(Figure(f"{row.name}, predicted", row.predicted_seconds, "s"))
        figures.append(Figure(f"{row.name}, real", row.seconds, "s"))
        if row.copies:
            figures.append(Figure(f"{row.name}, overlap", row.overlap, "x", most=most))
    return figures


PARTS = (
    Part("tests marked gpu", gpu_tests, 60),
    Part("context of a process", context, 20),
    Part("accuracy of predictions", accuracy, 160),
    Part("products", products, 15),
    Part("products in fp8", fp8_product, 5),
    Part("copies to the host", host_bandwidth, 10),
    Part("copies beside compute", copy_overlap, 10),
    Part("precisions of a step", precisions, 25),
    Part("checkpointing", checkpointing, 25),
    Part("plans", plans, 30),
    Part("labs", labs, 240),  # last: it loads the processor, the others load the GPU
)
