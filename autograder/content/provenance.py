"""Fingerprints what a task's answers are answers to, so that no others are judged as such."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

import peakmem
from autograder.model.task import Case, Task
from peakmem import plain

__all__ = ["asked_of"]


def asked_of(task: Task, cases: Sequence[Case]) -> str:
    """Return a digest of the task's probe and of the inputs and budgets of its cases.

    While it is the same, answers that were given once are what grading again would give: judging
    them again is enough.
    """
    inputs = [{**case.inputs, "budget": _budget(case)} for case in cases]
    module = task.probe_path.partition(":")[0].rpartition(".")[2]
    text = f"{task.probe_path} {_source(module)}".encode() if task.probe else b""
    return hashlib.sha256(text + plain.encode(inputs)).hexdigest()[:32]


def _budget(case: Case) -> tuple[Any, ...] | None:
    return None if case.budget is None else astuple(case.budget)


@cache
def _source(module: str) -> str:
    """A digest of the probes' module, and of what calls probes."""
    probes = Path(peakmem.__file__).parent / "probes"
    sources = [(probes / name).read_bytes() for name in ("__init__.py", f"{module}.py")]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()
