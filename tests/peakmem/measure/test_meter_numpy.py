"""The meter and numpy: its arrays to the byte, and no Python objects."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from peakmem.measure.meter import MemoryMeter, measure_call

KIB = 1024
ONE_KIB = torch.zeros(KIB, dtype=torch.uint8)
SCALAR_BYTES = 16  # numpy makes arrays of its own for a number and for what it is converted to


class Program:
    """Runs instructions, and counts by arithmetic what numpy holds."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.garbage: list[object] = []
        self.live_bytes = self.peak_bytes = 0

    def allocate(self, kilo: int) -> None:
        self.arrays.append(np.full(125 * kilo, 1.0))
        self._note(1000 * kilo)

    def free(self, index: int) -> None:
        if self.arrays:
            self._note(-self.arrays.pop(index % len(self.arrays)).nbytes)

    def compute(self, index: int) -> None:
        """Out of place: two temporaries are there at once."""
        if self.arrays:
            array = self.arrays[index % len(self.arrays)]
            np.add(np.multiply(array, array), array)
            self._note(2 * array.nbytes)
            self._note(-2 * array.nbytes)

    def scale(self, index: int) -> None:
        """In place, by a number."""
        if self.arrays:
            self.arrays[index % len(self.arrays)][...] *= 0.5

    def look(self, index: int) -> None:
        """A view, and a tensor of it: no memory of their own."""
        if self.arrays:
            self.garbage.append(
                torch.from_numpy(self.arrays[index % len(self.arrays)][::2]).add_(1)
            )
            self.garbage.pop()

    def litter(self, kilo: int) -> None:
        """Python's own objects, some of which stay."""
        self.garbage += [bytearray(1000 * kilo), [float(i) for i in range(kilo)], {"a": kilo}]
        del self.garbage[:-20]

    def _note(self, more_bytes: int) -> None:
        self.live_bytes += more_bytes
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)


_INSTRUCTIONS = st.tuples(
    st.sampled_from(["allocate", "allocate", "free", "compute", "scale", "look", "litter"]),
    st.integers(1, 40),
)


@given(st.lists(_INSTRUCTIONS, max_size=40))
def test_the_peak_of_any_program_is_the_most_that_its_arrays_held(
    instructions: list[tuple[str, int]],
) -> None:
    program = Program()
    with MemoryMeter("cpu", count_numpy=True).track(ONE_KIB) as meter:
        for name, number in instructions:
            getattr(program, name)(number)
        program.arrays.clear()
    assert meter.numpy_peak_bytes is not None
    assert 0 <= meter.numpy_peak_bytes - program.peak_bytes <= SCALAR_BYTES


def test_numpy_is_a_figure_of_its_own() -> None:
    with MemoryMeter("cpu", count_numpy=True).track(ONE_KIB) as meter:
        big = np.zeros(100 * KIB, dtype=np.uint8)
        shared = torch.from_numpy(big)
        shared.add_(1)
        del big, shared
        np.zeros(30 * KIB, dtype=np.uint8)
    assert (meter.peak_bytes, meter.numpy_peak_bytes) == (KIB, 100 * KIB)
    assert not tracemalloc.is_tracing()


@pytest.mark.parametrize(
    "scratch",
    [lambda: bytearray(KIB * KIB), lambda: list(range(99_999)), lambda: __import__("this")],
    ids=["bytes", "a list", "a module"],
)
def test_objects_of_pythons_do_not_count(
    scratch: Callable[[], object], capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryMeter("cpu", count_numpy=True).track(ONE_KIB) as meter:
        scratch()
    assert meter.numpy_peak_bytes == 0


def test_an_array_of_another_thread_counts() -> None:
    with MemoryMeter("cpu", count_numpy=True).track(ONE_KIB) as meter:
        thread = threading.Thread(target=np.zeros, args=(KIB,))
        thread.start()
        thread.join()
    assert meter.numpy_peak_bytes == 8 * KIB


def test_a_hundred_thousand_operators_add_nothing_to_what_numpy_held() -> None:
    with MemoryMeter("cpu", count_numpy=True).track(ONE_KIB) as meter:
        for _ in range(100_000):
            ONE_KIB + 1
        np.zeros(KIB, dtype=np.uint8)
    assert (meter.peak_bytes, meter.numpy_peak_bytes) == (2 * KIB, KIB)


def test_nested_meters_share_tracemalloc() -> None:
    with MemoryMeter("cpu", count_numpy=True).track(ONE_KIB) as outer:
        np.zeros(200 * KIB, dtype=np.uint8)
        kept = np.zeros(10 * KIB, dtype=np.uint8)
        with MemoryMeter("cpu", count_numpy=True).track(ONE_KIB) as inner:
            np.zeros(50 * KIB, dtype=np.uint8)
        assert tracemalloc.is_tracing()
        del kept
    assert (inner.numpy_peak_bytes, outer.numpy_peak_bytes) == (50 * KIB, 200 * KIB)
    assert not tracemalloc.is_tracing()


def test_a_figure_that_was_not_asked_for_is_none_and_not_zero() -> None:
    with MemoryMeter("cpu").track(ONE_KIB) as meter:
        np.zeros(KIB)
    assert meter.numpy_peak_bytes is None
    assert measure_call(np.zeros, KIB, device="cpu", track=[ONE_KIB]).numpy_peak_bytes is None


def test_stopping_tracemalloc_is_reported() -> None:
    meter = MemoryMeter("cpu", count_numpy=True).track(ONE_KIB)
    with pytest.raises(RuntimeError, match="tracemalloc was stopped"), meter:
        tracemalloc.stop()


def test_tracemalloc_traces_all_of_python_again_after_a_meter() -> None:
    measure_call(np.zeros, KIB, device="cpu", track=[ONE_KIB], count_numpy=True)
    tracemalloc.start()
    try:
        kept = [bytearray(KIB) for _ in range(100)]
        assert tracemalloc.get_traced_memory()[0] >= 100 * KIB
        del kept
        assert tracemalloc.get_traced_memory()[0] < 100 * KIB
    finally:
        tracemalloc.stop()


def test_a_tracemalloc_that_is_running_goes_on_and_counts_pythons_objects_too() -> None:
    tracemalloc.start()
    try:
        with MemoryMeter("cpu", count_numpy=True).track(ONE_KIB) as meter:
            kept = bytearray(100 * KIB)
        assert meter.numpy_peak_bytes is not None
        assert 100 * KIB <= meter.numpy_peak_bytes < 130 * KIB
        assert tracemalloc.get_traced_memory()[0] >= 100 * KIB
        del kept
    finally:
        tracemalloc.stop()
