"""One class graded three ways: by stock nbgrader, by two of it side by side, and by this grader.

Run as `python -m benchmarks.one_class`. All three ways use the real commands on the same honest
notebooks, timed from the start of the first process until the last grade and feedback page are in
place; the scores must be equal. The second way is the best that stock offers: two processes, each
with half the class and its own gradebook, which an instructor would still have to merge.

One class solved an assignment written by others: the one that comes with nbgrader's documentation,
with its two students' submissions. This grader scores it by other rules (docs/ordinary.md), so only
the times are compared.

Wall times depend on other load on the machine, processor times hardly do. Processor time is the
user and system time of all processes on both processors.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, islice, product
from pathlib import Path
from shutil import copytree

import nbgrader

from autograder.base.course import COURSE, Course
from autograder.content import find_lab
from autograder.model.submission import SubmissionKey
from autograder.notebooks.released import release_of
from autograder.store.out_folder import OutFolder
from autograder.store.scores import scores_in
from benchmarks.notebooks import Notebook, solved_notebooks, write_notebook
from benchmarks.processor import processor_time

__all__ = ["Times", "main"]

_FOREIGN = "ps1"
_LABS = ("lab01_formats", "lab03_adam", _FOREIGN)  # without torch, with it, from another course
_GUIDE = Path(nbgrader.__file__).parent / "docs" / "source" / "user_guide"

_STOCK = """
import sys
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config
config = Config()
config.CourseDirectory.root = "."
config.CourseDirectory.source_directory = "solutions"
config.CourseDirectory.release_directory = "labs"
api, lab = NbGraderAPI(config=config), sys.argv[1]
done = [api.generate_assignment(lab)]
for student in sys.argv[2:]:
    done += [api.autograde(lab, student), api.generate_feedback(lab, student)]
sys.exit(next((one.get("log") or one.get("error") for one in done if not one["success"]), 0))
"""

Handed = dict[str, Notebook]
Scores = dict[SubmissionKey, dict[str, float | None]]


@dataclass(frozen=True)
class Times:
    """Seconds that one class took each way, and a line for each score that differs.

    `stock_processor` and `our_processor` are processor times.
    """

    lab: str
    submissions: int
    stock: float
    two_stock: float
    ours: float
    stock_processor: float
    our_processor: float
    differences: tuple[str, ...]


def main() -> int:
    """Print the times of each lab; return 1 if a score differs."""
    parser = argparse.ArgumentParser(prog="one_class", description=__doc__)
    parser.add_argument("labs", nargs="*", default=_LABS)
    parser.add_argument("--submissions", type=int, nargs="+", default=[1, 10, 100], metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    all_times = []
    for lab, count in product(options.labs, options.submissions):
        all_times.append(times := _measure(lab, count))
        print(
            f"{lab}, {times.submissions} submissions: stock {times.stock:.1f} s, two of it "
            f"{times.two_stock:.1f} s, ours {times.ours:.1f} s: {times.stock / times.ours:.1f} and "
            f"{times.two_stock / times.ours:.1f} times as fast; processor time: stock "
            f"{times.stock_processor:.1f} s, ours {times.our_processor:.1f} s, "
            f"{times.stock_processor / times.our_processor:.1f} times less; "
            f"{len(times.differences)} scores differ",
            *times.differences,
            sep="\n  ",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(times) for times in all_times], indent=1) + "\n")
    return int(any(times.differences for times in all_times))


def _measure(name: str, count: int) -> Times:
    class_ = _class_of(name, count)
    with tempfile.TemporaryDirectory(prefix="one-class-") as folder:
        home = Path(folder)
        with processor_time() as of_stock:
            stock, expected = _stock(name, [class_], home / "one")
        halves = [dict(list(class_.items())[start::2]) for start in (0, 1)]
        two_stock, merged = _stock(name, halves, home / "two")
        with processor_time() as of_ours:
            ours, found = _ours(name, class_, home / "ours")
    assert found.keys() == expected.keys() == merged.keys(), "everybody has grades each way"
    tasks = [] if name == _FOREIGN else [t.id for t in find_lab(name).tasks if not t.needs_gpu]
    pairs = [(SubmissionKey(student, name), task) for student in class_ for task in tasks]
    differences = tuple(
        f"{key.student}, {task}: stock {expected[key][task]}, two of it "
        f"{merged[key][task]}, ours {found[key][task]}"
        for key, task in pairs
        if not found[key][task] == expected[key][task] == merged[key][task]
    )
    return Times(
        lab=name,
        submissions=count,
        stock=stock,
        two_stock=two_stock,
        ours=ours,
        stock_processor=of_stock.seconds,
        our_processor=of_ours.seconds,
        differences=differences,
    )


def _class_of(name: str, count: int) -> dict[str, Handed]:
    """The submissions of a class of `count`: notebooks by name."""
    if name == _FOREIGN:
        students = sorted((_GUIDE / "submitted").iterdir())
        there = [
            {path.stem: json.loads(path.read_bytes()) for path in (s / name).glob("*.ipynb")}
            for s in students
        ]
        handed: Iterable[Handed] = islice(cycle(there), count)
    else:
        solved = solved_notebooks(find_lab(name), release_of(name, COURSE.releases), count)
        handed = ({name: notebook} for notebook in solved)
    return {f"s{number:03}": notebooks for number, notebooks in enumerate(handed)}


def _source_of(name: str) -> Path:
    return (_GUIDE / "source" if name == _FOREIGN else COURSE.root / "solutions") / name


def _stock(lab: str, parts: Sequence[Mapping[str, Handed]], home: Path) -> tuple[float, Scores]:
    """The time with one process per part, all at the same time, and all scores."""
    scripts = str(Path(sys.executable).parent)  # nbgrader runs alembic by its bare name
    environment = {**os.environ, "PATH": os.pathsep.join([scripts, os.environ["PATH"]])}
    courses = [home / str(number) for number in range(len(parts))]
    for course, part in zip(courses, parts, strict=True):
        copytree(_source_of(lab), course / "solutions" / lab)
        _hand_in(lab, part, course / "submitted")
    begin = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _STOCK, lab, *part],
            cwd=course,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for course, part in zip(courses, parts, strict=True)
    ]
    ended = [process.wait() for process in running]
    if any(ended):
        raise RuntimeError(f"stock nbgrader failed at {lab}")
    seconds = time.perf_counter() - begin
    scores = [scores_in(OutFolder(course)) for course in courses]
    return seconds, {key: own for some in scores for key, own in some.items()}


def _ours(lab: str, class_: Mapping[str, Handed], home: Path) -> tuple[float, Scores]:
    _hand_in(lab, class_, home / "submitted")
    copytree(_source_of(lab), home / "solutions" / lab)
    if lab != _FOREIGN:
        copytree(COURSE.root / "labs" / lab, home / "labs" / lab)
    Course(home).secret()
    places = ["--submitted", str(home / "submitted"), "--out", str(home / "out")]
    command = [sys.executable, "-m", "autograder", "--course", str(home), "grade", lab, *places]
    begin = time.perf_counter()
    subprocess.run([*command, "--workers", "2"], check=True, capture_output=True)
    return time.perf_counter() - begin, scores_in(OutFolder(home / "out"))


def _hand_in(lab: str, class_: Mapping[str, Handed], submitted: Path) -> None:
    for student, notebooks in class_.items():
        for name, notebook in notebooks.items():
            write_notebook(notebook, submitted / student / lab / f"{name}.ipynb")


if __name__ == "__main__":
    raise SystemExit(main())
