"""Host memory as a place for tensors to wait: copies out and back, every byte counted.

A tensor on a GPU goes to pinned memory of the computer. A tensor on the CPU, which then stands in
for the device, goes to a file: its bytes really leave the process, and every transfer takes real
time, although not the time of a GPU's link.
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
    """Refers to a tensor on the host: `HostTier.put` returns it, `get` and `free` take it."""

    #: The tensor's number in its tier.
    number: int
    #: The tensor's shape.
    shape: tuple[int, ...]
    #: Its dtype.
    dtype: torch.dtype
    #: The device that `get` brings it back to.
    device: torch.device

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor's values."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Transfer:
    """One copy between device and host; times are `time.perf_counter` seconds."""

    #: "out" to the host, "in" to the device.
    kind: Literal["out", "in"]
    #: Bytes copied.
    bytes: int
    #: When the copy began.
    start: float
    #: When it was done.
    end: float


class HostTier:
    """Keeps copies of tensors off the device, and counts every byte that moves.

    `put` and `get` copy: the original stays on the device as long as something references it. The
    host deletes its files when it is closed or garbage-collected, and when Python exits, even after
    an exception.

    >>> host = HostTier()
    >>> handle = host.put(torch.arange(4))
    >>> host.get(handle)
    tensor([0, 1, 2, 3])
    >>> host.free(handle)
    >>> host.bytes_out, host.bytes_in, host.live_bytes, host.peak_bytes
    (32, 32, 0, 32)

    Attributes:
        bytes_out: bytes copied to the host so far, by `put` and `write`.
        bytes_in: bytes copied back so far, by `get`.
        live_bytes: bytes on the host now.
        peak_bytes: the most bytes ever on the host at once.
        transfers: every copy with its start and end, in order.
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
        # Reentrant, because a finalizer can free a handle in the middle of any of these methods.
        self._lock = threading.RLock()

    def put(self, tensor: torch.Tensor) -> Handle:
        """Copy a tensor's values to the host, and return a handle to them.

        The tensor may have any dtype and strides; one that isn't contiguous needs a temporary
        contiguous copy on the device. Raises TypeError if it isn't a dense tensor, and OSError if
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
        """Return a new, contiguous tensor with the host's values, on the device they came from.

        It requires no gradient, and the host keeps its copy. Raises ValueError if the handle was
        freed or belongs to another host.
        """
        place = self._place(handle)
        start = time.perf_counter()
        tensor = torch.empty(handle.shape, dtype=handle.dtype, device=handle.device)
        flat = _flat_bytes(tensor)
        if isinstance(place, torch.Tensor):
            flat.copy_(place)
        elif handle.nbytes:  # mmap refuses an empty file
            with (
                place.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            ):
                flat.numpy().data[:] = mapped
        self._note("in", handle.nbytes, start)
        return tensor

    def write(self, handle: Handle, tensor: torch.Tensor) -> None:
        """Overwrite the values of a handle with those of a tensor of the same shape and dtype.

        Raises ValueError if shape or dtype differ, or if the handle was freed.
        """
        place = self._place(handle)
        _check_dense(tensor)
        if (tuple(tensor.shape), tensor.dtype) != (handle.shape, handle.dtype):
            raise ValueError(
                f"this handle holds {handle.dtype} of shape {handle.shape}, but write got "
                f"{tensor.dtype} of shape {tuple(tensor.shape)}; reshape or convert the tensor, or "
                "free the handle and put the new tensor"
            )
        self._copy_out(tensor, place)

    def free(self, handle: Handle) -> None:
        """Release the values of a handle. Raises ValueError if it was freed before."""
        place = self._place(handle)
        with self._lock:
            del self._places[handle]
            self.live_bytes -= handle.nbytes
        if isinstance(place, Path):
            place.unlink(missing_ok=True)

    def close(self) -> None:
        """Release everything that is left; all handles count as freed afterwards."""
        with self._lock:
            self._places.clear()
            self.live_bytes = 0
        self._remove()

    def __enter__(self) -> HostTier:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<HostTier: {self.live_bytes:,} bytes live, {self.peak_bytes:,} at the peak, "
            f"{self.bytes_out:,} out, {self.bytes_in:,} in>"
        )

    def _place(self, handle: Handle) -> Path | torch.Tensor:
        if not isinstance(handle, Handle):
            raise TypeError(
                f"expected a handle, but got {type(handle).__name__}; pass what put() returned"
            )
        try:
            return self._places[handle]
        except KeyError:
            raise ValueError(
                f"handle {handle.number} (shape {handle.shape}) is not on this host: it was freed, "
                "or another host returned it. Free each handle once, after its last get"
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
            # Written, not mapped: if the disk is full, a write raises OSError, but a store into a
            # map kills the process. Not truncated first: some file systems then wait for the disk.
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
        raise TypeError(f"the host takes dense tensors, but got {what}; convert it with to_dense()")
    if tensor.device.type not in ("cpu", "cuda"):
        raise TypeError(
            f"the host takes tensors from the CPU or a CUDA GPU, but this one is on "
            f"{tensor.device}; move it there first"
        )


def _flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor's values, row by row, as a vector of bytes; shares memory if it can."""
    values = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return values.reshape(-1).view(torch.uint8)


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in its storage: all that `rebuild` needs beside the bytes."""

    #: The tensor's dtype.
    dtype: torch.dtype
    #: Its shape.
    shape: tuple[int, ...]
    #: Elements between neighbours in each dimension.
    stride: tuple[int, ...]
    #: Elements in the storage before its first one.
    offset: int


def layout_of(tensor: torch.Tensor) -> Layout:
    """Return a dense tensor's layout in its storage. Raises TypeError if it isn't dense."""
    _check_dense(tensor)
    return Layout(tensor.dtype, tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))


def whole_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return all bytes of a dense tensor's storage as a vector that shares its memory.

    >>> whole_storage(torch.zeros(3, 4)[0]).numel()
    48
    """
    _check_dense(tensor)
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage())


def rebuild(storage: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Return the tensor with this layout in a storage, which is given as a vector of bytes.

    >>> column = torch.arange(6).reshape(2, 3)[:, 1]
    >>> rebuild(whole_storage(column).clone(), layout_of(column))
    tensor([1, 4])
    """
    tensor = torch.empty(0, dtype=layout.dtype, device=storage.device)
    return tensor.set_(storage.untyped_storage(), layout.offset, layout.shape, layout.stride)
