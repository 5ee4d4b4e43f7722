"""Builds a lab's two notebooks, solved and released, from its one hand-edited source.

`solutions/<lab>.py` (jupytext percent) becomes `solutions/<lab>/<lab>.ipynb`, which nbgrader calls
the source. From that nbgrader makes `labs/<lab>/<lab>.ipynb`, the release, without solutions and
hidden tests. The same source gives the same bytes everywhere, so both notebooks are committed.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode
from traitlets.config.loader import Config

from autograder.authoring.lint import release_violations, source_violations
from autograder.base.course import Course
from autograder.base.errors import AutograderError
from autograder.content import find_lab
from autograder.notebooks.stamp import digest, recorded, write_record

__all__ = ["BuildError", "build", "check", "find_sources", "is_self_check", "read_source"]


class BuildError(AutograderError, ValueError):
    """The sources can't be released as they are; `violations` has a sentence for each fault."""

    def __init__(self, violations: Iterable[str]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(self.violations))


def build(course: Course, labs: Iterable[str] | None = None) -> list[Path]:
    """Build these labs of the course, by default all; return the changed files.

    Raises BuildError, before anything is written, with every fault in every source, and every
    edited notebook, because its edits would be lost. Raises ValueError, listing the labs, if a lab
    has no source.
    """
    changed = []
    files = _built(course, labs)
    edited = [path for path, content in files.items() if _is_edited(course, path, content)]
    if edited:
        raise BuildError(_edited(course, path) for path in edited)
    for path, content in files.items():
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        changed.append(path)
    return changed


def check(course: Course, labs: Iterable[str] | None = None) -> list[str]:
    """Return a sentence for each built notebook that differs from its source; writes nothing.

    Raises as `build` does.
    """
    labs = None if labs is None else list(labs)
    expected = _built(course, labs)
    sentences = []
    for path, content in expected.items():
        name = course.name_of(path)
        command = f"run `autograder build {path.stem}`"
        if not path.is_file():
            sentences.append(f"{name} doesn't exist; {command}.")
        elif _is_edited(course, path, content):
            sentences.append(_edited(course, path))
        elif path.read_bytes() != content:
            sentences.append(
                f"{name} differs from what {_source_name(course, path.stem)} builds; {command}."
            )
    for path in _notebooks(course, labs):
        if path not in expected:
            name = course.name_of(path)
            sentences.append(f"{name} has no source; delete it, or move it elsewhere.")
    return sentences


def _is_edited(course: Course, path: Path, content: bytes) -> bool:
    """Whether a solved notebook was edited since the build, to something not built from source."""
    if path != course.solved_notebook(path.stem) or not path.is_file():
        return False
    try:
        there = nbformat.read(path, as_version=4)
    except ValueError:  # for example a merge conflict, which no editor saves
        return False
    built = nbformat.reads(content.decode(), as_version=4)
    return recorded(there) not in (None, digest(there)) and digest(there) != digest(built)


def _edited(course: Course, path: Path) -> str:
    return (
        f"{course.name_of(path)} was edited since it was built; run `autograder build --pull "
        f"{path.stem}` to carry the edits into {_source_name(course, path.stem)}, or delete the "
        "notebook to drop them."
    )


def _source_name(course: Course, lab: str) -> str:
    return course.name_of(course.lab_sources()[lab])


def _built(course: Course, labs: Iterable[str] | None) -> dict[Path, bytes]:
    """The content of every file that building would write."""
    if not course.config_file.is_file():
        raise ValueError(
            f"{course} isn't a course folder: it has no {course.config_file.name}. Give the "
            "folder that contains solutions/ and labs/."
        )
    files: dict[Path, bytes] = {}
    violations: list[str] = []
    for source in find_sources(course, labs):
        name = source.stem
        label = course.name_of(source)
        try:
            lab = find_lab(name)
        except ValueError as error:
            violations.append(f"{label}: {error}. Add its tasks, or rename the source.")
            continue
        notebook = read_source(source.read_text(encoding="utf-8"), lab.number)
        found = source_violations(label, notebook, lab)
        found += _strays(course, name)
        if not found:
            text = nbformat.writes(notebook) + "\n"
            try:
                release = _release(name, text, course)
            except RuntimeError as error:
                found.append(f"{label}: nbgrader can't release it. {error}")
            else:
                found += release_violations(label, nbformat.reads(release, as_version=4), lab)
                files[course.solved_notebook(name)] = text.encode()
                files[course.released_notebook(name)] = release.encode()
        violations += found
    if violations:
        raise BuildError(violations)
    return files


def find_sources(course: Course, labs: Iterable[str] | None) -> list[Path]:
    """Return each lab's source, by default all. Raises ValueError if a lab has none."""
    there = course.lab_sources()
    if not there:
        raise ValueError(
            f"{course} has no {course.solutions.name}/lab*.py, which this command needs. Build and "
            "release ordinary nbgrader assignments with nbgrader itself; they can't be graded on "
            "Gradescope."
        )
    wanted = list(there) if labs is None else list(dict.fromkeys(labs))
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise ValueError(
            f"{course.solutions.name}/ has no source of {', '.join(unknown)}; "
            f"its labs are {', '.join(there)}"
        )
    return [there[name] for name in wanted]


def is_self_check(cell: NotebookNode) -> bool:
    """Return whether this is a self-check, which JupyterLab opens collapsed to its first line.

    It is run more often than read, and it may contain the answer to a prediction above it.
    """
    grade_id = str(cell.metadata.get("nbgrader", {}).get("grade_id"))
    return cell.cell_type == "code" and grade_id.endswith("-check")


def read_source(text: str, number: str) -> NotebookNode:
    """Return a percent source as a notebook: cell ids are reproducible, self-checks collapsed."""
    notebook: NotebookNode = jupytext.reads(text, fmt="py:percent")
    # jupytext's pairing would put solutions back into a release opened beside its .py file.
    notebook.metadata = NotebookNode(kernelspec=notebook.metadata.get("kernelspec", {}))
    unnamed = 0
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id is None:
            unnamed += 1
        cell["id"] = grade_id or f"{number}-cell-{unnamed}"
        if is_self_check(cell):
            cell.metadata["jupyter"] = NotebookNode(source_hidden=True)
    write_record(notebook)
    return notebook


def _strays(course: Course, name: str) -> list[str]:
    """Other files in the folder that nbgrader copies into the release, solutions included."""
    solved = course.solved_notebook(name)
    return [
        f"{course.name_of(path)}: only {name}.ipynb belongs in this folder, because nbgrader "
        "copies all other files in it to the students. Move it elsewhere."
        for path in sorted(solved.parent.rglob("*"))
        if path.is_file() and path != solved and ".ipynb_checkpoints" not in path.parts
    ]


def _notebooks(course: Course, labs: Iterable[str] | None) -> list[Path]:
    """The notebooks in the places of built ones, of these labs or of all."""
    names = ["*"] if labs is None else list(labs)
    return [
        path
        for folder in (course.solutions, course.releases)
        for name in names
        for path in sorted(folder.glob(f"{name}/*.ipynb"))
    ]


def _release(name: str, source: str, course: Course) -> str:
    """The output of `nbgrader generate_assignment --no-db` for a source notebook.

    Raises RuntimeError, with nbgrader's message, if it refuses.
    """
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log

    with tempfile.TemporaryDirectory(prefix="peakmem-build-") as folder:
        scratch = Course(Path(folder))
        settings: dict[str, Any] = {
            "CourseDirectory": {
                "root": folder,
                "assignment_id": name,
                "source_directory": scratch.solutions.name,
                "release_directory": scratch.releases.name,
            },
            "GenerateAssignment": {"no_database": True},
            "SaveCells": {"enabled": False},
        }
        config = copy.deepcopy(course.config)
        config.merge(Config(settings))
        path = scratch.solved_notebook(name)
        path.parent.mkdir(parents=True)
        path.write_text(source, encoding="utf-8")
        # nbgrader's log is long, so it isn't printed, only kept for the error message.
        converter = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
        outcome = capture_log(converter)
        if not outcome["success"]:
            raise RuntimeError(outcome.get("log") or outcome["error"])
        return scratch.released_notebook(name).read_text(encoding="utf-8")
