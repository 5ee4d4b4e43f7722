"""Probe of lab 8's arithmetic: bytes of model states per rank, from sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peakmem.probes import Namespace, call_each

__all__ = ["model_state_bytes"]


def model_state_bytes(student: Namespace, calls: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Call `model_state_bytes` for each item of `calls`."""
    return call_each(student.model_state_bytes, calls)
