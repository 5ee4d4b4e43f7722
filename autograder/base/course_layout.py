"""Finds where a course keeps its source notebooks, as nbgrader does."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.base.files import inside

__all__ = [
    "assignment_names",
    "course_config",
    "data_files",
    "ignored_names",
    "is_ignored",
    "read_notebooks",
    "source_folder",
]

_CONFIG = "nbgrader_config.py"
_IGNORED = (".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback")  # nbgrader's own default


def course_config(root: Path) -> Config:
    """Return what the course's nbgrader_config.py sets; nothing where there is none."""
    path = root / _CONFIG
    return _loaded(path, path.stat().st_mtime_ns) if path.is_file() else Config()


def source_folder(root: Path) -> Path:
    """Return the folder that holds one folder of source notebooks an assignment.

    It is `CourseDirectory.source_directory` of nbgrader_config.py. Where nobody says, it is
    `source`, nbgrader's own name, or `solutions` where only that is there.
    """
    said = course_config(root).get("CourseDirectory", {}).get("source_directory")
    if isinstance(said, str):
        return root / said
    only_solutions = (root / "solutions").is_dir() and not (root / "source").is_dir()
    return root / ("solutions" if only_solutions else "source")


def assignment_names(root: Path) -> list[str]:
    """Return the names of the folders that hold source notebooks, in order."""
    folder = source_folder(root)
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path.name for path in there if any(path.glob("*.ipynb"))]


def read_notebooks(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the notebooks of a folder by name, in order, each as its file's JSON.

    The text of a cell is one string, where files may hold a list of lines. Raises ValueError for
    a file that is no notebook of nbformat 4.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.ipynb")):
        try:
            notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is no notebook: {error}") from error
        if "cells" not in notebook:
            raise ValueError(
                f"{path} is of nbformat {notebook.get('nbformat')}; expected 4. Open it in "
                "JupyterLab and save it again."
            )
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
        found[path.stem] = notebook
    return found


def data_files(root: Path, name: str) -> dict[str, Path]:
    """Return the files beside an assignment's notebooks: their path within its folder, and theirs.

    They are those that nbgrader copies beside a submission: all but notebooks and what
    `CourseDirectory.ignore` names.
    """
    folder = inside(source_folder(root), name)
    return dict(_files(folder, folder, ignored_names(root)))


def ignored_names(root: Path) -> tuple[str, ...]:
    """Return the patterns of names that nbgrader copies nowhere: `CourseDirectory.ignore`."""
    return tuple(course_config(root).get("CourseDirectory", {}).get("ignore", _IGNORED))


def is_ignored(name: str, ignored: tuple[str, ...]) -> bool:
    """Tell whether one of these patterns is about a file or folder of this name."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in ignored)


def _files(folder: Path, top: Path, ignored: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()):
        if path.suffix == ".ipynb" or is_ignored(path.name, ignored):
            continue
        if path.is_dir():
            yield from _files(path, top, ignored)
        elif path.is_file():
            yield path.relative_to(top).as_posix(), path


@lru_cache
def _loaded(path: Path, _changed_ns: int) -> Config:
    try:
        return PyFileConfigLoader(path.name, path=str(path.parent)).load_config()
    except Exception as error:
        raise ValueError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
