"""The meter: bytes live on a device, operator by operator, while a block of code runs.

On the CPU, it counts storages: each of them once, however many tensors share it, from the operator
that made it until it is freed. On CUDA, it reads the allocator's *requested bytes*, the same figure
before the allocator rounds it up.

On the CPU, it doesn't see scratch memory inside an operator, or operators on threads that the block
starts. On CUDA, it doesn't see memory that the context and libraries allocate beside torch. The
data of numpy arrays is a separate figure (`count_numpy`). Python objects never count, however large
they are: a bytearray, an array in its buffer, a list of numbers.

The meter can be cheated. Code in the same process can switch off dispatch modes or tracemalloc,
allocate through ctypes or mmap, work in a thread or a child process, or replace this module. If you
don't trust the code, measure from outside the process too.

Long because students import the meter and its results as one module, `peakmem.meter`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

from peakmem.core.errors import OutOfMemory
from peakmem.measure.attribution import StepPart
from peakmem.measure.dispatch import Operators
from peakmem.measure.history import History
from peakmem.measure.module_layers import watching_layers
from peakmem.measure.storages import CudaAllocator, NumpyMemory, Storages, tensors_in
from peakmem.specs.ledger import Ledger

__all__ = ["BuildStep", "Measurement", "MemoryMeter", "measure", "measure_call"]

# Takes a device, builds model, optimizer and batch on it, and returns a function for one step.
BuildStep = Callable[[torch.device], Callable[[], object]]

_open_meters: list[MemoryMeter] = []  # the innermost last


class MemoryMeter:
    """Counts the bytes live on one device while its `with` block runs.

    On the CPU, it counts the block's allocations and the tensors given to `track`. On CUDA, it
    counts all memory that the allocator has handed out. There, run a first step before the block,
    because libraries keep workspaces from their first use on.

    >>> with MemoryMeter("cpu") as meter:
    ...     a = torch.zeros(256)
    ...     b = a + a
    ...     del a
    >>> meter.peak_bytes, meter.live_bytes
    (2048, 1024)

    Args:
        device: "cpu", "cuda" or "cuda:N"; None means the GPU if there is one, else the CPU.
        budget_bytes: the first operator that raises live bytes above it raises OutOfMemory.
        count_numpy: also count numpy arrays, in a separate figure.
        history: keep records for `timeline` and `ledger`, about 270 bytes of Python memory for each
            operator. Without it, the meter's own memory depends on the live tensors, and not on
            the number of operators.

    Attributes:
        baseline_bytes: bytes live when the block began.
        peak_bytes: the most bytes live at once, including the baseline.
        peak_operation: the first operator at the peak.
        numpy_peak_bytes: the most bytes of numpy arrays live at once, beyond those at the block's
            beginning; None without `count_numpy`. Arrays older than the block don't count, even
            when they are freed. If the caller runs tracemalloc, Python objects count too. The two
            peaks may come at different times, so their sum is an upper bound on the common peak.

    Raises:
        RuntimeError: there is no such device; or nothing was live on it during the whole block,
            because a peak of 0 means a meter on the wrong device; or CUDA's allocator ran out
            of memory and freed its cache.
        OutOfMemory: an operator exceeded the budget, or the GPU was full.
    """

    def __init__(
        self,
        device: str | torch.device | None = None,
        budget_bytes: int | None = None,
        *,
        count_numpy: bool = False,
        history: bool = True,
    ) -> None:
        self.device = _device(device)
        self.budget_bytes = budget_bytes
        self.baseline_bytes = 0
        self.peak_bytes = 0
        self.peak_operation = "start"
        self.numpy_peak_bytes: int | None = 0 if count_numpy else None
        self._storages = Storages(self.device.type, history=history)
        self._memory = CudaAllocator(self.device) if self.device.type == "cuda" else self._storages
        self._numpy = NumpyMemory() if count_numpy else None
        self._history = History(self._storages) if history else None
        self._operators = Operators(self.device.type, self._ran)
        self._entered = False
        self._last_bytes = 0  # bytes live after the last event
        self._final_bytes: int | None = None  # bytes live when the block ended

    @property
    def live_bytes(self) -> int:
        """Bytes live now; after the block, those live at its end."""
        return self._memory.read()[0] if self._final_bytes is None else self._final_bytes

    @property
    def rise_bytes(self) -> int:
        """The peak beyond the bytes live when the block began."""
        return self.peak_bytes - self.baseline_bytes

    @property
    def timeline(self) -> list[tuple[str, int]]:
        """Each event with the bytes live right after it: "start", every operator, "end"."""
        return self._kept().events

    def ledger(self, start: int = 0) -> Ledger:
        """Return all counted tensors with their owners, from an event of the timeline on.

        A tensor has the name of the operator that made it. On CUDA, memory that the allocator has
        handed out beside tensors is a temporary: of the operator that set the peak, or of "cuda" if
        it is older than the block. Raises RuntimeError without a history, and ValueError if there
        is no such event.
        """
        return self._kept().ledger(start)

    def watch_layers(self) -> AbstractContextManager[None]:
        """Return a context that records which layer of a model makes each tensor."""
        return watching_layers(self._storages)

    def begin_again(self) -> int:
        """Reset the peak, as after a warm-up; return the event that marks the place.

        Without a history, the event is 0.
        """
        self._memory.start()
        self.peak_bytes = 0
        self._record("start of step", StepPart.FORWARD)
        self._notice_unseen("cuda", self._last_bytes, lasts=True)
        return len(self._history) - 1 if self._history is not None else 0

    def track(self, *things: Any) -> MemoryMeter:
        """Count tensors that exist already, and return the meter.

        `things` are tensors, modules (with gradients), optimizers (with state), and lists, tuples
        and dicts of these.
        """
        for tensor in tensors_in(things):
            self._storages.add(tensor)
        if self._history is not None:
            self._history.claim(things)
        return self

    def __enter__(self) -> MemoryMeter:
        if self._entered:
            raise RuntimeError("a MemoryMeter measures one block; make a new one for the next")
        self._entered = True
        for outer in _open_meters:
            outer._keep_peaks()  # before this meter resets the same counters
        self._memory.start()
        if self._numpy is not None:
            self._numpy.start()
        self.baseline_bytes = self._record("start", StepPart.FORWARD)
        self._notice_unseen("cuda", self._last_bytes, lasts=True)
        if self._history is not None:
            self._history.start()
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
        if self._history is not None:
            self._history.stop()
        try:
            self._memory.stop()
            self._keep_peaks()
            self._final_bytes = self._record("end")
            self._storages.stop()
        finally:
            if self._numpy is not None:
                self._numpy.stop()
        if isinstance(error, torch.OutOfMemoryError):
            raise OutOfMemory(f"{self.device} is full: {error}") from error
        if error is None:
            self._refuse_useless_figures()

    def _refuse_useless_figures(self) -> None:
        if self.peak_bytes == 0:
            raise RuntimeError(
                f"nothing was live on {self.device} during the block, so there is no peak to "
                "report. Meter the device that the tensors are on, or pass them to track()."
            )
        if isinstance(self._memory, CudaAllocator) and self._memory.ran_full():
            raise RuntimeError(
                f"{self.device} ran out of memory during the block, and its allocator freed the "
                "cache, so the figures are unreliable. Free memory, or measure a smaller size."
            )

    def _kept(self) -> History:
        if self._history is None:
            raise RuntimeError("this meter keeps no history; make it with history=True")
        return self._history

    def _record(self, event: str, part: StepPart | None = None) -> int:
        """Record an event, and its peak if it is the highest; return the bytes live after it."""
        self._last_bytes, peak_bytes = self._memory.read()
        if self._history is not None:
            self._history.add(event, self._last_bytes, part)
        if peak_bytes > self.peak_bytes:
            self.peak_bytes, self.peak_operation = peak_bytes, event
        return self._last_bytes

    def _notice_unseen(self, maker: str, total_bytes: int, *, lasts: bool = False) -> None:
        """Record the part of the allocator's `total_bytes` that isn't in known tensors."""
        if self._history is not None and self._memory is not self._storages:
            self._history.add_unseen(maker, total_bytes, lasts=lasts)

    def _keep_peaks(self) -> None:
        self.peak_bytes = max(self.peak_bytes, self._memory.read()[1])
        if self._numpy is not None and self.numpy_peak_bytes is not None:
            self.numpy_peak_bytes = max(self.numpy_peak_bytes, self._numpy.read()[1])

    def _ran(
        self, operator: str, arguments: list[torch.Tensor], had: set[int], result: Any
    ) -> OutOfMemory | None:
        """Count an operator's result; return the error if it exceeds the budget, else None.

        `had` are the ids of its arguments' storages.
        """
        if self._history is not None:
            self._history.took(arguments)
        asked_bytes = 0
        for tensor in tensors_in(result):
            asked_bytes += self._storages.add_result(tensor, operator, had)
        if self._history is not None:
            self._history.ran(operator, arguments, result)
        peak_before, live_before = self.peak_bytes, self._last_bytes
        needed_bytes = self._record(operator)
        if self.peak_bytes > peak_before:
            needed_bytes = self.peak_bytes  # CUDA reports peaks within an operator
            self._notice_unseen(operator, self.peak_bytes)
        if self.budget_bytes is None or needed_bytes <= self.budget_bytes:
            return None
        if self.device.type == "cuda":
            asked_bytes = max(asked_bytes, needed_bytes - live_before)
        return OutOfMemory(
            f"{operator} asked for {asked_bytes:,} bytes beside {needed_bytes - asked_bytes:,} "
            f"live ones, {needed_bytes:,} in all; the budget is {self.budget_bytes:,} bytes",
            needed_bytes=needed_bytes,
            budget_bytes=self.budget_bytes,
        )


@dataclass(frozen=True)
class Measurement:
    """The memory and the time of one call."""

    #: Peak of live bytes during the call.
    peak_bytes: int
    #: Bytes live before the call.
    live_before_bytes: int
    #: Including the call's result.
    live_after_bytes: int
    #: Including the meter's own work.
    seconds: float
    #: The torch device, such as "cpu" or "cuda:0".
    device: str
    #: None without `count_numpy`.
    numpy_peak_bytes: int | None = None

    @property
    def rise_bytes(self) -> int:
        """The peak beyond the bytes live before the call."""
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
    """Call `fn(*args)` under a MemoryMeter, and return its memory and time.

    Tensors, modules and optimizers in `args` and in `track` count as live before the call. First
    come `warm_up` unmeasured calls. On CUDA, use 2, so that libraries and optimizers have made
    their one-time allocations. Raises the errors of MemoryMeter.

    >>> measure_call(torch.add, torch.zeros(256), torch.zeros(256), device="cpu").rise_bytes
    1024
    """
    for _ in range(warm_up):
        fn(*args)
    meter = MemoryMeter(device, budget_bytes, count_numpy=count_numpy, history=False)
    meter.track(args, list(track))
    with meter:
        start = time.perf_counter()
        result = fn(*args)
        if meter.device.type == "cuda":
            torch.cuda.synchronize(meter.device)
        seconds = time.perf_counter() - start
    del result  # kept alive until the meter has read the bytes live after the call
    return Measurement(
        peak_bytes=meter.peak_bytes,
        live_before_bytes=meter.baseline_bytes,
        live_after_bytes=meter.live_bytes,
        seconds=seconds,
        device=str(meter.device),
        numpy_peak_bytes=meter.numpy_peak_bytes,
    )


def measure(
    build_step: BuildStep,
    device: str | torch.device | None = None,
    budget_bytes: int | None = None,
    *,
    warm_up: int = 2,
) -> Ledger:
    """Build a training step, run it, and return the ledger of one run after `warm_up` others.

    `build_step(device)` builds a new model, optimizer and batch on the device, and returns a
    function that runs one step. The budget applies from the first tensor on. Raises the errors of
    MemoryMeter.

    >>> def build_step(device):
    ...     layer = torch.nn.Linear(8, 4, bias=False, device=device)
    ...     adam = torch.optim.Adam(layer.parameters())
    ...     x = torch.ones(2, 8, device=device)
    ...     def step():
    ...         adam.zero_grad()
    ...         layer(x).sum().backward()
    ...         adam.step()
    ...     return step
    >>> ledger = measure(build_step, "cpu")
    >>> ledger.by_owner(0)  # when a step begins, the gradients of the last one are still there
    {'parameter': 128, 'gradient': 128, 'optimizer_state': 260, 'activation': 64}
    """
    meter = MemoryMeter(device, budget_bytes)
    with meter:
        step = build_step(meter.device)
        return run_measured(meter, step, warm_up)


def run_measured(meter: MemoryMeter, step: Callable[[], object], warm_up: int) -> Ledger:
    """Run a step `warm_up` times and once more in an open meter; return the last run's ledger."""
    for _ in range(warm_up):
        step()
    start = meter.begin_again()
    result = step()
    ledger = meter.ledger(start)
    del result  # kept alive until the ledger is made
    return ledger


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(device)
    if device.type not in ("cpu", "cuda"):
        raise ValueError(
            f"a meter reads cpu or cuda, but got {device.type}; move the work to one of them"
        )
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(
            f"there is no CUDA GPU here, so {device} has no memory to measure; use device='cpu'"
        )
    return device
