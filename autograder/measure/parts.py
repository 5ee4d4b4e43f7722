"""Parts of the GPU run: each measures something on a device and says what the bounds are.

A part is a function of the device that returns figures. `PARTS` is the registry: to add one, write
the function, and give it a row with a name and the seconds it is given.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from autograder.measure.accuracy import Row, measure
from autograder.measure.grid import configurations, quick
from autograder.measure.plans import measure_plans, planning_seconds
from peakmem.models import ModelShape
from peakmem.nn import GPT, training_step

__all__ = ["PARTS", "Figure", "NotRun", "Part"]

_ROOT = Path(__file__).resolve().parents[2]


class NotRun(Exception):
    """Why a part could not be run here; that is no failure and no success."""


@dataclass(frozen=True)
class Figure:
    """A number with its unit, and the bounds that it has to keep, where there are any."""

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def held(self) -> bool:
        """Whether the value is within its bounds."""
        too_small = self.least is not None and self.value < self.least
        return not too_small and (self.most is None or self.value <= self.most)

    @property
    def bound(self) -> str:
        """The bounds in words; "" where there are none."""
        words = [f">= {self.least:g}"] if self.least is not None else []
        return ", ".join(words + ([f"<= {self.most:g}"] if self.most is not None else []))


@dataclass(frozen=True)
class Part:
    """A measurement: `run(device)` returns its figures, or raises NotRun; `seconds` it may take."""

    name: str
    run: Callable[[torch.device], list[Figure]]
    seconds: int


def gpu_tests(device: torch.device) -> list[Figure]:
    """Run the tests that are marked gpu, without those of files that need more than torch."""
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
    """Compare predictions with what tensors asked for and with what the allocator gave."""
    with warnings.catch_warnings(action="ignore"):
        cases = configurations(large=True) if device.type == "cuda" else quick()
        rows = [measure(case, device) for case in cases]
    figures = [Figure("configurations", len(rows), "", least=1)]
    for who in ("build_ledger", "trace"):
        errors = [abs(row.errors()[who]) for row in rows if who in row.errors()]
        bound = 2.0 if device.type == "cuda" else None
        figures.append(Figure(f"{who}, worst, of requested", 100 * max(errors), "%", most=bound))
        of_allocated = [abs(error) for row in rows if (error := _of_allocated(row, who))]
        if of_allocated:
            worst = 100 * max(of_allocated)
            figures.append(Figure(f"{who}, worst, of allocated", worst, "%", most=3.0))
    return figures


def _of_allocated(row: Row, who: str) -> float | None:
    """The error against max_memory_allocated, where that is above 1 GiB."""
    predicted = {"build_ledger": row.predicted_bytes, "trace": row.traced_bytes}[who]
    if predicted is None or row.allocated_bytes is None or row.allocated_bytes < 2**30:
        return None
    return predicted / row.allocated_bytes - 1


def labs(device: torch.device) -> list[Figure]:
    """Run each lab's solution from its source and grade it, in a process of its own."""
    figures = []
    for source in sorted((_ROOT / "solutions").glob("lab*.py")):
        command = [sys.executable, "-m", "autograder.measure.labs", str(source)]
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        found = re.search(r"(\d+) cells failed; ([\d.]+) of ([\d.]+) points", done.stdout)
        if found is None:
            raise RuntimeError(f"{source.stem}: {done.stderr.strip()[-200:]}")
        failed, points, total = map(float, found.groups())
        figures.append(Figure(f"{source.stem}, cells failed", failed, "cells", most=0))
        figures.append(Figure(f"{source.stem}, points", points, "points", least=total))
    return figures


def matmul_speed(device: torch.device) -> list[Figure]:
    """Time square products in each format, and read their peak memory."""
    on_gpu = device.type == "cuda"
    n = 8192 if on_gpu else 256
    figures = []
    for name, dtype, tf32 in _FORMATS if on_gpu else _FORMATS[:1]:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
        seconds = _seconds(lambda a=a, b=b: a @ b, device)  # type: ignore[misc]
        figures.append(Figure(f"{name}, {n}x{n}", 2 * n**3 / seconds / 1e12, "TFLOP/s"))
    torch.backends.cuda.matmul.allow_tf32 = False
    rates = {figure.name.split(",")[0]: figure.value for figure in figures}
    if on_gpu:  # what a GPU since 2020 does at the least
        figures.append(Figure("bf16 over fp32", rates["bf16"] / rates["fp32"], "x", least=1.5))
    return figures


_FORMATS = (
    ("fp32", torch.float32, False),
    ("tf32", torch.float32, True),
    ("fp16", torch.float16, False),
    ("bf16", torch.bfloat16, False),
)


def host_bandwidth(device: torch.device) -> list[Figure]:
    """Time copies from the host and back, out of pinned and pageable memory."""
    if device.type != "cuda":
        raise NotRun("there is no link from the host to itself")
    n_bytes = 2**28
    there = torch.empty(n_bytes, dtype=torch.uint8, device=device)
    rates = {}
    for kind in ("pinned", "pageable"):
        host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=kind == "pinned")
        rates[f"{kind}, to the GPU"] = _rate(lambda h=host: there.copy_(h), n_bytes, device)  # type: ignore[misc]
        rates[f"{kind}, to the host"] = _rate(lambda h=host: h.copy_(there), n_bytes, device)  # type: ignore[misc]
    figures = [Figure(name, rate, "GB/s") for name, rate in rates.items()]
    ratio = rates["pinned, to the GPU"] / rates["pageable, to the GPU"]
    return [*figures, Figure("pinned over pageable", ratio, "x", least=1.0)]


def _rate(copy: Callable[[], object], n_bytes: int, device: torch.device) -> float:
    return n_bytes / _seconds(copy, device) / 1e9


def checkpointing(device: torch.device) -> list[Figure]:
    """Time a step and read its peak, with and without checkpointing."""
    on_gpu = device.type == "cuda"
    shape = ModelShape("GPT", 12, 1024, 16, 32000, 1024) if on_gpu else _TINY
    found = {}
    for kind in ("none", "full"):
        gpt = GPT(shape, checkpointing=kind).to(device)
        sgd = torch.optim.SGD(gpt.parameters(), 1e-3)
        tokens = torch.randint(0, shape.vocab, (4, shape.context), device=device)
        found[kind] = _seconds(
            lambda g=gpt, s=sgd, t=tokens: training_step(g, s, [(t, t)]),  # type: ignore[misc]
            device,
            repeats=5,
        )
    most = 1.6 if on_gpu else None
    return [Figure("time of full over none", found["full"] / found["none"], "x", most=most)]


_TINY = ModelShape("GPT", 2, 32, 2, 100, 32)


def _seconds(call: Callable[[], object], device: torch.device, repeats: int = 10) -> float:
    """The best time of some calls, after two that warm up."""
    best = float("inf")
    for number in range(repeats + 2):
        _wait(device)
        begin = time.perf_counter()
        call()
        _wait(device)
        if number >= 2:
            best = min(best, time.perf_counter() - begin)
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def plans(device: torch.device) -> list[Figure]:
    """Run plans of a chain's training step: their peaks, times and overlap beside predictions."""
    figures = [Figure("planning 350 stages", planning_seconds(), "s", most=10.0)]
    most = 1.15 if device.type == "cuda" else None  # files are not copied beside compute
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
    Part("accuracy of predictions", accuracy, 150),
    Part("labs", labs, 180),
    Part("speed of products", matmul_speed, 20),
    Part("bandwidth to the host", host_bandwidth, 20),
    Part("checkpointing", checkpointing, 20),
    Part("plans", plans, 30),
)
