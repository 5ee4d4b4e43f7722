"""Makes the zip to upload to Gradescope as a lab's autograder.

It contains the library and the grader as wheels, the lab's released and source notebooks, and the
lab's own secret, which is derived from the course's. The course's secret isn't in it, so that a
reader of the zip can draw only this lab's cases on Gradescope. The zip is for instructors only,
because it contains the tasks and their answers.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.authoring.build import check, find_sources
from autograder.authoring.release import PLAIN, PRIVATE, PROGRAM, grader_wheel, library_wheel, pack
from autograder.base.course import Course
from autograder.base.files import write_whole
from autograder.content import find_lab
from autograder.notebooks.questions import questions_of
from autograder.notebooks.released import release_of
from autograder.notebooks.stamp import release_version

__all__ = ["Points", "lab_secret", "make_zip", "points_of"]

_TEMPLATES = Path(__file__).parents[1] / "templates"


@dataclass(frozen=True)
class Points:
    """A lab's points on Gradescope, which has no GPU and no Linux namespaces."""

    #: Points that the autograder gives.
    graded: float
    #: Points for manual grading.
    manual: float
    #: Points that are left out because they need a GPU.
    gpu: float
    #: Points that are left out because their processes talk to each other.
    isolation: float


def lab_secret(course_secret: bytes, lab: str) -> bytes:
    """Return a lab's secret for Gradescope, from which the course's can't be derived."""
    return hmac.new(course_secret, f"gradescope {lab}".encode(), hashlib.sha256).digest()


def make_zip(course: Course, lab: str, course_secret: bytes, out: Path) -> str:
    """Write the autograder of `lab` to the file `out`; return the version of the lab's release.

    The same course gives the same bytes. Raises ValueError if the lab is unknown or a built
    notebook differs from what its source builds, and RuntimeError if a wheel can't be built.
    """
    find_sources(course, [lab])
    if stale := check(course, [lab]):
        raise ValueError("\n".join(stale))
    version = release_version(nbformat.from_dict(release_of(lab, course.releases)))
    files = {
        "setup.sh": (_TEMPLATES / "gradescope_setup.sh").read_bytes(),
        "run_autograder": (_TEMPLATES / "gradescope_run.sh").read_bytes(),
        "requirements.txt": _requirements(course),
        "constraints.txt": course.constraints_file.read_bytes(),
        "autograder.json": json.dumps({"lab": lab, "release": version}).encode() + b"\n",
        "secret": lab_secret(course_secret, lab).hex().encode() + b"\n",
        **_notebooks(course, lab),
    }
    for name, wheel in (library_wheel(course), grader_wheel(course)):
        files[f"wheels/{name}"] = wheel
    modes = {"setup.sh": PROGRAM, "run_autograder": PROGRAM, "secret": PRIVATE}
    write_whole(out, pack({name: (data, modes.get(name, PLAIN)) for name, data in files.items()}))
    return version


def points_of(course: Course, lab: str) -> Points:
    """Return how many of the lab's points Gradescope can give by itself, and how many it can't."""
    tasks = {task.id: task for task in find_lab(lab).tasks}
    graded = manual = gpu = isolation = 0.0
    for question in questions_of([lab], course)[lab]:
        if question.is_manual:
            manual += question.points
        elif tasks[question.id].needs_gpu:
            gpu += question.points
        elif tasks[question.id].ranks:
            isolation += question.points
        else:
            graded += question.points
    return Points(graded, manual, gpu, isolation)


def _notebooks(course: Course, lab: str) -> Mapping[str, bytes]:
    """The lab's folders and the course's settings, below `course/` in the zip."""
    folders = (course.releases, course.solutions)
    files = [path for folder in folders for path in (folder / lab).rglob("*")]
    files += [course.config_file]
    return {
        f"course/{course.name_of(path)}": path.read_bytes()
        for path in files
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    }


def _requirements(course: Course) -> bytes:
    """The packages that both wheels need, installed where only root can read the wheels."""
    needed = set()
    for path in (course.project_files[0], course.grader / "pyproject.toml"):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        needed |= {line for line in project["dependencies"] if line != "peakmem"}
    return "".join(f"{line}\n" for line in sorted(needed)).encode()
