"""Fingerprints everything that a grade depends on except the submission, to find stale grades."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import peakmem
from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.content import has_tasks
from autograder.content.provenance import probe_files
from autograder.model.scoring import SANE, Rules

__all__ = ["changed", "environment", "files_of", "terms_of"]

_GRADER, _LIBRARY = Path(__file__).parents[1], Path(peakmem.__file__).parent
_PACKAGES = ("ipython", "matplotlib", "numpy", "torch")  # their output can change grades


def terms_of(
    lab: str, course: Course, limits: Limits, *, isolated: bool, rules: Rules = SANE
) -> dict[str, Any]:
    """Return the terms of grading `lab` now: its version, the limits, and the isolation.

    The version is a digest of the lab's tasks and probes, the release that submissions are restored
    to, and the instructor's notebook with the points. For an ordinary assignment it is a digest of
    its notebooks and data files, and the terms include the `rules`.
    """
    notebooks = files_of(lab, course)
    terms = {
        "lab": _digest(notebooks),
        "notebooks": _digest(notebooks),
        "limits": asdict(limits),
        "isolated": isolated,
    }
    if not has_tasks(lab):
        return {**terms, "rules": asdict(rules)}
    number = lab.partition("_")[0]
    files = [
        *sorted((_GRADER / "content" / number).rglob("*.py")),
        *probe_files(number),
        *notebooks,
    ]
    return {**terms, "lab": _digest(files)}


def files_of(lab: str, course: Course) -> list[Path]:
    """Return the files of the course that grading `lab` reads."""
    if has_tasks(lab):
        return course.built_notebooks(lab)
    settings = [course.config_file] if course.config_file.is_file() else []
    return [*course.source_notebooks(lab), *course.data_files(lab).values(), *settings]


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return, in words, each way in which a grade's terms differ from the current ones.

    >>> changed({"lab": "a", "limits": {"files": 1}}, {"lab": "b", "limits": {"files": 2}})
    ['another version of the lab', 'other limits (files 1, now 2)']
    """
    words = []
    if old.get("lab") != new.get("lab"):
        words.append("another version of the lab")
    before, now = old.get("limits", {}), new.get("limits", {})
    different = [f"{k} {before.get(k)}, now {v}" for k, v in now.items() if before.get(k) != v]
    if different:
        words.append(f"other limits ({'; '.join(different)})")
    was, rules = old.get("rules", {}), new.get("rules", {})
    others = [f"{name} {was.get(name)}, now {v}" for name, v in rules.items() if was.get(name) != v]
    if others:
        words.append(f"other rules ({'; '.join(others)})")
    if old.get("isolated") != new.get("isolated"):
        words.append("the sandbox on" if old.get("isolated") else "the sandbox off")
    return words


def environment() -> dict[str, str]:
    """Return the versions and sources that must be equal on all machines that grade together."""
    sources = [path for home in (_GRADER, _LIBRARY) for path in _modules(home)]
    versions = {package: version(package) for package in _PACKAGES}
    python = platform.python_version()
    return {"python": python, **versions, "grader and library": _digest(sources)}


def _modules(package: Path) -> list[Path]:
    """A package's modules, without the copies that `pip install ./autograder` leaves in build/."""
    found = sorted(package.rglob("*.py"))
    return [path for path in found if path.relative_to(package).parts[0] != "build"]


def _digest(files: Iterable[Path] | Sequence[Path]) -> str:
    total = hashlib.sha256()
    for path in files:
        total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]
