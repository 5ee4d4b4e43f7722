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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autograder.bank import read_bank, submission_with
from autograder.classroom import Classroom, grade_handed, publish, take
from autograder.intake import take_in_bytes
from autograder.judge import draw
from autograder.questions import COURSE
from autograder.released import release_of
from autograder.sandbox import Sandbox
from autograder.student import LocalStudent
from autograder.task import Lab
from autograder.tasks import find_lab, lab_names

__all__ = ["main"]

_SECRET = bytes(32)
_LIMIT = 0.1  # what our overhead may be of the stock one's

Notebook = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One lab's figures, in seconds a submission: medians, but for `start`, which comes once."""

    lab: str
    compute: float
    stock: float
    ours: float
    start: float

    @property
    def ratio(self) -> float:
        """Our overhead over stock's."""
        return (self.ours - self.compute) / (self.stock - self.compute)


def main() -> int:
    """Print one row a lab; return 1 where the overhead is more than a tenth of stock's."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("labs", nargs="*", help="default: all labs")
    parser.add_argument("--submissions", type=int, default=10, metavar="N", help="of each lab")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # nbgrader runs alembic by its bare name.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    print("Seconds a submission (median); overhead = wall time - the student's own compute.")
    print(
        f"{'lab':24}{'compute':>9}{'stock':>9}{'ours':>9}{'overheads':>18}{'ratio':>8}{'start':>8}"
    )
    rows = []
    for lab in options.labs or lab_names():
        rows.append(row := _measure(lab, options.submissions))
        overheads = f"{row.stock - row.compute:.3f} / {row.ours - row.compute:.3f}"
        print(
            f"{row.lab:24}{row.compute:9.3f}{row.stock:9.3f}{row.ours:9.3f}"
            f"{overheads:>18}{row.ratio:8.3f}{row.start:8.2f}",
            flush=True,
        )
    return int(any(row.ratio > _LIMIT for row in rows))


def _measure(name: str, count: int) -> Row:
    lab = find_lab(name)
    release = release_of(name, COURSE / "labs")
    notebooks = list(_notebooks(lab, release, count + 1))  # the first warms both up
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        compute = _computes(name, notebooks)
        stock = list(_stock(name, notebooks, Path(folder) / "stock"))
        start, ours = _ours(lab, notebooks, Path(folder) / "ours")
    return Row(name, _median(compute), _median(stock), _median(ours), start)


def _median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds[1:])


def _notebooks(lab: Lab, release: Mapping[str, Any], count: int) -> Iterator[Notebook]:
    """Solved notebooks, the tasks' right answers taken in turn."""
    entries = read_bank(COURSE / "tests" / "bank", lab)
    right = {
        task.id: [entry for entry in entries if entry.task == task.id and entry.kind == "right"]
        for task in lab.tasks
    }
    for number in range(count):
        answers = {task: found[number % len(found)].source for task, found in right.items()}
        yield submission_with(release, answers)


def _computes(lab: str, notebooks: Sequence[Notebook]) -> list[float]:
    """The compute of each, in one process of its own: what students import stays out of this."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(partial(_compute, lab), notebooks))


def _compute(name: str, notebook: Notebook) -> float:
    """The time of a student's cells and of the probes' calls, with nothing around them."""
    lab = find_lab(name)
    release = release_of(name, COURSE / "labs")
    raw = json.dumps(notebook).encode()
    submission = take_in_bytes("bench", name, raw, release)
    cases = {task.id: draw(task, _SECRET, "bench", raw) for task in lab.tasks}
    names: dict[str, Any] = {}
    student = LocalStudent(names)
    with _silence():
        begin = time.perf_counter()
        for cell in submission.cells:
            exec(compile(cell.source, "<cell>", "exec"), names)
        for task in lab.tasks:
            for case in () if task.needs_gpu else cases[task.id]:
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
        _write(notebook, course / "submitted" / f"s{number:03}" / lab / f"{lab}.ipynb")
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
        _write(notebook, out / "submitted" / f"s{number:03}" / lab.name / f"{lab.name}.ipynb")
    room = Classroom(lab.name, out, COURSE, _SECRET)
    handed = take(room, out / "submitted")
    release = release_of(lab.name, COURSE / "labs")
    begin = time.perf_counter()
    with Sandbox(lab.hides) as sandbox:
        start = time.perf_counter() - begin
        graded = []
        for item in handed:
            begin = time.perf_counter()
            grade_handed(room, lab, release, item, lambda: sandbox)
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
    _write(json.loads(source.read_bytes()), folder / source.name)


def _write(notebook: Notebook, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook))


if __name__ == "__main__":
    raise SystemExit(main())
