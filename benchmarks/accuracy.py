"""Accuracy of predictions: each is compared with the measured peak of a real training step.

Run as `python -m benchmarks.accuracy`. A prediction is on the right side if it says "fits" for a
budget 1 % above the measured peak, and "does not fit" for a budget 1 % below.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from benchmarks.grid import Case, configurations, quick
from benchmarks.peaks import Row
from peakmem.measure import meter
from peakmem.measure.trace import trace
from peakmem.predict.step_ledger import build_ledger

__all__ = ["main", "measure", "summary"]

BOUNDS = {"build_ledger": 0.01, "trace": 0.01}  # relative to the step's peak, on the CPU
RIGHT_SIDE = 0.95  # of the configurations


def measure(case: Case, device: torch.device) -> Row:
    """Take three steps, the last one metered, and compare the predictions with it."""
    profile = f"torch-{device.type}"
    predicted = None
    if case.shape is not None:
        predicted = build_ledger(case.shape, case.recipe, profile=profile).peak_bytes
    measured, allocated = _peaks(case, device)
    return Row(case.name, measured, predicted, trace(case.build, profile).peak_bytes, allocated)


def _peaks(case: Case, device: torch.device) -> tuple[int, int | None]:
    """Return the peak of the bytes that tensors requested and, on CUDA, of those allocated."""
    torch.manual_seed(0)
    floors = _settle(device)
    if device.type == "cpu":
        return meter.measure(case.build, device).peak_bytes, None
    step = case.build(device)
    for _ in range(2):
        step()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    step()
    torch.cuda.synchronize(device)
    stats = torch.cuda.memory_stats(device)
    peaks = [stats[f"{kind}_bytes.all.peak"] for kind in ("requested", "allocated")]
    return peaks[0] - floors[0], peaks[1] - floors[1]


def _settle(device: torch.device) -> tuple[int, int]:
    """Free memory left by earlier work; return live bytes, because libraries keep workspaces."""
    gc.collect()
    if device.type == "cpu":
        return 0, 0
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(256, 256, device=device, dtype=dtype, requires_grad=True)
        # Backward's thread has its own workspaces, even for the first of two recomputed layers; the
        # last one isn't run again.
        layers = nn.Sequential(*(nn.Linear(256, 256, device=device, dtype=dtype) for _ in "ab"))
        checkpoint(layers, x, use_reentrant=False).sum().backward()
        del layers
        del x
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    stats = torch.cuda.memory_stats(device)
    return stats["requested_bytes.all.current"], stats["allocated_bytes.all.current"]


def summary(rows: Sequence[Row]) -> list[str]:
    """Describe the worst errors and the shares of predictions on the right side."""
    lines = []
    for who, of_row in _WHO.items():
        there = [(row, n) for row in rows if (n := of_row(row)) is not None]
        if not there:
            continue
        worst = max(there, key=lambda pair: abs(pair[0].errors()[who]))[0]
        right = sum(row.right_side(n) for row, n in there)
        too_low = sum(n < row.measured_bytes * 0.99 for row, n in there)
        lines.append(
            f"{who}: {len(there)} configurations, worst error {worst.errors()[who]:+.3%} "
            f"({worst.name}); right side of the fits test {right / len(there):.1%}; "
            f"falsely fits {too_low}"
        )
    return lines


_WHO: dict[str, Callable[[Row], int | None]] = {
    "build_ledger": lambda row: row.predicted_bytes,
    "trace": lambda row: row.traced_bytes,
}


def held(rows: Iterable[Row], bounds: Mapping[str, float]) -> bool:
    """Whether every error is within its bound, and no predictor wrongly said "fits".

    At least 95 % of each predictor's answers must also be on the right side.
    """
    rows = list(rows)
    for who, bound in bounds.items():
        errors = [row.errors()[who] for row in rows if who in row.errors()]
        if any(abs(error) > bound or error < -0.01 for error in errors):
            return False
    for of_row in _WHO.values():
        known = [(row, n) for row in rows if (n := of_row(row)) is not None]
        if sum(row.right_side(n) for row, n in known) < RIGHT_SIDE * len(known):
            return False
    return True


def table(rows: Sequence[Row]) -> str:
    """Return one line per configuration: measured bytes, and each prediction with its ratio."""
    width = max(len(row.name) for row in rows)
    lines = [
        f"{'configuration':{width}}{'measured bytes':>16}{'build_ledger':>16}{'ratio':>9}"
        f"{'trace':>16}{'ratio':>9}"
    ]
    for row in rows:
        cells = ""
        for n in (row.predicted_bytes, row.traced_bytes):
            ratio = "-" if n is None else f"{n / row.measured_bytes:.4f}"
            cells += f"{'-' if n is None else f'{n:,}':>16}{ratio:>9}"
        lines.append(f"{row.name:{width}}{row.measured_bytes:>16,}{cells}")
    return "\n".join(lines)


def write(rows: Sequence[Row], folder: Path, name: str, device_name: str) -> None:
    """Write the rows as `<name>.json` and their picture as `<name>.png`."""
    from benchmarks.pictures import draw_accuracy  # late: matplotlib may be missing in a GPU run

    folder.mkdir(parents=True, exist_ok=True)
    found = {
        "device": device_name,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "summary": summary(rows),
        "configurations": [asdict(row) for row in rows],
    }
    (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw_accuracy(rows, folder / f"{name}.png")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the summary; return 1 if a bound is broken."""
    parser = argparse.ArgumentParser(prog="accuracy", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few configurations; no files")
    parser.add_argument("--out", type=Path, default=Path("docs/measurements"), metavar="DIR")
    options = parser.parse_args(arguments)
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    begin = time.perf_counter()
    cases = quick() if options.quick else configurations()
    with warnings.catch_warnings(action="ignore"):
        rows = [measure(case, torch.device("cpu")) for case in cases]
    print(table(rows))
    print(*summary(rows), sep="\n")
    print(f"{len(rows)} configurations in {time.perf_counter() - begin:.0f} s.")
    if not options.quick:
        write(rows, options.out, "cpu", f"CPU, {platform.machine()}")
        print(f"Written to {options.out}/cpu.json and cpu.png.")
    return 0 if held(rows, BOUNDS) else 1


if __name__ == "__main__":
    sys.exit(main())
