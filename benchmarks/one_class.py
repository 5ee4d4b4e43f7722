"""One class graded three ways in one run: stock nbgrader, two of it side by side, and this grader.

Run as `python -m benchmarks.one_class`. All three are the real commands, from the start of
the first process to the last grade and feedback page in place, on the same honest notebooks; the
scores have to be the same. The second way is the best that stock offers: half the class each, in
two processes with a gradebook of their own, which somebody would still have to merge.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import copytree

from autograder.content import find_lab
from autograder.notebooks.questions import COURSE
from autograder.notebooks.released import release_of
from autograder.runs.classroom import course_secret
from autograder.store.database import scores_in
from benchmarks.grader import Notebook, solved_notebooks, write_notebook

__all__ = ["Times", "main"]

_LABS = ("lab01_formats", "lab03_adam")  # one that needs no torch, and one that does

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

Scores = dict[tuple[str, str], dict[str, float | None]]


@dataclass(frozen=True)
class Times:
    """Seconds that one class took each way, and a line for each score that is not the same."""

    lab: str
    submissions: int
    stock: float
    two_stock: float
    ours: float
    differences: tuple[str, ...]


def main() -> int:
    """Print the times of each lab; return 1 where a score differs."""
    parser = argparse.ArgumentParser(prog="one_class", description=__doc__)
    parser.add_argument("labs", nargs="*", default=_LABS)
    parser.add_argument("--submissions", type=int, default=24, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    all_times = []
    for lab in options.labs:
        all_times.append(times := _measure(lab, options.submissions))
        print(
            f"{lab}, {times.submissions} submissions: stock {times.stock:.1f} s, two of it "
            f"{times.two_stock:.1f} s, ours {times.ours:.1f} s: {times.stock / times.ours:.1f} and "
            f"{times.two_stock / times.ours:.1f} times as fast; {len(times.differences)} scores "
            "differ",
            *times.differences,
            sep="\n  ",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(times) for times in all_times], indent=1) + "\n")
    return int(any(times.differences for times in all_times))


def _measure(name: str, count: int) -> Times:
    lab = find_lab(name)
    notebooks = solved_notebooks(lab, release_of(name, COURSE / "labs"), count)
    class_ = {f"s{number:03}": notebook for number, notebook in enumerate(notebooks)}
    with tempfile.TemporaryDirectory(prefix="one-class-") as folder:
        home = Path(folder)
        stock, expected = _stock(name, [class_], home / "one")
        halves = [dict(list(class_.items())[start::2]) for start in (0, 1)]
        two_stock, merged = _stock(name, halves, home / "two")
        ours, found = _ours(name, class_, home / "ours")
    tasks = [task.id for task in lab.tasks if not task.needs_gpu]
    differences = tuple(
        f"{student}, {task}: stock {expected[student, name][task]}, two of it "
        f"{merged[student, name][task]}, ours {found[student, name][task]}"
        for student in class_
        for task in tasks
        if not found[student, name][task]
        == expected[student, name][task]
        == merged[student, name][task]
    )
    return Times(name, count, stock, two_stock, ours, differences)


def _stock(lab: str, parts: Sequence[Mapping[str, Notebook]], home: Path) -> tuple[float, Scores]:
    """The time of one process for each part at once, and all scores."""
    scripts = str(Path(sys.executable).parent)  # nbgrader runs alembic by its bare name
    environment = {**os.environ, "PATH": os.pathsep.join([scripts, os.environ["PATH"]])}
    courses = [home / str(number) for number in range(len(parts))]
    for course, part in zip(courses, parts, strict=True):
        copytree(COURSE / "solutions" / lab, course / "solutions" / lab)
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
    return seconds, {key: s for course in courses for key, s in scores_in(course).items()}


def _ours(lab: str, class_: Mapping[str, Notebook], home: Path) -> tuple[float, Scores]:
    _hand_in(lab, class_, home / "submitted")
    for folder in ("labs", "solutions"):
        copytree(COURSE / folder / lab, home / folder / lab)
    course_secret(home / ".course_secret")
    places = ["--submitted", str(home / "submitted"), "--out", str(home / "out")]
    command = [sys.executable, "-m", "autograder", "--course", str(home), "grade", lab, *places]
    begin = time.perf_counter()
    subprocess.run([*command, "--workers", "2"], check=True, capture_output=True)
    return time.perf_counter() - begin, scores_in(home / "out")


def _hand_in(lab: str, class_: Mapping[str, Notebook], submitted: Path) -> None:
    for student, notebook in class_.items():
        write_notebook(notebook, submitted / student / lab / f"{lab}.ipynb")


if __name__ == "__main__":
    raise SystemExit(main())
