"""Builds a lab's two notebooks, solved and released, from its one hand-edited source.

`solutions/<lab>.py` (jupytext percent) becomes `solutions/<lab>/<lab>.ipynb`, which nbgrader calls
the source, and nbgrader makes `labs/<lab>/<lab>.ipynb` of that, the release, with neither solutions
nor hidden tests. The same source gives the same bytes anywhere, so both notebooks are committed.
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
from traitlets.config.loader import Config, ConfigFileNotFound, PyFileConfigLoader

from autograder.authoring.lint import release_violations, source_violations
from autograder.base.errors import AutograderError
from autograder.content import find_lab
from autograder.notebooks.stamp import digest, recorded, write_record

__all__ = ["BuildError", "build", "check", "find_sources", "read_source"]

_SOURCES = "solutions"
_RELEASES = "labs"


class BuildError(AutograderError, ValueError):
    """Sources that must not be released as they are; `violations` has a sentence for each fault."""

    def __init__(self, violations: Iterable[str]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(self.violations))


def build(root: Path, labs: Iterable[str] | None = None) -> list[Path]:
    """Build the labs of the course in `root`, all of them by default; return the files it changed.

    Raises BuildError, with every fault of every source at once, before anything is written, and
    where a notebook was edited, for its edits would be lost; and ValueError, with the names there
    are, where a lab has no source.
    """
    changed = []
    files = _built(root, labs)
    edited = [path for path, content in files.items() if _is_edited(root, path, content)]
    if edited:
        raise BuildError(_edited(root, path) for path in edited)
    for path, content in files.items():
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        changed.append(path)
    return changed


def check(root: Path, labs: Iterable[str] | None = None) -> list[str]:
    """Return a sentence for each built notebook that is not what its source builds; write nothing.

    Raises as `build` does.
    """
    labs = None if labs is None else list(labs)
    expected = _built(root, labs)
    sentences = []
    for path, content in expected.items():
        name = path.relative_to(root).as_posix()
        command = f"run `autograder build {path.stem}`"
        if not path.is_file():
            sentences.append(f"{name} is not there; {command}.")
        elif _is_edited(root, path, content):
            sentences.append(_edited(root, path))
        elif path.read_bytes() != content:
            sentences.append(f"{name} is not what {_SOURCES}/{path.stem}.py builds; {command}.")
    for path in _notebooks(root, labs):
        if path not in expected:
            name = path.relative_to(root).as_posix()
            sentences.append(f"{name} is built from no source; delete it, or move it elsewhere.")
    return sentences


def _is_edited(root: Path, path: Path, content: bytes) -> bool:
    """Whether a source notebook was edited since it was built, and not to what is now built."""
    if path.parent.parent != root / _SOURCES or not path.is_file():
        return False
    try:
        there = nbformat.read(path, as_version=4)
    except ValueError:  # a merge conflict, say: nothing that an editor saves
        return False
    built = nbformat.reads(content.decode(), as_version=4)
    return recorded(there) not in (None, digest(there)) and digest(there) != digest(built)


def _edited(root: Path, path: Path) -> str:
    name = path.relative_to(root).as_posix()
    return (
        f"{name} was edited since it was built; run `autograder build --pull {path.stem}` to carry "
        f"the edits into {_SOURCES}/{path.stem}.py, or delete the notebook to drop them."
    )


def _built(root: Path, labs: Iterable[str] | None) -> dict[Path, bytes]:
    """Every file that building would write, with its content."""
    config = _course_config(root)
    files: dict[Path, bytes] = {}
    violations: list[str] = []
    for source in find_sources(root, labs):
        name = source.stem
        label = f"{_SOURCES}/{source.name}"
        try:
            lab = find_lab(name)
        except ValueError as error:
            violations.append(f"{label}: {error}. Add its tasks, or rename the source.")
            continue
        notebook = read_source(source.read_text(encoding="utf-8"), lab.number)
        found = source_violations(label, notebook, lab)
        found += _strays(root, name)
        if not found:
            text = nbformat.writes(notebook) + "\n"
            try:
                release = _release(name, text, config)
            except RuntimeError as error:
                found.append(f"{label}: nbgrader cannot release it. {error}")
            else:
                found += release_violations(label, nbformat.reads(release, as_version=4), lab)
                files[root / _SOURCES / name / f"{name}.ipynb"] = text.encode()
                files[root / _RELEASES / name / f"{name}.ipynb"] = release.encode()
        violations += found
    if violations:
        raise BuildError(violations)
    return files


def _course_config(root: Path) -> Config:
    try:
        return PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    except ConfigFileNotFound:
        raise ValueError(
            f"{root} is not the course's folder: it has no nbgrader_config.py. "
            "Give the folder that has solutions/ and labs/ in it."
        ) from None


def find_sources(root: Path, labs: Iterable[str] | None) -> list[Path]:
    """Return the source of each of these labs, of all labs for None; ValueError if one has none."""
    there = {path.stem: path for path in sorted((root / _SOURCES).glob("lab*.py"))}
    if not there:
        raise ValueError(
            f"{root} has no {_SOURCES}/lab*.py, which this command is for. Ordinary nbgrader "
            "assignments are built and released by nbgrader itself, and not graded on Gradescope."
        )
    wanted = list(there) if labs is None else list(dict.fromkeys(labs))
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise ValueError(
            f"{_SOURCES}/ has no source of {', '.join(unknown)}; its labs are {', '.join(there)}"
        )
    return [there[name] for name in wanted]


def read_source(text: str, number: str) -> NotebookNode:
    """Return a percent source as a notebook whose cell ids are the same each time."""
    notebook: NotebookNode = jupytext.reads(text, fmt="py:percent")
    # jupytext's pairing would put solutions back into a release opened beside a .py of its name.
    notebook.metadata = NotebookNode(kernelspec=notebook.metadata.get("kernelspec", {}))
    unnamed = 0
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id is None:
            unnamed += 1
        cell["id"] = grade_id or f"{number}-cell-{unnamed}"
    write_record(notebook)
    return notebook


def _strays(root: Path, name: str) -> list[str]:
    """What else lies in the folder that nbgrader copies into the release, solutions and all."""
    folder = root / _SOURCES / name
    return [
        f"{path.relative_to(root).as_posix()}: only {name}.ipynb belongs in this folder, for "
        "nbgrader copies whatever else is there to the students. Move it elsewhere."
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path != folder / f"{name}.ipynb"
        and ".ipynb_checkpoints" not in path.parts
    ]


def _notebooks(root: Path, labs: Iterable[str] | None) -> list[Path]:
    """The notebooks that lie where built ones do, of these labs, or of any."""
    names = ["*"] if labs is None else list(labs)
    return [
        path
        for folder in (_SOURCES, _RELEASES)
        for name in names
        for path in sorted((root / folder).glob(f"{name}/*.ipynb"))
    ]


def _release(name: str, source: str, config: Config) -> str:
    """What `nbgrader generate_assignment --no-db` makes of a source notebook.

    Raises RuntimeError, with nbgrader's own words, where it refuses.
    """
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log

    with tempfile.TemporaryDirectory(prefix="peakmem-build-") as folder:
        settings: dict[str, Any] = {
            "CourseDirectory": {
                "root": folder,
                "assignment_id": name,
                "source_directory": _SOURCES,
                "release_directory": _RELEASES,
            },
            "GenerateAssignment": {"no_database": True},
            "SaveCells": {"enabled": False},
        }
        config = copy.deepcopy(config)
        config.merge(Config(settings))
        path = Path(folder, _SOURCES, name, f"{name}.ipynb")
        path.parent.mkdir(parents=True)
        path.write_text(source, encoding="utf-8")
        # nbgrader logs at length; its words are kept for the error, and nothing is printed.
        converter = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
        outcome = capture_log(converter)
        if not outcome["success"]:
            raise RuntimeError(outcome.get("log") or outcome["error"])
        return Path(folder, _RELEASES, name, f"{name}.ipynb").read_text(encoding="utf-8")
