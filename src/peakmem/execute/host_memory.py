"""The tier below the device's memory: where bytes can wait, and what it costs to bring them back.

For a tensor on a GPU the host tier is pinned memory of the computer. For a tensor on the CPU, which
stands for the device then, it is a file: the bytes really leave the process, and every transfer
takes real time, however far that is from a GPU's link.
"""

from __future__ import annotations

import itertools
import math
import mmap
import shutil
import tempfile
import threading
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import torch

__all__ = [
    "Handle",
    "HostTier",
    "Layout",
    "Transfer",
    "layout_of",
    "rebuild",
    "whole_storage",
]


@dataclass(frozen=True, eq=False)
class Handle:
    """What `HostTier.put` gives for a tensor; `get` and `free` take it back."""

    number: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor's values."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Transfer:
    """One copy between the tiers; times are those of `time.perf_counter`, in seconds."""

    kind: Literal["out", "in"]
    bytes: int
    start: float
    end: float


class HostTier:
    """Keeps copies of tensors off the device, and counts every byte that moves.

    `put` and `get` copy; the tensor that was put stays on the device until nothing holds it any
    more. What is left at the end is removed with the host: its files go when it is closed or
    garbage-collected, and when Python ends, after an exception too.

    >>> host = HostTier()
    >>> handle = host.put(torch.arange(4))
    >>> host.get(handle)
    tensor([0, 1, 2, 3])
    >>> host.free(handle)
    >>> host.bytes_out, host.bytes_in, host.live_bytes, host.peak_bytes
    (32, 32, 0, 32)

    Attributes:
        bytes_out: bytes that went to the host so far, by `put` and `write`.
        bytes_in: bytes that came back so far, by `get`.
        live_bytes: bytes on the host now.
        peak_bytes: the most that were there at once.
        transfers: each copy with its clock times, in order.
    """

    def __init__(self) -> None:
        self.bytes_out = 0
        self.bytes_in = 0
        self.live_bytes = 0
        self.peak_bytes = 0
        self.transfers: list[Transfer] = []
        self._numbers = itertools.count()
        self._places: dict[Handle, Path | torch.Tensor] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="peakmem-host-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        # A finalizer may free a handle in the middle of any of these methods: hence reentrant.
        self._lock = threading.RLock()

    def put(self, tensor: torch.Tensor) -> Handle:
        """Copy a tensor's values to the host, and return the handle under which they lie there.

        Any dtype and layout in memory will do; a tensor that is not contiguous takes a contiguous
        copy on the device meanwhile. Raises TypeError for what is no dense tensor, OSError where
        the disk is full.
        """
        _check_dense(tensor)
        handle = Handle(next(self._numbers), tuple(tensor.shape), tensor.dtype, tensor.device)
        place: Path | torch.Tensor
        if tensor.device.type == "cuda":
            place = torch.empty(handle.nbytes, dtype=torch.uint8, pin_memory=True)
        else:
            self._check_open()
            place = self._folder / str(handle.number)
        try:
            self._copy_out(tensor, place)
        except OSError:
            if isinstance(place, Path):
                place.unlink(missing_ok=True)
            raise
        with self._lock:
            self._places[handle] = place
            self.live_bytes += handle.nbytes
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        return handle

    def get(self, handle: Handle) -> torch.Tensor:
        """Return a new, contiguous tensor of the values on the host, on the device they left.

        It requires no gradient. The host keeps its copy. Raises ValueError for a handle that was
        freed, or is another host's.
        """
        place = self._place(handle)
        start = time.perf_counter()
        tensor = torch.empty(handle.shape, dtype=handle.dtype, device=handle.device)
        flat = _flat_bytes(tensor)
        if isinstance(place, torch.Tensor):
            flat.copy_(place)
        elif handle.nbytes:  # an empty file cannot be mapped
            with (
                place.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            ):
                flat.numpy().data[:] = mapped
        self._note("in", handle.nbytes, start)
        return tensor

    def write(self, handle: Handle, tensor: torch.Tensor) -> None:
        """Overwrite the values under a handle with a tensor's, of the same shape and dtype.

        Raises ValueError for another shape or dtype, and for a handle that was freed.
        """
        place = self._place(handle)
        _check_dense(tensor)
        if (tuple(tensor.shape), tensor.dtype) != (handle.shape, handle.dtype):
            raise ValueError(
                f"write needs a tensor of shape {handle.shape} and {handle.dtype}, as was put, "
                f"but got {tuple(tensor.shape)} and {tensor.dtype}; reshape or convert it, or "
                "free the handle and put the new tensor"
            )
        self._copy_out(tensor, place)

    def free(self, handle: Handle) -> None:
        """Give up the values under a handle. ValueError if that was done before."""
        place = self._place(handle)
        with self._lock:
            del self._places[handle]
            self.live_bytes -= handle.nbytes
        if isinstance(place, Path):
            place.unlink(missing_ok=True)

    def close(self) -> None:
        """Give up everything that is left; afterwards every handle is a freed one."""
        with self._lock:
            self._places.clear()
            self.live_bytes = 0
        self._remove()

    def __enter__(self) -> HostTier:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<HostTier: {self.live_bytes:,} bytes live, {self.peak_bytes:,} at the peak, "
            f"{self.bytes_out:,} out, {self.bytes_in:,} in>"
        )

    def _place(self, handle: Handle) -> Path | torch.Tensor:
        if not isinstance(handle, Handle):
            raise TypeError(
                f"expected a handle as put() returns it, but got {type(handle).__name__}; "
                "keep what put() gave you"
            )
        try:
            return self._places[handle]
        except KeyError:
            raise ValueError(
                f"there is nothing under this handle (number {handle.number}, shape "
                f"{handle.shape}): it was freed, or another host gave it. Free a handle once, "
                "when nobody will ask for it again"
            ) from None

    def _check_open(self) -> None:
        if not self._remove.alive:
            raise ValueError("this host is closed; make a new HostTier()")

    def _copy_out(self, tensor: torch.Tensor, place: Path | torch.Tensor) -> None:
        start = time.perf_counter()
        flat = _flat_bytes(tensor)
        if isinstance(place, torch.Tensor):
            place.copy_(flat)
        else:
            # Written, not mapped: where the disk is full, this raises an error, while a store
            # into a map would end the process. And not truncated before: some file systems then
            # wait for the disk.
            with place.open("r+b" if place.exists() else "wb") as file:
                file.write(flat.numpy().data)
        self._note("out", flat.numel(), start)

    def _note(self, kind: Literal["out", "in"], nbytes: int, start: float) -> None:
        with self._lock:
            if kind == "out":
                self.bytes_out += nbytes
            else:
                self.bytes_in += nbytes
            self.transfers.append(Transfer(kind, nbytes, start, time.perf_counter()))


def _check_dense(tensor: Any) -> None:
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
        what = tensor.layout if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise TypeError(f"the host takes dense tensors, but got {what}; give it a dense tensor")
    if tensor.device.type not in ("cpu", "cuda"):
        raise TypeError(
            f"the host takes tensors from the CPU or a CUDA GPU, but this one is on "
            f"{tensor.device}; move it there first"
        )


def _flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values, row by row, as a vector of bytes; shared with it where it can be."""
    values = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return values.reshape(-1).view(torch.uint8)


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in its storage: what it takes beside the bytes to build it again."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


def layout_of(tensor: torch.Tensor) -> Layout:
    """Return how a dense tensor lies in its storage."""
    _check_dense(tensor)
    return Layout(tensor.dtype, tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))


def whole_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return all bytes of a dense tensor's storage, as a vector that shares its memory.

    >>> whole_storage(torch.zeros(3, 4)[0]).numel()
    48
    """
    _check_dense(tensor)
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage())


def rebuild(storage: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Return the tensor that lies like this in a storage, given as a vector of its bytes.

    >>> column = torch.arange(6).reshape(2, 3)[:, 1]
    >>> rebuild(whole_storage(column).clone(), layout_of(column))
    tensor([1, 4])
    """
    tensor = torch.empty(0, dtype=layout.dtype, device=storage.device)
    return tensor.set_(storage.untyped_storage(), layout.offset, layout.shape, layout.stride)
