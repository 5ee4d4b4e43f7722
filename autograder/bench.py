"""Benchmark: what a submission costs beyond the student's own compute, beside stock nbgrader.

Run as `python -m autograder.bench`. Both graders get the same notebooks in the same run, right
answers of the bank, and both write a gradebook entry and a feedback page. The student's own compute
is measured apart, in a plain process, and taken off; starting each grader once is not counted, and
shown. Read the ratios: single times depend on the machine and on what else it does.
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

from autograder.bank import read_bank, submission_with
from autograder.classroom import Classroom, Grader, publish, take
from autograder.intake import take_in_bytes
from autograder.judge import draw
from autograder.questions import COURSE
from autograder.released import release_of
from autograder.student import LocalStudent
from autograder.task import Lab
from autograder.tasks import find_lab, lab_names

__all__ = ["main", "solved_notebooks", "write_notebook"]

_SECRET = bytes(32)
_MAX_RATIO = 1 / 15  # what our overhead may be of the stock one's
_MAX_SECONDS = 0.1  # what it may be on a machine that does nothing else

Notebook = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One lab's figures, in seconds a submission: medians, but for `start`, which comes once.

    Stock runs every cell, demonstrations and self-checks too: its compute is more than ours.
    """

    lab: str
    stock: float
    stock_compute: float
    ours: float
    our_compute: float
    start: float

    @property
    def overheads(self) -> tuple[float, float]:
        """Stock's overhead and ours."""
        return self.stock - self.stock_compute, self.ours - self.our_compute

    @property
    def ratio(self) -> float:
        """Our overhead over stock's."""
        stock, ours = self.overheads
        return ours / stock


def main() -> int:
    """Print one row a lab; return 1 where the overhead is over a fifteenth of stock's, or 0.1 s."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("labs", nargs="*", help="default: all labs")
    parser.add_argument("--submissions", type=int, default=10, metavar="N", help="of each lab")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # nbgrader runs alembic by its bare name.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    print("Seconds a submission (median); overhead = wall time - the student's own compute.")
    print(_line("lab", "stock", "compute", "overhead", "ours", "compute", "overhead", "ratio"))
    rows = []
    for lab in options.labs or lab_names():
        rows.append(row := _measure(lab, options.submissions))
        stock, ours = row.overheads
        figures = (row.stock, row.stock_compute, stock, row.ours, row.our_compute, ours, row.ratio)
        print(_line(lab, *(f"{figure:.3f}" for figure in figures)), flush=True)
    starts = statistics.median(row.start for row in rows)
    print(f"Ours also takes {starts:.1f} s to start, once for each of its workers.")
    return int(any(row.ratio > _MAX_RATIO or row.overheads[1] > _MAX_SECONDS for row in rows))


def _line(lab: str, *cells: str) -> str:
    return lab.ljust(24) + "".join(cell.rjust(10) for cell in cells)


def _measure(name: str, count: int) -> Row:
    lab = find_lab(name)
    release = release_of(name, COURSE / "labs")
    notebooks = list(solved_notebooks(lab, release, count + 1))  # the first warms both up
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        compute = _computes(name, notebooks)
        stock = list(_stock(name, notebooks, Path(folder) / "stock"))
        start, ours = _ours(lab, notebooks, Path(folder) / "ours")
    stock_compute, our_compute = zip(*compute, strict=True)
    return Row(
        name, _median(stock), _median(stock_compute), _median(ours), _median(our_compute), start
    )


def _median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds[1:])


def solved_notebooks(lab: Lab, release: Mapping[str, Any], count: int) -> Iterator[Notebook]:
    """Yield solved notebooks, the tasks' right answers taken in turn."""
    entries = read_bank(COURSE / "tests" / "bank", lab)
    right = {
        task.id: [entry for entry in entries if entry.task == task.id and entry.kind == "right"]
        for task in lab.tasks
    }
    for number in range(count):
        answers = {task: found[number % len(found)].source for task, found in right.items()}
        yield submission_with(release, answers)


def _computes(lab: str, notebooks: Sequence[Notebook]) -> list[tuple[float, float]]:
    """The compute of each, stock's and ours, in one process of its own.

    What students import stays out of this process, and torch is not imported twice.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(partial(_compute, lab), notebooks))


def _compute(name: str, notebook: Notebook) -> tuple[float, float]:
    """The time of a student's cells and of the probes' calls, with nothing around them."""
    lab = find_lab(name)
    raw = json.dumps(notebook).encode()
    submission = take_in_bytes("bench", name, raw, release_of(name, COURSE / "labs"))
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
    cases = {task.id: draw(task, _SECRET, "bench", raw) for task in lab.tasks if not task.needs_gpu}
    student = LocalStudent(names)
    with _silence():
        begin = time.perf_counter()
        for task in lab.tasks:
            for case in cases.get(task.id, ()):
                student.run(task.probe_path, case.inputs, task.ask(case) if task.ask else None)
        return time.perf_counter() - begin


def _stock(lab: str, notebooks: Sequence[Notebook], course: Path) -> Iterator[float]:
    """The time of `nbgrader autograde` and `generate_feedback`, in one process, for each."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    config = Config()
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "labs"
    _copy(COURSE / "solutions" / lab / f"{lab}.ipynb", course / "solutions" / lab)
    for number, notebook in enumerate(notebooks):
        write_notebook(notebook, course / "submitted" / f"s{number:03}" / lab / f"{lab}.ipynb")
    with _silence(), contextlib.chdir(course):
        api = NbGraderAPI(config=config)
        _succeed(api.generate_assignment(lab))
        for number in range(len(notebooks)):
            begin = time.perf_counter()
            _succeed(api.autograde(lab, f"s{number:03}"))
            _succeed(api.generate_feedback(lab, f"s{number:03}"))
            yield time.perf_counter() - begin


def _succeed(result: Mapping[str, Any]) -> None:
    if not result["success"]:
        raise RuntimeError(f"stock nbgrader failed: {result.get('error')}\n{result.get('log')}")


def _ours(lab: Lab, notebooks: Sequence[Notebook], out: Path) -> tuple[float, list[float]]:
    """The time to start, and that of grading each, its share of publishing included."""
    for number, notebook in enumerate(notebooks):
        write_notebook(
            notebook, out / "submitted" / f"s{number:03}" / lab.name / f"{lab.name}.ipynb"
        )
    room = Classroom(lab.name, out, COURSE, _SECRET)
    handed = take(room, out / "submitted")
    begin = time.perf_counter()
    with Grader(room, slot=0) as grader:
        grader.start()
        start = time.perf_counter() - begin
        graded = []
        for item in handed:
            begin = time.perf_counter()
            grader(item)
            graded.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    publish(out, COURSE)
    share = (time.perf_counter() - begin) / len(handed)
    return start, [seconds + share for seconds in graded]


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


def write_notebook(notebook: Notebook, path: Path) -> None:
    """Write a notebook as a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook))


if __name__ == "__main__":
    raise SystemExit(main())
