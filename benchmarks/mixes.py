"""Random notebooks of the answer bank's answers, in which correct answers must keep their points.

Run as `python -m benchmarks.mixes [LAB ...] --notebooks N`. In each notebook every exercise gets a
correct answer, an incorrect one, or none. Cells are deleted, copied, or moved into added cells, and
cells of incorrect answers may do harm: bind others' names, patch libraries, hold memory or end the
process. A correct answer keeps full points whatever surrounds it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograder.base.course import COURSE, Course
from autograder.base.limits import Limits
from autograder.content import find_lab, lab_names
from autograder.grading.grade import grade
from autograder.model.task import Lab, Verdict
from autograder.notebooks.intake import take_in
from autograder.notebooks.questions import source_notebook
from autograder.notebooks.released import release_of, solution_sources
from autograder.sandbox.host.sandbox import Sandbox
from autograder.trials.answer_bank import read_bank, submission_with
from autograder.trials.entry import Entry
from autograder.trials.packing import helps_others

__all__ = ["CARELESS", "Figures", "Lost", "Mix", "lost_points", "main", "mix"]

Notebook = dict[str, Any]

# Code added below an incorrect answer in its cell. It must not harm any other exercise.
CARELESS = (
    "import os\nos._exit(3)",
    "while True:\n    pass",
    "hold = bytearray(1900 * 2**20)",
    "hold = bytearray(64 * 2**20)",
    "1 / 0",
    "import torch\ntorch.set_grad_enabled(False)",
    "import torch\ntorch.set_default_dtype(torch.float64)",
    "import torch\ntorch.Tensor.__add__ = torch.Tensor.__sub__",
    "import torch\ntorch.nn.Linear.forward = lambda self, x: 0 * x",
    "import torch\ntorch.zeros = torch.ones",
    "import math\nmath.floor = math.ceil\nmath.frexp = lambda x: (x, 0)",
    "import numpy\nnumpy.float32 = numpy.float64\nnumpy.asarray = numpy.float16",
    "import struct\nstruct.pack = struct.unpack = None",
    "import warnings\nwarnings.simplefilter('error')\nwarnings.warn('an error from here on')",
    "import sys\nsys.setrecursionlimit(60)",
    "import builtins\nbuiltins.sum = builtins.min = builtins.round = max",
    "math = np = numpy = torch = struct = nn = F = None",
    "import os\nos.chdir('/')",
    "import threading\nthreading.Thread(target=lambda: any(iter(int, 1)), daemon=True).start()",
)
_CARELESS_SHARE = 0.25  # of incorrect answers
_MESSY_SHARE = 0.3  # of all answers
_LIMITS = Limits(cell_seconds=5)  # to stop endless loops early


@dataclass(frozen=True)
class Mix:
    """A notebook, and the tasks whose correct answers count in it; `made` lists the changes."""

    notebook: Notebook
    right: frozenset[str]
    made: tuple[str, ...]


@dataclass(frozen=True)
class Lost:
    """A correct answer that lost points in a mix."""

    verdict: Verdict
    made: tuple[str, ...]

    def __str__(self) -> str:
        verdict = self.verdict
        points = f"{verdict.points:g} of {verdict.max_points:g}"
        beside = "\n    ".join(self.made)
        return f"{verdict.task}: {points}, {verdict.status}: {verdict.message}\n    {beside}"


def mix(
    lab: Lab,
    release: Mapping[str, Any],
    entries: Sequence[Entry],
    draw: random.Random,
    careless: Sequence[str] = CARELESS,
) -> Mix:
    """Return a notebook in which each of the lab's exercises has a random answer, or none.

    `careless` has the code that may be added below an incorrect answer.
    """
    chosen: dict[str, Entry] = {}
    for task in lab.tasks:
        kind = draw.choices(("right", "wrong", "none"), (0.45, 0.4, 0.15))[0]
        fitting = [e for e in entries if e.task == task.id and e.kind == kind]
        if fitting and not task.needs_gpu:
            chosen[task.id] = draw.choice(fitting)
    notebook = submission_with(release, {task: e.source for task, e in chosen.items()})
    made = []
    for entry in chosen.values():
        said = ""
        if entry.kind == "wrong" and draw.random() < _CARELESS_SHARE:
            line = draw.choice(careless)
            _cell_of(notebook, entry)["source"] += f"\n\n{line}"
            said = f", careless ({line.splitlines()[-1]})"
        if draw.random() < _MESSY_SHARE:
            tries = [e for e in entries if e.task == entry.task and e.kind == "wrong"]
            said += _make_a_mess(lab, notebook, entry, tries, draw)
        made.append(entry.label + said)
    right = frozenset(task for task, entry in chosen.items() if entry.kind == "right")
    return Mix(notebook, right, tuple(made))


def _make_a_mess(
    lab: Lab, notebook: Notebook, entry: Entry, tries: Sequence[Entry], draw: random.Random
) -> str:
    """Change an answer's cell as students do, and say how. `tries` are incorrect answers."""
    cells, cell = notebook["cells"], _cell_of(notebook, entry)
    place = cells.index(cell)
    right = ("copied", "in an added cell", "a second try", "imported over")
    mess = draw.choice(right if entry.kind == "right" else (*right, "deleted"))
    if mess == "in an added cell" and helps_others(lab, entry):
        mess = "copied"  # in an added cell, what it defines would be the other exercise's answer
    if mess == "deleted":
        del cells[place]
    elif mess == "copied":
        cells.insert(place + 1, deepcopy(cell) | {"id": "copied"})
    elif mess == "in an added cell":
        cells.insert(draw.randrange(place + 1, len(cells) + 1), _added(cell["source"], entry.task))
        cell["source"] = "# See below."
    elif mess == "imported over":  # an import to compare with isn't the answer
        name = next(task.defines[0] for task in lab.tasks if task.id == entry.task)
        cells.insert(place + 1, _added(f"import math as {name}", f"{entry.task}-import"))
    else:
        first = draw.choice(tries)
        cells.insert(place, deepcopy(cell) | {"id": "first-try", "source": first.source})
        return f", after {first.label}"
    return f", {mess}"


def _cell_of(notebook: Notebook, entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = next(
        cell for cell in notebook["cells"] if _grade_id(cell) == f"{entry.task}-solution"
    )
    return found


def _grade_id(cell: Mapping[str, Any]) -> str:
    return str(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))


def _added(source: str, task: str) -> dict[str, Any]:
    cell = {"cell_type": "code", "id": f"added-{task}"[:64], "metadata": {}, "source": source}
    return cell | {"execution_count": None, "outputs": []}


def lost_points(lab: Lab, mixes: Sequence[Mix], course: Course = COURSE) -> Iterator[list[Lost]]:
    """Grade the mixes in one sandbox; yield, for each, the correct answers that lost points."""
    release = release_of(lab.name, course.releases)
    solutions = solution_sources(source_notebook(lab.name, course))
    measured = any(task.trust == "measured" for task in lab.tasks)
    with Sandbox(lab.hides, limits=_LIMITS, measured=measured, ranks=lab.ranks) as sandbox:
        for number, one in enumerate(mixes):
            raw = json.dumps(one.notebook).encode()
            submission = take_in(f"s{number:04}", lab.name, raw, release)
            result = grade(lab, submission, sandbox, bytes(32), solutions).result
            yield [
                Lost(verdict, one.made)
                for verdict in result.verdicts
                if verdict.task in one.right and verdict.points != verdict.max_points
            ]


@dataclass(frozen=True)
class Figures:
    """The mixes of one lab: how many, and how their correct answers were graded."""

    lab: str
    seed: int
    notebooks: int
    seconds: float
    right_answers: int
    lost_points: int

    def __str__(self) -> str:
        return (
            f"{self.lab}: {self.notebooks} notebooks in {self.seconds:.0f} s, "
            f"{self.right_answers} right answers, {self.lost_points} of them lost points"
        )


def main() -> int:
    """Grade random notebooks of each lab; print the points lost, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="mixes", description=__doc__)
    parser.add_argument("labs", nargs="*", help="default: all labs")
    parser.add_argument("--notebooks", type=int, default=2000, metavar="N", help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = options.labs or lab_names()
    figures = []
    for number, name in enumerate(names):
        count = len(range(number, options.notebooks, len(names)))
        figures.append(_measure(name, count, options.seed))
        print(figures[-1], flush=True)
        if options.json:  # written early, because a long run may be stopped
            rows = [asdict(one) for one in figures]
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    right, lost = sum(f.right_answers for f in figures), sum(f.lost_points for f in figures)
    print(f"In all: {right} right answers, {lost} of them lost points.")
    return int(lost > 0)


def _measure(name: str, count: int, seed: int) -> Figures:
    """Grade `count` mixes of a lab, and print each correct answer that loses points."""
    lab, begin = find_lab(name), time.perf_counter()
    release, entries = release_of(name, COURSE.releases), read_bank(COURSE.bank, lab)
    draw = random.Random(f"{seed} {name}")
    mixes = [mix(lab, release, entries, draw) for _ in range(count)]
    lost = 0
    for losses in lost_points(lab, mixes):
        lost += len(losses)
        for one in losses:
            print(one, flush=True)
    return Figures(
        lab=name,
        seed=seed,
        notebooks=count,
        seconds=round(time.perf_counter() - begin, 1),
        right_answers=sum(len(one.right) for one in mixes),
        lost_points=lost,
    )


if __name__ == "__main__":
    sys.exit(main())
