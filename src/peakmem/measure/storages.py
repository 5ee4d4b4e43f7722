"""Sources of live bytes for the meter: tensors' storages, CUDA's allocator, numpy arrays.

Each source has `start`, `read` (bytes live now, and the most since `start`) and `stop`. `Storages`
keeps a `Row` for each storage; `tensors_in` finds the tensors to count.
"""

from __future__ import annotations

import ctypes
import threading
import tracemalloc
import weakref
from collections import deque
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from peakmem.specs.ledger import Owner

__all__ = ["CudaAllocator", "NumpyMemory", "Row", "Storages", "storages_of", "tensors_in"]


def tensors_in(things: Any) -> list[torch.Tensor]:
    """Return every tensor in nested lists, tuples and dicts, modules and optimizers.

    Modules contribute parameters, buffers and gradients; optimizers, parameters and state. A tensor
    may occur more than once.
    """
    found: list[torch.Tensor] = []
    _collect(things, found)
    return found


def _collect(things: Any, found: list[torch.Tensor]) -> None:
    if isinstance(things, torch.Tensor):
        found.append(things)
    elif isinstance(things, (list, tuple)):
        for thing in things:
            _collect(thing, found)
    elif isinstance(things, dict):
        _collect(list(things.values()), found)
    elif isinstance(things, torch.nn.Module):
        parameters = list(things.parameters())
        _collect([parameters, list(things.buffers()), [p.grad for p in parameters]], found)
    elif isinstance(things, torch.optim.Optimizer):
        _collect([things.param_groups, list(things.state.values())], found)


def storages_of(tensor: torch.Tensor, device: str = "cpu") -> list[torch.UntypedStorage]:
    """Return a tensor's storages on a type of device; empty if it is on another one.

    A tensor that wraps others, such as a quantized tensor, has their storages. Raises
    NotImplementedError if the tensor is sparse.
    """
    anything: Any = tensor
    if is_traceable_wrapper_subclass(anything):
        wrapped = [getattr(anything, name) for name in anything.__tensor_flatten__()[0]]
        return [storage for inner in wrapped for storage in storages_of(inner, device)]
    if tensor.device.type != device:
        return []
    if tensor.layout != torch.strided:
        raise NotImplementedError(
            f"the meter counts strided tensors, but got layout {tensor.layout}; use a dense "
            "tensor (for an embedding, sparse=False)"
        )
    return [tensor.untyped_storage()]


@dataclass(slots=True, eq=False)
class Row:
    """One storage: its operator, its first tensor, its owner and its lifetime."""

    #: The operator that made it.
    maker: str
    #: The shape of its first tensor.
    shape: tuple[int, ...]
    #: The dtype of its first tensor.
    dtype: torch.dtype
    #: Bytes of the storage.
    bytes: int
    #: The number of the event that made it.
    birth: int
    #: The number of the last event that saw it; None while it is live.
    death: int | None = None
    #: None until an operator or a hook reveals it.
    owner: Owner | None = None
    #: Whether forward took it as a parameter.
    used: bool = False
    #: Whether an optimizer has it as a parameter.
    optimized: bool = False
    #: The layer that made it, or its parameter's layer; empty if unknown.
    layer: str = ""
    #: The module within that layer, likewise.
    module: str = ""


class Storages:
    """Memory of tensors: each storage counts once, from its first appearance until it is freed.

    Args:
        device: the type of the device whose storages count.
        history: keep the rows of freed storages, so that memory grows with every allocation.
    """

    def __init__(self, device: str, *, history: bool) -> None:
        self.rows: list[Row] = []  # with a history: all storages, in the order of their births
        self.event = 0  # the current event
        self.layer = self.module = ""  # the running ones; empty if nothing sets them
        self._history = history
        self._device = device
        self._live: dict[int, Row] = {}  # by the id of the storage
        self._finalizers: dict[int, weakref.finalize[..., Any]] = {}
        self._live_bytes = 0
        self._peak_bytes = 0
        # A storage can be freed at any point, on any thread. So its finalizer only appends its id,
        # and the next method that holds the lock processes the ids.
        self._freed: deque[int] = deque()
        self._lock = threading.Lock()

    def start(self) -> None:
        with self._lock:
            self._work_off()
            self._peak_bytes = self._live_bytes

    def read(self) -> tuple[int, int]:
        with self._lock:
            self._work_off()
            return self._live_bytes, self._peak_bytes

    def stop(self) -> None:
        for finalizer in self._finalizers.values():
            finalizer.detach()

    def row(self, tensor: torch.Tensor) -> Row | None:
        """Return the row of a tensor's (first) storage, or None if it isn't counted."""
        for storage in storages_of(tensor, self._device):
            return self._live.get(id(storage))
        return None

    def add(self, tensor: torch.Tensor) -> None:
        """Count a tensor that exists already."""
        for storage in storages_of(tensor, self._device):
            self._count(storage, tensor, "before the block", new=True)

    def add_result(self, tensor: torch.Tensor, operator: str, had: Container[int]) -> int:
        """Count an operator's result, and return by how many bytes live memory grew.

        `had` are the ids of its arguments' storages, which aren't new memory.
        """
        more_bytes = 0
        for storage in storages_of(tensor, self._device):
            # torch.tensor() and torch.from_numpy() both end in lift_fresh, with their result as the
            # argument. The second borrows numpy's memory, which torch can't resize.
            lifted = operator == "aten::lift_fresh"
            new = storage.resizable() if lifted else id(storage) not in had
            more_bytes += self._count(storage, tensor, operator, new=new)
        return more_bytes

    def _count(
        self, storage: torch.UntypedStorage, tensor: torch.Tensor, maker: str, *, new: bool
    ) -> int:
        key, n_bytes = id(storage), storage.nbytes()
        with self._lock:
            self._work_off()
            before = self._live.get(key)
            if before is None:
                if not new:
                    return 0
                self._finalizers[key] = weakref.finalize(storage, self._freed.append, key)
                self._finalizers[key].atexit = False
            elif before.bytes == n_bytes:
                return 0
            else:  # it was resized
                before.death = self.event - 1
            row = Row(maker, tuple(tensor.shape), tensor.dtype, n_bytes, self.event)
            row.layer, row.module = self.layer, self.module
            if before is not None:
                row.owner, row.used, row.optimized = before.owner, before.used, before.optimized
            if self._history:
                self.rows.append(row)
            self._live[key] = row
            more_bytes = n_bytes - (before.bytes if before else 0)
            self._live_bytes += more_bytes
            self._peak_bytes = max(self._peak_bytes, self._live_bytes)
            return more_bytes

    def _work_off(self) -> None:
        while self._freed:
            key = self._freed.popleft()
            row = self._live.pop(key)
            row.death = self.event - 1  # the last event that saw it
            self._live_bytes -= row.bytes
            del self._finalizers[key]


class CudaAllocator:
    """CUDA memory: the bytes requested from torch's caching allocator, before it rounds up."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._retries = 0

    def start(self) -> None:
        torch.cuda.synchronize(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)
        self._retries = self._stats()["num_alloc_retries"]

    def read(self) -> tuple[int, int]:
        stats = self._stats()
        return stats["requested_bytes.all.current"], stats["requested_bytes.all.peak"]

    def stop(self) -> None:
        torch.cuda.synchronize(self._device)

    def ran_full(self) -> bool:
        """Whether the allocator has had to free its cache and retry since `start`."""
        return bool(self._stats()["num_alloc_retries"] != self._retries)

    def _stats(self) -> dict[str, Any]:
        return torch.cuda.memory_stats(self._device)


class NumpyMemory:
    """The exact bytes of numpy arrays, each from its allocation until it is freed.

    numpy reports its arrays to tracemalloc directly, while tracemalloc observes Python objects
    through allocators that its `start` installs. So `start` restores the original allocators at
    once, which leaves only arrays: no lists, no bytes, nothing of this library's own.

    Arrays made before `start` are unknown, even when they are freed. If tracemalloc is already
    running, these figures include Python objects, as tracemalloc's do.
    """

    def __init__(self) -> None:
        self._start_bytes = 0
        self._mine = False

    def start(self) -> None:
        self._mine = not tracemalloc.is_tracing()
        if self._mine:
            allocators = _allocators()
            tracemalloc.start()
            _put_back(allocators)
            tracemalloc.clear_traces()  # forget what Python allocated in between
        tracemalloc.reset_peak()
        self._start_bytes = tracemalloc.get_traced_memory()[0]

    def read(self) -> tuple[int, int]:
        if not tracemalloc.is_tracing():
            raise RuntimeError(
                "tracemalloc was stopped while a meter was counting numpy arrays; leave it running"
            )
        live_bytes, peak_bytes = tracemalloc.get_traced_memory()
        return live_bytes - self._start_bytes, peak_bytes - self._start_bytes

    def stop(self) -> None:
        if self._mine:
            tracemalloc.stop()


class _Allocator(ctypes.Structure):
    """PyMemAllocatorEx of Python's C API: the allocator of one kind of memory."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]


def _allocators() -> list[_Allocator]:
    """Return Python's allocators of raw memory, buffers and objects."""
    allocators = [_Allocator() for _ in range(3)]
    for domain, allocator in enumerate(allocators):
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
    return allocators


def _put_back(allocators: list[_Allocator]) -> None:
    for domain, allocator in enumerate(allocators):
        ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))
