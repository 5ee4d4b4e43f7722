"""Figures of a measurement with their bounds, and the outcome of the part that measures them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Figure", "NotRun", "Outcome"]


class NotRun(Exception):
    """A part couldn't run here, which is neither a failure nor a success; the message says why."""


@dataclass(frozen=True)
class Figure:
    """A number with its unit, and its bounds, if any."""

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None
    #: The rows that it summarizes, for the record; the printed table leaves them out.
    detail: tuple[dict[str, Any], ...] = ()

    @property
    def held(self) -> bool:
        """Whether the value is within its bounds."""
        too_small = self.least is not None and self.value < self.least
        return not too_small and (self.most is None or self.value <= self.most)

    @property
    def bound(self) -> str:
        """The bounds as text; "" if there are none."""
        words = [f">= {self.least:g}"] if self.least is not None else []
        return ", ".join(words + ([f"<= {self.most:g}"] if self.most is not None else []))


@dataclass(frozen=True)
class Outcome:
    """A part's outcome: its figures, or why there are none."""

    part: str
    state: str  # "run", "not run" or "failed"
    figures: tuple[Figure, ...] = ()
    reason: str = ""
    seconds: float = 0.0
