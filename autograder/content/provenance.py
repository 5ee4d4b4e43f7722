"""Fingerprints a task's questions, so that only answers to the same questions are judged."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

from autograder.model.task import Case, Task
from peakmem import probes
from peakmem.core import serialization

__all__ = ["asked_of", "probe_files"]


def asked_of(task: Task, cases: Sequence[Case]) -> str:
    """Return a digest of the task's probe and of the inputs and budgets of its cases.

    As long as the digest is unchanged, grading again would give the recorded answers, so judging
    these again is enough.
    """
    inputs = [{**case.inputs, "budget": _budget(case)} for case in cases]
    module = task.probe_path.partition(":")[0].rpartition(".")[2]
    text = f"{task.probe_path} {_source(module)}".encode() if task.probe else b""
    return hashlib.sha256(text + serialization.encode(inputs)).hexdigest()[:32]


def _budget(case: Case) -> tuple[Any, ...] | None:
    return None if case.budget is None else astuple(case.budget)


@cache
def _source(module: str) -> str:
    """A digest of the probes' module and of the code that calls probes."""
    sources = [path.read_bytes() for path in probe_files(module)]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def probe_files(number: str) -> list[Path]:
    """Return the files of a lab's probes: those shared by all labs, and its own files."""
    folder = Path(probes.__file__).parent
    own = [*folder.glob(f"{number}.py"), *folder.glob(f"{number}/**/*.py")]
    shared = [path for path in folder.glob("*.py") if not path.stem.startswith("lab")]
    return [*sorted(shared), *sorted(own)]
