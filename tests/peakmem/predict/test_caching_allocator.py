"""The caching allocator against a byte map that follows the same rules by brute force."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peakmem.predict.caching_allocator import CachingAllocator, replay
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.ledger import Event, Ledger, Tensor
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Recipe

MIB = 2**20
SMALL = ModelShape("small", n_layers=2, d_model=256, n_heads=4, vocab=900, context=64)


class ByteMap:
    """Segments as lists of [size, owner], owner None if free; all are searched each time."""

    def __init__(self) -> None:
        self.segments: list[list[list]] = []

    def allocate(self, n_bytes: int, owner: int) -> None:
        while n_bytes % 512:
            n_bytes += 1
        is_small = n_bytes <= MIB
        fitting = [
            (part[0], number, place)
            for number, segment in enumerate(self.segments)
            if (sum(p[0] for p in segment) == 2 * MIB) == is_small
            for place, part in enumerate(segment)
            if part[1] is None and part[0] >= n_bytes
        ]
        if not fitting:
            if is_small:
                total = 2 * MIB
            elif n_bytes < 10 * MIB:
                total = 20 * MIB
            else:
                total = next(n for n in range(2 * MIB, 10**9, 2 * MIB) if n >= n_bytes)
            self.segments.append([[total, None]])
            fitting = [(total, len(self.segments) - 1, 0)]
        free, number, place = min(fitting)
        left = free - n_bytes
        if left > MIB or (is_small and left):
            self.segments[number][place : place + 1] = [[n_bytes, owner], [left, None]]
        else:
            self.segments[number][place][1] = owner

    def free(self, owner: int) -> None:
        for segment in self.segments:
            merged: list[list] = []
            for size, holder in segment:
                held = None if holder == owner else holder
                if merged and held is None and merged[-1][1] is None:
                    merged[-1][0] += size
                else:
                    merged.append([size, held])
            segment[:] = merged

    def bytes(self, *, allocated: bool) -> int:
        parts = [part for segment in self.segments for part in segment]
        return sum(size for size, owner in parts if owner is not None or not allocated)


sizes = st.one_of(
    st.integers(1, 3000),
    st.integers(MIB - 600, MIB + 600),
    st.integers(1, 12).map(lambda n: n * MIB),
    st.integers(9 * MIB, 13 * MIB),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.booleans(), sizes, st.integers(0, 50)), max_size=40))
def test_it_is_the_byte_maps(actions: list[tuple[bool, int, int]]) -> None:
    allocator, byte_map = CachingAllocator(), ByteMap()
    live: dict[int, tuple[int, int]] = {}  # address, requested bytes
    for number, (frees, size, which) in enumerate(actions):
        if frees and live:
            owner = sorted(live)[which % len(live)]
            allocator.free(live.pop(owner)[0])
            byte_map.free(owner)
        else:
            live[number] = allocator.allocate(size), size
            byte_map.allocate(size, number)
        assert allocator.allocated_bytes == byte_map.bytes(allocated=True)
        assert allocator.reserved_bytes == byte_map.bytes(allocated=False)
        requested = sum(n_bytes for _, n_bytes in live.values())
        assert requested <= allocator.allocated_bytes <= allocator.reserved_bytes
        # Nothing overlaps, neither used nor free pieces.
        parts = sorted([*live.values(), *allocator.free_blocks()])
        for (address, n_bytes), (following, _) in pairwise(parts):
            assert address + n_bytes <= following
    for address, _ in live.values():
        allocator.free(address)
    assert allocator.allocated_bytes == 0
    free = sorted(size for _, size in allocator.free_blocks())
    assert free == sorted(sum(p[0] for p in segment) for segment in byte_map.segments)


@pytest.mark.parametrize(
    ("n_bytes", "allocated", "reserved"),
    [
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB, 12 * MIB),  # the last MiB is not worth splitting off
        (13 * MIB - 512, 13 * MIB - 512, 14 * MIB),
    ],
)
def test_documented_sizes(n_bytes: int, allocated: int, reserved: int) -> None:
    allocator = CachingAllocator()
    allocator.allocate(n_bytes)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (allocated, reserved)


def test_the_states_that_come_late_lie_between_what_was_there() -> None:
    """9 MiB of state take the cached half of a segment, so that the next step needs a new one."""
    events = (Event("start", "forward"), Event("work", "forward"), Event("step", "optimizer"))
    state = Tensor("m", "optimizer_state", (), "uint8", 9 * MIB, birth=0, death=2)
    work = [Tensor(f"x{i}", "temporary", (), "uint8", 9 * MIB, birth=1, death=1) for i in (1, 2)]
    ledger = Ledger((state, *work), events)
    assert replay(ledger, steps=1).reserved_bytes == 20 * MIB
    assert replay(ledger).reserved_bytes == 40 * MIB
    assert replay(ledger).requested_bytes == 27 * MIB
    assert replay(ledger).allocated_bytes == 27 * MIB


@pytest.mark.parametrize("recipe", [Recipe(batch=4, sequence=64), Recipe("amp_bf16", sequence=64)])
def test_a_steps_peaks_are_in_order(recipe: Recipe) -> None:
    found = replay(build_ledger(SMALL, recipe))
    assert found.requested_bytes <= found.allocated_bytes <= found.reserved_bytes
    assert replay(build_ledger(SMALL, recipe), steps=4) == found  # three steps are enough
