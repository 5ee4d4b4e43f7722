"""The cost of measuring: the same step plain, under MemoryMeter, and under torch's MemTracker."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.distributed._tools.mem_tracker import MemTracker

from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT, training_step
from peakmem.specs.models import ModelShape

__all__ = ["meter_cost"]

_SHAPE = ModelShape("bench", n_layers=12, d_model=64, n_heads=4, vocab=256, context=32)


@dataclass(frozen=True)
class MeterCost:
    """Median seconds of one training step: plain, and under each of the two meters."""

    plain_seconds: float
    meter_seconds: float
    tracker_seconds: float

    @property
    def ratio(self) -> float:
        """Seconds that MemoryMeter adds to the step, divided by those that MemTracker adds."""
        added = self.tracker_seconds - self.plain_seconds
        return (self.meter_seconds - self.plain_seconds) / added

    def __str__(self) -> str:
        return (
            f"step {self.plain_seconds * 1e3:.1f} ms; under MemoryMeter with its ledger "
            f"{self.meter_seconds * 1e3:.1f} ms, under MemTracker "
            f"{self.tracker_seconds * 1e3:.1f} ms; added time, ratio {self.ratio:.2f}"
        )


def meter_cost(rounds: int = 5) -> MeterCost:
    """Time a small GPT's step in turns, so that all three see the same load on the machine.

    The step has small tensors and many operators, so that a meter's own work matters most.
    MemoryMeter's time includes making the ledger, MemTracker's a snapshot of the peak.
    """
    model = GPT(_SHAPE)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    tokens = torch.zeros(2, 32, dtype=torch.long)

    def step() -> None:
        training_step(model, optimizer, [(tokens, tokens)])

    def metered() -> None:
        with MemoryMeter("cpu").track(model, optimizer, tokens) as meter:
            step()
        meter.ledger()

    def tracked() -> None:
        tracker = MemTracker()
        tracker.track_external(model, optimizer, tokens)
        with tracker:
            step()
        tracker.get_tracker_snapshot("peak")

    ways: list[Callable[[], None]] = [step, metered, tracked]
    seconds: list[list[float]] = [[], [], []]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about MemTracker's module hooks
        for round_number in range(rounds + 1):
            for way, found in zip(ways, seconds, strict=True):
                start = time.perf_counter()
                way()
                if round_number:  # the first is warm-up
                    found.append(time.perf_counter() - start)
    return MeterCost(*(statistics.median(found) for found in seconds))


if __name__ == "__main__":
    print(meter_cost())
