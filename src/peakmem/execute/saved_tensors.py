"""Saved tensors that leave the device after forward and return before backward uses them.

While a stage runs forward, `movable` packs the tensors its graph saves as views of slots, one slot
for each storage. A slot's bytes can be on either side; a view builds its tensor when backward asks
for it. Only the graph holds the slots, so they are freed along with it.

On the CPU, a link copies to files synchronously (`peakmem.tiers`). On CUDA, it copies to pinned
memory on a stream of its own.
"""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.autograd.graph import saved_tensors_hooks

from peakmem.execute.host_memory import Handle, HostTier, Layout, layout_of, rebuild

__all__ = ["FileLink", "Link", "Slot", "StreamLink", "View", "movable", "view_of"]

Mark = Any  # a moment: seconds of time.perf_counter, or a CUDA event


@dataclass(eq=False)
class Slot:
    """The bytes of one storage: on the device, or on the host."""

    #: The storage on the device; None while its bytes are on the host.
    storage: torch.UntypedStorage | None
    #: The copy on the host: an entry of a HostTier, or a pinned tensor. None if there is none.
    handle: Handle | torch.Tensor | None = None

    def flat(self) -> torch.Tensor:
        """Return the storage as a vector of bytes."""
        assert self.storage is not None
        return torch.empty(0, dtype=torch.uint8, device=self.storage.device).set_(self.storage)


@dataclass(frozen=True, eq=False)
class View:
    """A tensor whose bytes are in a slot."""

    #: The slot of its storage.
    slot: Slot
    #: How it lies in that storage.
    layout: Layout

    def tensor(self) -> torch.Tensor:
        """Return the tensor. Raises RuntimeError while its bytes are on the host."""
        if self.slot.storage is None:
            raise RuntimeError("backward asked for a saved tensor while its bytes were on the host")
        return rebuild(self.slot.flat(), self.layout)


Slots = weakref.WeakValueDictionary[int, Slot]  # by the address of the storage


def view_of(tensor: torch.Tensor, slots: Slots) -> View:
    """Return a view of the tensor, in the slot of its storage."""
    storage = tensor.untyped_storage()
    slot = slots.get(storage.data_ptr())
    if slot is None:
        slot = slots[storage.data_ptr()] = Slot(storage)
    return View(slot, layout_of(tensor))


def movable(slots: Slots, given: View | None, staying: set[int]) -> saved_tensors_hooks:
    """Return a context in which autograd packs saved tensors into `slots`.

    Tensors in the slot of the stage's input, `given`, become views of that slot. Tensors whose
    storage's address is in `staying` (parameters, and an input without a slot) stay as they are.
    """
    known: Slots = weakref.WeakValueDictionary()
    if given is not None and given.slot.storage is not None:
        known[given.slot.storage.data_ptr()] = given.slot

    def pack(tensor: torch.Tensor) -> View | torch.Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address in staying or not address:
            return tensor.detach()  # a tensor with its graph would keep the graph alive
        return view_of(tensor, known if address in known else slots)

    def unpack(packed: View | torch.Tensor) -> torch.Tensor:
        return packed.tensor() if isinstance(packed, View) else packed

    return saved_tensors_hooks(pack, unpack)


class Link(Protocol):
    """Moves slots and times the copies; `seconds` converts marks once everything is done."""

    def mark(self) -> Mark:
        """Return the moment that compute has reached."""

    def make_room(self, slots: list[Slot]) -> None:
        """Allocate what copies in will fill, before the step is issued that runs beside them."""

    def out_begins(self, slots: list[Slot], after: Mark | None) -> Mark: ...
    def out_ends(self, slots: list[Slot]) -> Mark: ...
    def in_begins(self, slots: list[Slot], after: Mark | None) -> Mark: ...
    def in_ends(self, slots: list[Slot]) -> Mark: ...
    def seconds(self, since: Mark, mark: Mark) -> float: ...
    def close(self) -> None: ...


class FileLink:
    """Copies to files and back: out when the copy ends, in when it begins."""

    def __init__(self) -> None:
        self.host = HostTier()

    def mark(self) -> Mark:
        return time.perf_counter()

    def make_room(self, slots: list[Slot]) -> None:
        """Nothing runs beside a copy, so it allocates for itself."""

    def out_begins(self, slots: list[Slot], after: Mark | None) -> Mark:
        return self.mark()

    def out_ends(self, slots: list[Slot]) -> Mark:
        for slot in slots:
            slot.handle = self.host.put(slot.flat())
            slot.storage = None
        return self.mark()

    def in_begins(self, slots: list[Slot], after: Mark | None) -> Mark:
        begun = self.mark()
        for slot in slots:
            assert isinstance(slot.handle, Handle)
            slot.storage = self.host.get(slot.handle).untyped_storage()
            self.host.free(slot.handle)
            slot.handle = None
        return begun

    def in_ends(self, slots: list[Slot]) -> Mark:
        return self.mark()

    def seconds(self, since: Mark, mark: Mark) -> float:
        return float(mark - since)

    def close(self) -> None:
        self.host.close()


class StreamLink:
    """Copies to pinned memory and back, on a stream of its own.

    A copy waits for the last step that ended before it in the simulator's order, and a step waits
    for the copies that ended before it. So that order holds, whatever the real times are.

    All memory is the compute stream's. Steps could not reuse what this stream allocates, and the
    allocator would keep it back until the host has seen the last step that used it end.
    """

    def __init__(self, device: torch.device) -> None:
        self.compute = torch.cuda.current_stream(device)
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.stream.wait_stream(self.compute)
        self.rooms: dict[Slot, torch.Tensor] = {}

    def mark(self) -> Mark:
        return self._event(self.compute)

    def make_room(self, slots: list[Slot]) -> None:
        for slot in slots:
            assert isinstance(slot.handle, torch.Tensor)
            self.rooms[slot] = torch.empty(
                slot.handle.numel(), dtype=torch.uint8, device=self.stream.device
            )

    def out_begins(self, slots: list[Slot], after: Mark | None) -> Mark:
        begun = self._begin(after)
        with torch.cuda.stream(self.stream):
            for slot in slots:
                flat = slot.flat()
                slot.handle = torch.empty(flat.numel(), dtype=torch.uint8, pin_memory=True)
                slot.handle.copy_(flat, non_blocking=True)
        return begun

    def out_ends(self, slots: list[Slot]) -> Mark:
        ended = self._end()
        for slot in slots:
            slot.storage = None  # compute waits for the copy before it can reuse this memory
        return ended

    def in_begins(self, slots: list[Slot], after: Mark | None) -> Mark:
        if missing := [slot for slot in slots if slot not in self.rooms]:
            self.make_room(missing)
            after = self.mark()  # steps that were issued before may still use this memory
        begun = self._begin(after)
        with torch.cuda.stream(self.stream):
            for slot in slots:
                assert isinstance(slot.handle, torch.Tensor)
                flat = self.rooms.pop(slot).copy_(slot.handle, non_blocking=True)
                slot.storage, slot.handle = flat.untyped_storage(), None
        return begun

    def in_ends(self, slots: list[Slot]) -> Mark:
        return self._end()

    def seconds(self, since: Mark, mark: Mark) -> float:
        return float(since.elapsed_time(mark)) / 1e3

    def close(self) -> None:
        self.compute.wait_stream(self.stream)
        torch.cuda.synchronize(self.stream.device)

    def _begin(self, after: Mark | None) -> Mark:
        if after is not None:
            self.stream.wait_event(after)
        return self._event(self.stream)

    def _end(self) -> Mark:
        ended = self._event(self.stream)
        self.compute.wait_event(ended)
        return ended

    def _event(self, stream: torch.cuda.Stream) -> Mark:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(stream)
        return event
