"""The GPU's clock as the probes read it, on a GPU made of two numbers."""

from __future__ import annotations

import pytest
import torch

from peakmem.probes.gpu import gpu_seconds, require_gpu


class _Gpu:
    """Work is queued for a number of ms, and done on synchronization."""

    def __init__(self) -> None:
        self.now_ms = self.queued_ms = 0.0

    def synchronize(self) -> None:
        self.now_ms += self.queued_ms
        self.queued_ms = 0.0

    def event(self, *, enable_timing: bool) -> _Event:
        assert enable_timing
        return _Event(self)


class _Event:
    def __init__(self, gpu: _Gpu) -> None:
        self.gpu, self.at_ms = gpu, float("nan")

    def record(self) -> None:  # on a stream of its own, which doesn't wait for other work
        self.at_ms = self.gpu.now_ms

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: _Event) -> float:
        return end.at_ms - self.at_ms


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> _Gpu:
    gpu = _Gpu()
    monkeypatch.setattr(torch.cuda, "synchronize", gpu.synchronize)
    monkeypatch.setattr(torch.cuda, "Event", gpu.event)
    return gpu


def test_the_time_is_the_median_after_the_warm_up_and_to_the_last_end(gpu: _Gpu) -> None:
    asked = iter([1000.0, 500.0, 3.0, 7.0, 2.0])

    def work() -> None:
        gpu.queued_ms += next(asked)

    assert gpu_seconds(work, repeats=3, warm_ups=2) == 0.003
    assert next(asked, None) is None


def test_work_that_was_queued_before_is_not_timed(gpu: _Gpu) -> None:
    gpu.queued_ms = 1000.0
    assert gpu_seconds(lambda: None, repeats=1, warm_ups=0) == 0.0


def test_without_a_gpu_the_error_says_what_was_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    require_gpu("speed times products on")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"speed times products on a CUDA GPU, but .* run it on"):
        require_gpu("speed times products on")
