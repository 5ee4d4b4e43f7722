"""A class that uses up every allowance, to measure the workers' memory and the disk.

Run as `python -m benchmarks.hostile_class`. Each submission is a solved notebook that uses up one
allowance, or all of them, and the real command grades the class.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograder.base import memory
from autograder.base.course import COURSE
from autograder.content import find_lab
from autograder.notebooks.released import release_of
from autograder.store.out_folder import OutFolder
from benchmarks.notebooks import Notebook, solved_notebooks, write_notebook

__all__ = ["KINDS", "Figures", "main"]

_LAB = "lab05_accumulation"
_MOST_WORKER_BYTES = 600 * 2**20
_MOST_DISK_BYTES = 10 * 2**30 // 1000  # per submission
_LOOK_SECONDS = 0.05
_MIB = 2**20

# Random bytes, which don't compress.
_ANSWERS = """

def largest_micro_batch(run, upper):
    import os, numpy
    return numpy.frombuffer(os.urandom(600_000), dtype=numpy.uint8)
"""
_OUTPUTS = """
import base64, os
from IPython.display import display
for _ in range(3):
    picture = b"\\x89PNG\\r\\n\\x1a\\n" + os.urandom(250_000)
    display({"image/png": base64.b64encode(picture).decode()}, raw=True)
"""
_MARKUP = """
from IPython.display import HTML, display
for _ in range(40): display(HTML("<div>" * 4_000 + "&amp;" * 4_000))
"""


def _code(source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": "",
        "metadata": {},
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def _text(source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "", "metadata": {}, "source": source, **more}


def _answers(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if "def largest_micro_batch" in cell["source"] and cell["cell_type"] == "code":
            cell["source"] += _ANSWERS
            return
    raise LookupError(f"{_LAB} asks for no largest_micro_batch any more; give _ANSWERS another")


def _outputs(notebook: Notebook) -> None:
    notebook["cells"].append(_code(_OUTPUTS))


def _markup(notebook: Notebook) -> None:
    notebook["cells"] += [_code(_MARKUP) for _ in range(3)]


def _pictures(notebook: Notebook) -> None:
    picture = "iVBORw0KGgo" + "A" * (_MIB - 100)
    picture = picture[: len(picture) // 4 * 4]
    attachments = {"a.png": {"image/png": picture}}
    notebook["cells"].append(_text("![a](attachment:a.png)\n\n" * 800, attachments=attachments))


def _source(notebook: Notebook) -> None:
    notebook["cells"].append(_code("a;" * 50_000))
    notebook["cells"].append(_code("x=-1\n" * 3_000))


def _formulas(notebook: Notebook) -> None:
    notebook["cells"] += [_text("$x^2$ " * 3_000) for _ in range(4)]


def _file(notebook: Notebook) -> None:
    notebook["metadata"]["more"] = "\U0001f600" + "x" * 18 * _MIB


def _containers(notebook: Notebook) -> None:
    notebook["metadata"]["more"] = [[] for _ in range(390_000)]


def _everything(notebook: Notebook) -> None:
    for edit in (_answers, _outputs, _pictures, _source, _file):
        edit(notebook)


KINDS: dict[str, Callable[[Notebook], None]] = {
    "answers": _answers,
    "outputs": _outputs,
    "markup": _markup,
    "pictures": _pictures,
    "source": _source,
    "formulas": _formulas,
    "file": _file,
    "containers": _containers,
    "everything": _everything,
}


@dataclass(frozen=True)
class Figures:
    """One class: its size, the peaks of a worker and the controller, the disk use, the statuses.

    `largest_bytes` is the disk use of the submission that leaves most, and `largest_kind` its kind.
    """

    submissions: int
    seconds: float
    worker_peak_bytes: int
    controller_peak_bytes: int
    disk_bytes: int
    largest_bytes: int
    largest_kind: str
    ends: dict[str, int]

    @property
    def held(self) -> bool:
        """Whether worker and disk stay within their bounds, the disk scaled to a class of 1,000."""
        within = self.disk_bytes <= self.submissions * _MOST_DISK_BYTES
        return within and self.worker_peak_bytes <= _MOST_WORKER_BYTES


def main() -> int:
    """Grade the class; return 1 if memory or disk exceed their bounds."""
    parser = argparse.ArgumentParser(prog="hostile_class", description=__doc__)
    parser.add_argument("--size", type=int, default=1000, metavar="N", help="submissions")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    figures = _measure(options.size, options.workers)
    each_bytes = figures.disk_bytes / figures.submissions
    print(
        f"{figures.submissions} hostile submissions in {figures.seconds:.0f} s: a worker's peak "
        f"{figures.worker_peak_bytes / _MIB:.0f} MiB (at most {_MOST_WORKER_BYTES / _MIB:.0f}), "
        f"the controller's {figures.controller_peak_bytes / _MIB:.0f} MiB, on disk "
        f"{figures.disk_bytes / _MIB:.0f} MiB, {each_bytes / 1e6:.2f} MB each "
        f"(at most {_MOST_DISK_BYTES / 1e6:.2f}), the largest "
        f"{figures.largest_bytes / 1e6:.2f} MB ({figures.largest_kind}); {figures.ends}",
        flush=True,
    )
    if options.json:
        options.json.write_text(json.dumps(asdict(figures), indent=1) + "\n")
    return 0 if figures.held else 1


def _measure(size: int, workers: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="hostile-class-") as folder:
        home, out = Path(folder), OutFolder(Path(folder) / "out")
        _hand_in(home / "submitted", size)
        places = ["--submitted", str(home / "submitted"), "--out", str(out)]
        command = [sys.executable, "-m", "autograder", "grade", _LAB, "--workers", str(workers)]
        begin = time.perf_counter()
        grading = subprocess.Popen(
            [*command, *places], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        worker = controller = 0
        while grading.poll() is None:
            with suppress(OSError):  # it has just ended
                controller = memory.status_bytes(grading.pid, "VmHWM")
            worker = max([worker, *_worker_peaks(grading.pid)])
            with suppress(subprocess.TimeoutExpired):
                grading.wait(_LOOK_SECONDS)
        seconds = time.perf_counter() - begin
        own = {student: _bytes_of(out.path, student) for student in _students(size)}
        largest = max(own, key=lambda student: own[student])
        return Figures(
            submissions=size,
            seconds=seconds,
            worker_peak_bytes=worker,
            controller_peak_bytes=controller,
            disk_bytes=sum(_on_disk(path) for path in out.path.rglob("*")),
            largest_bytes=own[largest],
            largest_kind=largest.partition("-")[2],
            ends=_ends(out.grades),
        )


def _students(size: int) -> list[str]:
    kinds = list(KINDS)
    return [f"s{number:04d}-{kinds[number % len(kinds)]}" for number in range(size)]


def _hand_in(submitted: Path, size: int) -> None:
    release = release_of(_LAB, COURSE.releases)
    (solved,) = solved_notebooks(find_lab(_LAB), release, 1)
    for student in _students(size):
        notebook = deepcopy(solved)
        KINDS[student.partition("-")[2]](notebook)
        write_notebook(notebook, submitted / student / _LAB / f"{_LAB}.ipynb")


def _worker_peaks(controller: int) -> Iterator[int]:
    """The peaks of the grading processes, which are forks of the controller's fork server."""
    for server in _children(controller):
        for worker in _children(server):
            with suppress(OSError):
                yield memory.status_bytes(worker, "VmHWM")


def _children(pid: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def _bytes_of(out: Path, student: str) -> int:
    places = [out / "feedback" / student, out / "autograded" / student]
    paths = [path for place in places for path in place.rglob("*")]
    return sum(map(_on_disk, [*paths, *out.glob(f"journal/*/{student}.entry")]))


def _on_disk(path: Path) -> int:
    status = path.lstat()
    return 512 * status.st_blocks


def _ends(grades: Path) -> dict[str, int]:
    """How many rows of grades.csv have each status."""
    with grades.open(newline="", encoding="utf-8") as file:
        return dict(sorted(Counter(row["status"] for row in csv.DictReader(file)).items()))


if __name__ == "__main__":
    raise SystemExit(main())
