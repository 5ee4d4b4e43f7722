"""Benchmark: the overhead of grading a submission, compared with stock nbgrader.

Run as `python -m benchmarks.grader`. Both graders get the same notebooks, made of correct answers
from the answer bank, and both write a gradebook entry and a feedback page. The three runs alternate
notebook by notebook, so that other load on the machine affects all of them. Read the ratios,
because single times depend on that load.

The student's own compute consists of the cells and the probes' calls, timed in a plain process that
has already run another such notebook. It is subtracted from both totals, so everything that a fresh
process adds is overhead: stock's kernel imports what the cells import, and a fork of ours touches
its memory for the first time. Drawing cases and judging are overhead, too. Stock also runs
demonstrations and self-checks, so its compute includes them.

One-time costs don't count: starting (for ours, each worker and the process that it forks students'
processes from, shown below the table), and creating a gradebook with the lab's cells and a first
submission. Each submission's share of publishing is that of a class of the measured size.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autograder.base.course import COURSE
from autograder.base.pool import Failure, Solo, Work
from autograder.content import find_lab, lab_names
from autograder.model.judge import draw
from autograder.model.task import Case, Lab, Task
from autograder.notebooks.intake import take_in
from autograder.notebooks.released import release_of
from autograder.publish.publishing import publish
from autograder.runs.classroom import take
from autograder.runs.grader import Grader
from autograder.runs.room import Classroom, Handed
from autograder.sandbox.host.in_process import Ask
from autograder.store.out_folder import OutFolder
from benchmarks.notebooks import Notebook, solved_notebooks, write_notebook
from peakmem.core import serialization
from peakmem.probes import call_probe

__all__ = ["main"]

_SECRET = bytes(32)
_MAX_RATIO = 1 / 15  # limit of our overhead, as a share of stock's
_MAX_SECONDS = 0.1  # limit on an otherwise idle machine


@dataclass(frozen=True)
class Row:
    """One lab's figures in seconds: one per submission, and one each for `start` and `publish`."""

    lab: str
    stock: tuple[float, ...]
    stock_compute: tuple[float, ...]
    ours: tuple[float, ...]
    our_compute: tuple[float, ...]
    start: float
    publish: float

    @property
    def overheads(self) -> tuple[float, float]:
        """Stock's overhead and ours, as medians over the submissions."""
        share = self.publish / len(self.ours)
        return (
            statistics.median(map(float.__sub__, self.stock, self.stock_compute)),
            statistics.median(map(float.__sub__, self.ours, self.our_compute)) + share,
        )

    @property
    def ratio(self) -> float:
        """Our overhead over stock's."""
        stock, ours = self.overheads
        return ours / stock

    @property
    def figures(self) -> dict[str, float]:
        """The columns of the table: medians in seconds, and the ratio."""
        overhead, our_overhead = self.overheads
        return {
            "stock": statistics.median(self.stock),
            "stock_compute": statistics.median(self.stock_compute),
            "stock_overhead": overhead,
            "ours": statistics.median(self.ours),
            "our_compute": statistics.median(self.our_compute),
            "our_overhead": our_overhead,
            "ratio": self.ratio,
        }

    def __str__(self) -> str:
        return _line(self.lab, *(f"{figure:.3f}" for figure in self.figures.values()))


def main() -> int:
    """Print one row per lab; return 1 if the overhead exceeds a fifteenth of stock's, or 0.1 s."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("labs", nargs="*", help="default: all labs")
    parser.add_argument("--submissions", type=int, default=10, metavar="N", help="of each lab")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # nbgrader runs alembic by its bare name.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    print("Seconds a submission (median); overhead = wall time - the student's own compute.")
    print(_line("lab", "stock", "compute", "overhead", "ours", "compute", "overhead", "ratio"))
    rows = []
    for lab in options.labs or lab_names():
        rows.append(row := _measure(lab, options.submissions))
        print(row, flush=True)
    starts = statistics.median(row.start for row in rows)
    print(f"Ours also takes {starts:.1f} s to start, once for each of its workers.")
    if options.json:
        figures = {row.lab: {"submissions": len(row.ours), **row.figures} for row in rows}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    over = [r.lab for r in rows if r.ratio > _MAX_RATIO or r.overheads[1] > _MAX_SECONDS]
    if over:
        print(f"Over a fifteenth of stock's, or over {_MAX_SECONDS} s: {', '.join(over)}.")
    return int(bool(over))


def _line(lab: str, *cells: str) -> str:
    return lab.ljust(24) + "".join(cell.rjust(10) for cell in cells)


def _measure(name: str, count: int) -> Row:
    lab = find_lab(name)
    notebooks = list(solved_notebooks(lab, release_of(name, COURSE.releases), count + 1))
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        _computing() as pool,
        contextlib.closing(_Ours(lab, notebooks, Path(folder) / "ours")) as ours,
    ):
        of_stock: list[float] = []
        of_ours: list[float] = []
        computes: list[tuple[float, float]] = []
        for stock in _stock(name, notebooks, Path(folder) / "stock"):
            number = len(of_stock)
            of_stock.append(stock)
            of_ours.append(ours.grade(number))
            computes.append(pool.submit(_compute, name, notebooks[number]).result())
        publish = ours.publish()
    stock_compute, our_compute = zip(*computes[1:], strict=True)  # the first is a warm-up
    start = of_ours[0] - statistics.median(of_ours[1:])
    return Row(
        name,
        tuple(of_stock[1:]),
        stock_compute,
        tuple(of_ours[1:]),
        our_compute,
        start,
        publish,
    )


def _computing() -> ProcessPoolExecutor:
    """A separate process, which keeps students' imports out of this one."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def _compute(name: str, notebook: Notebook) -> tuple[float, float]:
    """The time of only a student's cells and the probes' calls."""
    lab = find_lab(name)
    raw = json.dumps(notebook).encode()
    submission = take_in("bench", name, raw, release_of(name, COURSE.releases))
    every = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    all_cells = _seconds_of_cells(every, {})
    ours = _seconds_of_cells((cell.source for cell in submission.cells), names)
    probes = _seconds_of_probes(lab, raw, names)
    return all_cells + probes, ours + probes


def _seconds_of_cells(sources: Iterable[str], names: dict[str, Any]) -> float:
    with _silence():
        begin = time.perf_counter()
        for source in sources:
            with contextlib.suppress(Exception):
                exec(compile(source, "<cell>", "exec"), names)
        return time.perf_counter() - begin


def _seconds_of_probes(lab: Lab, raw: bytes, names: dict[str, Any]) -> float:
    """The time within the probes only, because encoding and drawing cases are the grader's work."""
    seconds = 0.0
    for task in lab.tasks:
        for case in () if task.needs_gpu else draw(task, _SECRET, "bench", raw):
            inputs, ask = (
                serialization.decode(serialization.encode(dict(case.inputs))),
                _asked_by(task, case),
            )
            with _silence(), contextlib.suppress(Exception):
                begin = time.perf_counter()
                try:
                    call_probe(task.probe_path, names, inputs, ask)
                finally:
                    seconds += time.perf_counter() - begin
    return seconds


def _asked_by(task: Task, case: Case) -> Ask:
    answer = task.ask(case) if task.ask else None
    return answer or (lambda _: None)


def _stock(lab: str, notebooks: Sequence[Notebook], course: Path) -> Iterator[float]:
    """The time of `nbgrader autograde` and `generate_feedback` per submission, in one process."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    config = Config()
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "labs"
    _copy(COURSE.root / "solutions" / lab / f"{lab}.ipynb", course / "solutions" / lab)
    for number, notebook in enumerate(notebooks):
        write_notebook(notebook, course / "submitted" / f"s{number:03}" / lab / f"{lab}.ipynb")
    with _silence(), contextlib.chdir(course):
        api = NbGraderAPI(config=config)
        _succeed(api.generate_assignment(lab))
    for number in range(len(notebooks)):
        with _silence(), contextlib.chdir(course):
            begin = time.perf_counter()
            _succeed(api.autograde(lab, f"s{number:03}"))
            _succeed(api.generate_feedback(lab, f"s{number:03}"))
            seconds = time.perf_counter() - begin
        yield seconds


def _succeed(result: Mapping[str, Any]) -> None:
    if not result["success"]:
        raise RuntimeError(f"stock nbgrader failed: {result.get('error')}\n{result.get('log')}")


class _Ours:
    """One worker of this grader, with one submission at a time.

    The first submission starts the worker, and is published alone, which creates a gradebook.
    """

    def __init__(self, lab: Lab, notebooks: Sequence[Notebook], out: Path) -> None:
        for number, notebook in enumerate(notebooks):
            path = out / "submitted" / f"s{number:03}" / lab.name / f"{lab.name}.ipynb"
            write_notebook(notebook, path)
        room = Classroom(lab.name, OutFolder(out), COURSE, _SECRET)
        self._out = out
        self._handed = take(room, out / "submitted")
        work: Work[Handed, str] = Work(partial(Grader, room), preload=("autograder.runs.grader",))
        self._worker = Solo(work, slot=0)

    def grade(self, number: int) -> float:
        begin = time.perf_counter()
        outcome = self._worker.do(self._handed[number])
        seconds = time.perf_counter() - begin
        if isinstance(outcome, Failure):
            raise RuntimeError(f"this grader failed: {outcome.reason}")
        if number == 0:
            self.publish()
        return seconds

    def publish(self) -> float:
        begin = time.perf_counter()
        publish(OutFolder(self._out), COURSE)
        return time.perf_counter() - begin

    def close(self) -> None:
        self._worker.close()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
    ):
        yield


def _copy(source: Path, folder: Path) -> None:
    write_notebook(json.loads(source.read_bytes()), folder / source.name)


if __name__ == "__main__":
    raise SystemExit(main())
