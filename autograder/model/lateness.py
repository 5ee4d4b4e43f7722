"""What being late costs one submission."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ON_TIME", "Lateness"]


@dataclass(frozen=True)
class Lateness:
    """How late a submission is, and what that takes off its points."""

    #: The percentage of the points that is taken off.
    percent_off: float = 0.0
    #: The days begun since it was due; 0 if they were not written down.
    days: int = 0

    def left_of(self, points: float) -> float:
        """Return what is left of points.

        >>> round(Lateness(percent_off=20).left_of(21.5), 6)
        17.2
        """
        return points * (1 - self.percent_off / 100)

    def __str__(self) -> str:
        """Return what is taken off, and why, as a page says it.

        >>> str(Lateness(20, days=2)), str(Lateness(10))
        ('20% for 2 days', '10% for being late')
        """
        days = f"{self.days} day{'s' * (self.days != 1)}" if self.days else "being late"
        return f"{self.percent_off:g}% for {days}"


ON_TIME = Lateness()
