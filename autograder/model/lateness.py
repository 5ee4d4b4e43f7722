"""The cost of a late submission."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.base.plural import plural

__all__ = ["ON_TIME", "Lateness"]


@dataclass(frozen=True)
class Lateness:
    """How late a submission is, and the points that this costs."""

    #: The percentage of the points taken off.
    percent_off: float = 0.0
    #: Days begun since the due date; 0 if not recorded.
    days: int = 0

    def left_of(self, points: float) -> float:
        """Return the points that remain.

        >>> round(Lateness(percent_off=20).left_of(21.5), 6)
        17.2
        """
        return points * (1 - self.percent_off / 100)

    def __str__(self) -> str:
        """Return the deduction and its reason, as a page shows them.

        >>> str(Lateness(20, days=2)), str(Lateness(10))
        ('20% for 2 days', '10% for being late')
        """
        days = plural(self.days, "day") if self.days else "being late"
        return f"{self.percent_off:g}% for {days}"


ON_TIME = Lateness()
