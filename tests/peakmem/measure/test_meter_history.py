"""A meter without a history: the same figures, in memory that does not grow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn

from peakmem import OutOfMemory
from peakmem.measure.meter import MemoryMeter, measure_call

X = torch.zeros(256)


def train() -> None:
    """Two steps of Adam: forward, backward, views, in-place operators, state that comes late."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(inplace=True), nn.Linear(32, 4))
    adam = torch.optim.Adam(net.parameters(), foreach=False)
    for _ in range(2):
        net(torch.ones(16, 8)).square().mean().backward()
        adam.step()
        adam.zero_grad()


def operators(count: int) -> None:
    for _ in range(count):
        X + 1


def traced_peak(call: Callable[[], object]) -> int:
    """The peak of Python's objects during a call, including the meter's."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def metered(count: int, *, history: bool) -> None:
    with MemoryMeter("cpu", history=history).track(X):
        operators(count)


def test_only_a_history_grows_with_the_number_of_operators() -> None:
    metered(100, history=True)
    # Short-lived objects of each operator wait for Python's collector: some 50 to 100 KB.
    assert traced_peak(lambda: metered(5_000, history=False)) < 200_000
    assert traced_peak(lambda: metered(5_000, history=True)) > 600_000


def test_measure_call_keeps_none() -> None:
    measured = partial(measure_call, operators, device="cpu", track=[X])
    measured(100)
    assert traced_peak(lambda: measured(5_000)) < 200_000


def test_the_figures_are_the_same() -> None:
    figures = []
    for history in (False, True):
        with MemoryMeter("cpu", history=history) as meter:
            train()
            before = meter.peak_bytes
            meter.begin_again()
            train()
        figures.append((before, meter.peak_bytes, meter.live_bytes, meter.peak_operation))
    assert figures[0] == figures[1]


def test_a_budget_holds_without_a_history() -> None:
    with pytest.raises(OutOfMemory, match=r"asked for 1,024 bytes beside 1,024"):
        measure_call(torch.sin, X, device="cpu", budget_bytes=2000)


def test_what_was_not_kept_cannot_be_asked_for() -> None:
    with MemoryMeter("cpu", history=False).track(X) as meter:
        assert meter.begin_again() == 0
    with pytest.raises(RuntimeError, match="history=True"):
        _ = meter.timeline
    with pytest.raises(RuntimeError, match="history=True"):
        meter.ledger()
