"""Peaks of a configuration's training step: measured, predicted, and the difference."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Row"]


@dataclass(frozen=True)
class Row:
    """One configuration: peaks of its third step in bytes; None for missing figures."""

    name: str
    measured_bytes: int
    predicted_bytes: int | None
    traced_bytes: int | None
    allocated_bytes: int | None = None  # CUDA: the allocator's, after rounding

    def right_side(self, predicted_bytes: int) -> bool:
        """Whether the answer is right for budgets 1 % above and 1 % below the measured peak."""
        return self.measured_bytes * 0.99 < predicted_bytes <= self.measured_bytes * 1.01

    def errors(self) -> dict[str, float]:
        """The relative errors of the existing predictions, by predictor."""
        found = {"build_ledger": self.predicted_bytes, "trace": self.traced_bytes}
        return {
            who: predicted / self.measured_bytes - 1
            for who, predicted in found.items()
            if predicted is not None
        }
