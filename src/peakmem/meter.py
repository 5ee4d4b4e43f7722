"""The meter: bytes live on a device, operator by operator, while a block of code runs.

On the CPU it counts storages: each from the operator that made it until it is freed, and once,
however many tensors share it. On CUDA it reads the allocator's *requested bytes*, which are the
same thing before the allocator rounds them up.

What it does not see: on the CPU, scratch memory inside one operator, and operators on threads that
the block starts itself; on CUDA, what the context and libraries allocate beside torch. Memory that
numpy owns is a figure of its own (`count_numpy`).

It is honest about honest code only. Code in the same process can switch dispatch modes or
tracemalloc off, allocate through ctypes or mmap, work in a thread or a child process, or replace
this very module. To measure code that you do not trust, look from outside the process as well.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from peakmem.allocations import (
    CpuStorages,
    CudaAllocator,
    PythonMemory,
    storages_of,
    tensors_in,
)
from peakmem.errors import OutOfMemory

__all__ = ["Measurement", "MemoryMeter", "measure_call"]

_open_meters: list[MemoryMeter] = []  # the innermost last


class MemoryMeter:
    """Counts the bytes live on one device while its `with` block runs.

    On the CPU, live is what the block allocates, and what was handed over by `track`. On CUDA it
    is all that the allocator has handed out; let a first step run before the block, for libraries
    keep workspaces from their first use on.

    >>> with MemoryMeter("cpu") as meter:
    ...     a = torch.zeros(256)
    ...     b = a + a
    ...     del a
    >>> meter.peak_bytes, meter.live_bytes
    (2048, 1024)

    Args:
        device: "cpu", "cuda" or "cuda:N"; if None, the GPU where there is one, else the CPU.
        budget_bytes: the first operator that takes live bytes above it raises OutOfMemory.
        count_numpy: trace the memory of Python and numpy too, which slows Python down.

    Attributes:
        baseline_bytes: live when the block began.
        peak_bytes: the most that was live at once, the baseline included.
        numpy_peak_bytes: the most that numpy and Python's own objects held at once beyond what
            they held when the block began, the timeline's 16 bytes an operator among them; None
            without `count_numpy`. The two peaks may come at different times, so their sum is an
            upper bound of the peak of both together.

    Raises:
        RuntimeError: there is no such device; or nothing was live on it during the whole block,
            since a peak of 0 is a meter that looks at the wrong device; or CUDA's allocator ran
            full and freed its cache.
        OutOfMemory: the budget was broken, or the GPU was full.
    """

    def __init__(
        self,
        device: str | torch.device | None = None,
        budget_bytes: int | None = None,
        *,
        count_numpy: bool = False,
    ) -> None:
        self.device = _device(device)
        self.budget_bytes = budget_bytes
        self.baseline_bytes = 0
        self.peak_bytes = 0
        self.numpy_peak_bytes: int | None = 0 if count_numpy else None
        self._memory = CudaAllocator(self.device) if self.device.type == "cuda" else CpuStorages()
        self._python = PythonMemory() if count_numpy else None
        self._names: dict[str, int] = {}  # of events, numbered in order of first appearance
        self._events = array("L")
        self._levels = array("q")
        self._operators = _Operators(self)
        self._entered = False
        self._final_bytes: int | None = None  # live when the block ended

    @property
    def live_bytes(self) -> int:
        """Bytes live now; after the block, those live at its end."""
        return self._memory.read()[0] if self._final_bytes is None else self._final_bytes

    @property
    def timeline(self) -> list[tuple[str, int]]:
        """Each event with the bytes live right after it: "start", every operator, "end"."""
        names = list(self._names)
        return [(names[n], live) for n, live in zip(self._events, self._levels, strict=True)]

    def track(self, *things: Any) -> MemoryMeter:
        """Count what is there already, and return the meter.

        `things` are tensors, modules (with their gradients), optimizers (with state), and lists,
        tuples and dicts of them.
        """
        for tensor in tensors_in(things):
            self._memory.add(tensor)
        return self

    def __enter__(self) -> MemoryMeter:
        if self._entered:
            raise RuntimeError("a MemoryMeter measures one block; make a new one for the next")
        self._entered = True
        for outer in _open_meters:
            outer._keep_peaks()  # before this meter sets the same counters back
        self._memory.start()
        if self._python is not None:
            self._python.start()
        self.baseline_bytes = self._record("start")
        _open_meters.append(self)
        self._operators.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._operators.__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        _open_meters.remove(self)
        try:
            self._memory.stop()
            self._keep_peaks()
            self._final_bytes = self._record("end")
        finally:
            if self._python is not None:
                self._python.stop()
        if isinstance(error, torch.OutOfMemoryError):
            raise OutOfMemory(f"{self.device} is full: {error}") from error
        if error is None:
            self._refuse_useless_figures()

    def _refuse_useless_figures(self) -> None:
        if self.peak_bytes == 0:
            raise RuntimeError(
                f"nothing was live on {self.device} during the block, so there is no peak to "
                "report. Meter the device that the tensors are on, or hand them over with track()."
            )
        if isinstance(self._memory, CudaAllocator) and self._memory.ran_full():
            raise RuntimeError(
                f"{self.device} ran full during the block and the allocator freed its cache, so "
                "the figures say little. Free memory first, or measure a smaller size."
            )

    def _record(self, event: str) -> int:
        """Put an event on the timeline, and return the bytes live after it."""
        live_bytes, peak_bytes = self._memory.read()
        self._events.append(self._names.setdefault(event, len(self._names)))
        self._levels.append(live_bytes)
        self.peak_bytes = max(self.peak_bytes, peak_bytes)
        return live_bytes

    def _keep_peaks(self) -> None:
        self.peak_bytes = max(self.peak_bytes, self._memory.read()[1])
        if self._python is not None and self.numpy_peak_bytes is not None:
            self.numpy_peak_bytes = max(self.numpy_peak_bytes, self._python.read()[1])

    def _ran(self, operator: str, had: set[int], result: Any) -> OutOfMemory | None:
        """Count what an operator returned; return the error where that broke the budget.

        `had` are the ids of its arguments' storages.
        """
        for tensor in tensors_in(result):
            self._memory.add_result(tensor, operator, had)
        peak_before = self.peak_bytes
        needed_bytes = self._record(operator)
        if self.peak_bytes > peak_before:
            needed_bytes = self.peak_bytes  # within the operator, where the device tells
        if self.budget_bytes is None or needed_bytes <= self.budget_bytes:
            return None
        return OutOfMemory(
            f"{operator} took live memory to {needed_bytes:,} bytes; the budget is "
            f"{self.budget_bytes:,} bytes",
            needed_bytes=needed_bytes,
            budget_bytes=self.budget_bytes,
        )


class _Operators(TorchDispatchMode):
    """Tells a meter of every operator that runs: forward, backward and optimizer alike."""

    def __init__(self, meter: MemoryMeter) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._meter = meter

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True, the default, would wrap __torch_dispatch__ in what imports torch._dynamo at the
        # first operator: seconds, and tens of MiB in the middle of a measurement.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # Ids, not storages: holding on to a storage would keep it alive past `set_`.
        had = {id(storage) for x in tensors_in((args, kwargs)) for storage in storages_of(x)}
        result = func(*args, **(kwargs or {}))
        error = self._meter._ran(func.name(), had, result)
        if error is not None:
            del result  # the error's traceback would keep it alive
            raise error
        return result


@dataclass(frozen=True)
class Measurement:
    """What one call cost, as `measure_call` returns it.

    `live_before_bytes` and `live_after_bytes` are live before and after the call; what the call
    returned still counts after it. `seconds` include the meter's own work. `numpy_peak_bytes` is
    None unless it was asked for.
    """

    peak_bytes: int
    live_before_bytes: int
    live_after_bytes: int
    seconds: float
    device: str
    numpy_peak_bytes: int | None = None

    @property
    def rise_bytes(self) -> int:
        """The peak above what was live before the call."""
        return self.peak_bytes - self.live_before_bytes


def measure_call(
    fn: Callable[..., object],
    *args: Any,
    device: str | torch.device | None = None,
    budget_bytes: int | None = None,
    track: Iterable[Any] = (),
    warm_up: int = 0,
    count_numpy: bool = False,
) -> Measurement:
    """Call `fn(*args)` under a MemoryMeter, and return what it cost.

    Tensors, modules and optimizers among `args` and in `track` count as live before the call.
    `warm_up` calls come first, unmeasured: on CUDA give 2, so that what libraries and optimizers
    allocate once is there already. Raises what MemoryMeter raises.

    >>> measure_call(torch.add, torch.zeros(256), torch.zeros(256), device="cpu").rise_bytes
    1024
    """
    for _ in range(warm_up):
        fn(*args)
    meter = MemoryMeter(device, budget_bytes, count_numpy=count_numpy)
    meter.track(args, list(track))
    with meter:
        start = time.perf_counter()
        result = fn(*args)
        if meter.device.type == "cuda":
            torch.cuda.synchronize(meter.device)
        seconds = time.perf_counter() - start
    del result  # it had to live until the meter had read what was left
    return Measurement(
        peak_bytes=meter.peak_bytes,
        live_before_bytes=meter.baseline_bytes,
        live_after_bytes=meter.live_bytes,
        seconds=seconds,
        device=str(meter.device),
        numpy_peak_bytes=meter.numpy_peak_bytes,
    )


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(device)
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"a meter reads cpu or cuda, not {device.type}; move the work to one")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(
            f"there is no CUDA GPU here, so {device} has no memory to measure; use device='cpu'"
        )
    return device
