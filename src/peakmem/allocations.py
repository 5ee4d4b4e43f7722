"""Where live bytes are read: storages on the CPU, the allocator on CUDA, Python's own memory.

Each source has `start`, `read` (bytes live now, and the most since `start`) and `stop`; the meter
puts them together. `tensors_in` finds the tensors that a device's sources are told of.
"""

from __future__ import annotations

import threading
import tracemalloc
import weakref
from collections import deque
from collections.abc import Container
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["CpuStorages", "CudaAllocator", "PythonMemory", "storages_of", "tensors_in"]


def tensors_in(things: Any) -> list[torch.Tensor]:
    """Return every tensor in nested lists, tuples and dicts, modules and optimizers.

    A module has parameters, buffers and gradients; an optimizer has parameters and state. A tensor
    may come more than once.
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


def storages_of(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
    """Return the storages of a CPU tensor, and none for a tensor on another device.

    A tensor that wraps others, such as a quantized one, has the storages of those. Raises
    NotImplementedError for a sparse tensor.
    """
    anything: Any = tensor
    if is_traceable_wrapper_subclass(anything):
        wrapped = [getattr(anything, name) for name in anything.__tensor_flatten__()[0]]
        return [storage for inner in wrapped for storage in storages_of(inner)]
    if tensor.device.type != "cpu":
        return []
    if tensor.layout != torch.strided:
        raise NotImplementedError(
            f"the meter counts strided tensors, and this one's layout is {tensor.layout}; "
            "use a dense tensor (for an embedding, sparse=False)"
        )
    return [tensor.untyped_storage()]


class CpuStorages:
    """CPU memory: each storage from when it is first seen until it is freed, and once."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}  # id of a live storage -> its bytes
        self._finalizers: dict[int, weakref.finalize[..., Any]] = {}
        self._live_bytes = 0
        self._peak_bytes = 0
        # A storage may be freed in the middle of anything, on any thread. So its finalizer only
        # leaves a note, and whoever holds the lock works the notes off.
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

    def add(self, tensor: torch.Tensor) -> None:
        """Count a tensor, whoever made it."""
        for storage in storages_of(tensor):
            self._count(storage, new=True)

    def add_result(self, tensor: torch.Tensor, operator: str, had: Container[int]) -> None:
        """Count what an operator returned.

        `had` are the ids of its arguments' storages: no new memory, only memory seen again.
        """
        for storage in storages_of(tensor):
            if operator == "aten::lift_fresh":
                # torch.tensor() and torch.from_numpy() both end here with their result as the
                # argument. The second borrows numpy's memory, which torch could not resize.
                self._count(storage, new=storage.resizable())
            else:
                self._count(storage, new=id(storage) not in had)

    def _count(self, storage: torch.UntypedStorage, *, new: bool) -> None:
        with self._lock:
            self._work_off()
            key = id(storage)
            if key not in self._sizes:
                if not new:
                    return
                self._sizes[key] = 0
                self._finalizers[key] = weakref.finalize(storage, self._freed.append, key)
                self._finalizers[key].atexit = False
            self._live_bytes += storage.nbytes() - self._sizes[key]  # it may have been resized
            self._sizes[key] = storage.nbytes()
            self._peak_bytes = max(self._peak_bytes, self._live_bytes)

    def _work_off(self) -> None:
        while self._freed:
            key = self._freed.popleft()
            self._live_bytes -= self._sizes.pop(key)
            del self._finalizers[key]


class CudaAllocator:
    """CUDA memory: what was requested of torch's caching allocator, before it rounds up."""

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

    def add(self, tensor: torch.Tensor) -> None:
        """Do nothing: the allocator knows of every tensor."""

    def add_result(self, tensor: torch.Tensor, operator: str, had: Container[int]) -> None:
        """Do nothing: the allocator knows of every tensor."""

    def ran_full(self) -> bool:
        """Tell whether the allocator had to free its cache and try again since `start`."""
        return bool(self._stats()["num_alloc_retries"] != self._retries)

    def _stats(self) -> dict[str, Any]:
        return torch.cuda.memory_stats(self._device)


class PythonMemory:
    """What tracemalloc sees from `start` on: numpy's arrays, bytes, lists, every Python object."""

    def __init__(self) -> None:
        self._start_bytes = 0
        self._mine = False

    def start(self) -> None:
        self._mine = not tracemalloc.is_tracing()
        if self._mine:
            tracemalloc.start()
        tracemalloc.reset_peak()
        self._start_bytes = tracemalloc.get_traced_memory()[0]

    def read(self) -> tuple[int, int]:
        if not tracemalloc.is_tracing():
            raise RuntimeError(
                "tracemalloc was stopped while a meter counted numpy's memory; leave it running"
            )
        live_bytes, peak_bytes = tracemalloc.get_traced_memory()
        return live_bytes - self._start_bytes, peak_bytes - self._start_bytes

    def stop(self) -> None:
        if self._mine:
            tracemalloc.stop()
