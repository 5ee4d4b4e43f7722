"""torch's CUDA caching allocator, simulated: the memory it reserves for a step.

The allocator rounds sizes up to 512 B. Up to 1 MiB comes from 2 MiB segments, below 10 MiB from 20
MiB segments, and anything larger from a segment of its own, rounded up to 2 MiB. A request takes
the smallest sufficient free block, at the lowest address. The block is split if the rest is at
least 512 B (in 2 MiB segments) or above 1 MiB (in others). Freed blocks merge with free neighbours,
and segments stay reserved. Source: c10/cuda/CUDACachingAllocator.cpp with default settings; one
stream, no expandable segments, and no segments released when memory runs out.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

from peakmem.core.units import KiB, MiB
from peakmem.specs.ledger import Ledger, Tensor

__all__ = ["CachingAllocator", "Replay", "replay"]

_ROUND = KiB // 2
_SMALL = MiB  # the largest request for small segments; the rest in others must be larger to split
_SMALL_SEGMENT, _LARGE_SEGMENT = 2 * MiB, 20 * MiB
_OWN_SEGMENT = 10 * MiB  # requests from this size on get a segment of their own
_ROUND_SEGMENT = 2 * MiB
_LATE = ("optimizer_state", "master")  # owners of what the optimizer allocates when it first runs


@dataclass(eq=False, slots=True)
class _Block:
    address: int
    size: int
    before: _Block | None = None  # its neighbours in the segment
    after: _Block | None = None


class CachingAllocator:
    """Blocks and segments of one device. Addresses are integers; segments are never adjacent.

    >>> allocator = CachingAllocator()
    >>> address = allocator.allocate(1000)
    >>> allocator.allocated_bytes, allocator.reserved_bytes // 2**20
    (1024, 2)
    """

    def __init__(self) -> None:
        self.allocated_bytes = 0
        self.reserved_bytes = 0
        self._end = 0  # the first address never used
        self._used: dict[int, tuple[_Block, bool]] = {}  # address -> block, whether it is small
        # Whether blocks are small -> their (size, address), sorted.
        self._free: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self._blocks: dict[int, _Block] = {}  # address -> free block

    def allocate(self, n_bytes: int) -> int:
        """Return the address of a block of at least `n_bytes`, which must be 1 or more."""
        size = _rounded(n_bytes, _ROUND)
        small = size <= _SMALL
        free = self._free[small]
        at = bisect_left(free, (size, 0))
        block = self._blocks.pop(free.pop(at)[1]) if at < len(free) else self._reserve(size)
        left = block.size - size
        if (left >= _ROUND) if small else (left > _SMALL):
            rest = _Block(block.address + size, left, before=block, after=block.after)
            if rest.after:
                rest.after.before = rest
            block.size, block.after = size, rest
            self._put(rest, small=small)
        self.allocated_bytes += block.size
        self._used[block.address] = block, small
        return block.address

    def free(self, address: int) -> None:
        """Free the block at an address that `allocate` returned. Raises KeyError for others."""
        block, small = self._used.pop(address)
        self.allocated_bytes -= block.size
        if block.before and block.before.address in self._blocks:
            before = self._take(block.before.size, block.before.address, small=small)
            block = _joined(before, block)
        if block.after and block.after.address in self._blocks:
            after = self._take(block.after.size, block.after.address, small=small)
            block = _joined(block, after)
        self._put(block, small=small)

    def free_blocks(self) -> list[tuple[int, int]]:
        """Return (address, size) of each free block, sorted."""
        return sorted((block.address, block.size) for block in self._blocks.values())

    def _reserve(self, size: int) -> _Block:
        """Reserve a segment, and return it as one block."""
        if size <= _SMALL:
            size = _SMALL_SEGMENT
        else:
            size = _LARGE_SEGMENT if size < _OWN_SEGMENT else _rounded(size, _ROUND_SEGMENT)
        block = _Block(self._end, size)
        self._end += size + _ROUND_SEGMENT  # a gap, so that no two segments touch
        self.reserved_bytes += size
        return block

    def _take(self, size: int, address: int, *, small: bool) -> _Block:
        free = self._free[small]
        del free[bisect_left(free, (size, address))]
        return self._blocks.pop(address)

    def _put(self, block: _Block, *, small: bool) -> None:
        insort(self._free[small], (block.size, block.address))
        self._blocks[block.address] = block


def _joined(block: _Block, after: _Block) -> _Block:
    """Return the first block, extended by the one after it."""
    block.size += after.size
    block.after = after.after
    if block.after:
        block.after.before = block
    return block


@dataclass(frozen=True)
class Replay:
    """Peaks over the first steps of a training: requested <= allocated <= reserved."""

    #: Peak of the tensors' own bytes.
    requested_bytes: int
    #: `torch.cuda.max_memory_allocated`: whole blocks, including unsplit rests.
    allocated_bytes: int
    #: `torch.cuda.max_memory_reserved`.
    reserved_bytes: int


def replay(ledger: Ledger, steps: int = 3) -> Replay:
    """Replay a ledger's step `steps` times in the allocator, and return the peaks.

    As in torch, the optimizer allocates its state and master weights when it first runs. So these
    lie between the blocks that forward and backward left, and exist from the second step on.
    """
    allocator = CachingAllocator()
    lasting = [t for t in ledger.tensors if t.birth == 0 and t.death == len(ledger.events) - 1]
    passing = _by_event(ledger, {id(t) for t in lasting})
    optimizer = next((i for i, e in enumerate(ledger.events) if e.phase == "optimizer"), 0)
    late = [t.bytes for t in lasting if t.bytes and t.owner in _LATE]
    for n_bytes in (t.bytes for t in lasting if t.bytes and t.owner not in _LATE):
        allocator.allocate(n_bytes)
    allocated, places = allocator.allocated_bytes, dict[int, int]()
    before: list[tuple[int, int]] = []
    for step in range(steps):
        free = allocator.free_blocks()
        if step > 1 and free == before:
            break  # from the same state comes the same step
        before = free
        for event, (births, deaths) in enumerate(passing):
            if step == 0 and event == optimizer:
                for n_bytes in late:
                    allocator.allocate(n_bytes)
            for tensor in births:
                places[id(tensor)] = allocator.allocate(tensor.bytes)
            allocated = max(allocated, allocator.allocated_bytes)
            for tensor in deaths:
                allocator.free(places.pop(id(tensor)))
    return Replay(ledger.peak_bytes, allocated, allocator.reserved_bytes)


def _by_event(ledger: Ledger, lasting: set[int]) -> list[tuple[list[Tensor], list[Tensor]]]:
    """Return for each event the tensors made at it, and the tensors freed after it."""
    found: list[tuple[list[Tensor], list[Tensor]]] = [([], []) for _ in ledger.events]
    for tensor in ledger.tensors:
        if id(tensor) not in lasting and tensor.bytes:
            found[tensor.birth][0].append(tensor)
            found[tensor.death][1].append(tensor)
    return found


def _rounded(n_bytes: int, to: int) -> int:
    return -(-n_bytes // to) * to
