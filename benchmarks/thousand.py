"""A large class in one run: are all scores right, how long does it take, and does memory grow?

Run as `python -m benchmarks.thousand`. Classes of two sizes are sampled, whose scores are
known, and graded by the real command.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.base import memory
from autograder.base.course import COURSE
from autograder.content import find_lab
from autograder.store.out_folder import OutFolder
from autograder.trials.demo import compare
from autograder.trials.sampled_class import ClassFolder, sample_class

__all__ = ["Run", "main"]

_MAX_GROWTH = 1.1  # of the controller's peak, from the small class to the large one
_LOOK_SECONDS = 0.1  # between readings of a peak that only grows
_MIB = 2**20


@dataclass(frozen=True)
class Run:
    """One graded class: its size, the time, the controller's peak, and wrong scores."""

    lab: str
    submissions: int
    workers: int
    seconds: float
    controller_peak_bytes: int
    differences: int
    status: int


def main() -> int:
    """Grade both classes; return 1 if a score is wrong, or memory grew too much."""
    parser = argparse.ArgumentParser(prog="thousand", description=__doc__)
    parser.add_argument("lab", nargs="?", default="lab01_formats")
    parser.add_argument("--sizes", type=int, nargs=2, default=(100, 1000), metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    runs = []
    for size in options.sizes:
        runs.append(run := _run(options.lab, size, options.workers))
        print(
            f"{run.lab}: {run.submissions} submissions in {run.seconds:.0f} s on {run.workers} "
            f"workers ({run.seconds / run.submissions:.3f} s each), controller's peak "
            f"{run.controller_peak_bytes / _MIB:.0f} MiB, {run.differences} scores not true",
            flush=True,
        )
    growth = runs[1].controller_peak_bytes / runs[0].controller_peak_bytes
    print(f"The controller's peak grew {growth:.3f} times; at most {_MAX_GROWTH} is well.")
    if options.json:
        figures = {"runs": [asdict(run) for run in runs], "growth": growth}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    true = all(run.differences == 0 and run.status == 0 for run in runs)
    return 0 if true and growth <= _MAX_GROWTH else 1


def _run(lab: str, size: int, workers: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="thousand-") as folder:
        home = Path(folder)
        class_, out = ClassFolder(home / "class"), OutFolder(home / "out")
        sample_class([find_lab(lab)], size, 0, class_.path, COURSE.bank, COURSE.releases)
        command = [sys.executable, "-m", "autograder", "grade", lab, "--workers", str(workers)]
        places = ["--submitted", str(class_.submitted), "--out", str(out)]
        begin = time.perf_counter()
        grading = subprocess.Popen(
            [*command, *places], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        peak_bytes = 0
        while grading.poll() is None:
            with suppress(OSError):  # the process has just ended
                peak_bytes = memory.status_bytes(grading.pid, "VmHWM")  # without its workers
            with suppress(subprocess.TimeoutExpired):
                grading.wait(_LOOK_SECONDS)
        seconds = time.perf_counter() - begin
        differences = compare(class_.truth, out.grades)
    return Run(lab, size, workers, seconds, peak_bytes, len(differences), grading.returncode)


if __name__ == "__main__":
    raise SystemExit(main())
