"""The timeline returns the values put into it, and is small."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from peakmem.measure.timeline import Timeline

_EVENTS = st.tuples(st.sampled_from("abc"), st.integers(0, 2**62), st.integers(0, 255))


@given(st.lists(_EVENTS, min_size=1))
def test_what_was_added_comes_back_in_order(added: list[tuple[str, int, int]]) -> None:
    timeline = Timeline()
    for event in added:
        timeline.add(*event)
    assert timeline.events == [(name, live) for name, live, _ in added]
    assert timeline.names == [name for name, _, _ in added]
    assert list(timeline.parts) == [part for _, _, part in added]
    assert len(timeline) == len(added)


def test_an_event_takes_at_most_17_bytes() -> None:
    timeline = Timeline()
    timeline.add("mul", 2**40, 0)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100_000):
        timeline.add("mul", 2**40, 0)
    rise_bytes = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert rise_bytes <= 100_000 * 17 * 9 / 8 + 1000  # arrays grow ahead of need, by an eighth
