"""Probe of lab 10's memory snapshots, which are plain data that torch recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peakmem.probes import Namespace, call_each

__all__ = ["who_holds_the_peak"]


def who_holds_the_peak(student: Namespace, calls: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Call `who_holds_the_peak(snapshot)` for each of `calls`, a list with one snapshot each."""
    return call_each(student.who_holds_the_peak, calls)
