"""Does it fit? The memory of a process that runs a ledger's step, compared with a device's.

A ledger counts the bytes that tensors request. The verdict adds the memory that torch's allocator
reserves in addition, the CUDA context, and cuBLAS's workspace. It leaves out other libraries'
workspaces and communication buffers, so a step with a small margin may still fail. On a device that
shares the host's memory, the allocator is unknown, and the peak alone decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from peakmem.core.units import MiB
from peakmem.predict.caching_allocator import Replay, replay
from peakmem.specs.hardware import Accelerator
from peakmem.specs.ledger import Ledger

__all__ = ["CONTEXT_BYTES", "Fit"]

#: The least and the most that a torch process takes for CUDA itself. The least: the context with
#: modules loaded lazily (github.com/pytorch/pytorch/pull/86509). The most, as on an H200 after a
#: step (docs/measurements): a context of 783,876,096 bytes, and workspaces, each once for forward's
#: thread and once for backward's: cuBLAS's (by default 32 MiB on Hopper and later, less before:
#: getChosenWorkspaceSize in torch) and cuBLASLt's (1 MiB).
CONTEXT_BYTES = (287_047_680, 783_876_096 + 2 * 33 * MiB)


@dataclass(frozen=True)
class Fit:
    """A step's ledger, predicted or traced, and the device to run it on."""

    #: The device whose memory the step has.
    device: Accelerator
    #: The step's tensors and events.
    ledger: Ledger

    @property
    def peak_bytes(self) -> int:
        """The most bytes of tensors live at once."""
        return self.ledger.peak_bytes

    @property
    def needed_bytes(self) -> int:
        """Enough memory: the process's upper bound, or the peak if memory is unified."""
        return self.peak_bytes if self.device.unified else self.process_bytes[1]

    @property
    def margin_bytes(self) -> int:
        """The device's memory minus `needed_bytes`; negative if it may not be enough."""
        return self.device.memory_bytes - self.needed_bytes

    @property
    def fits(self) -> bool:
        """Whether the device has `needed_bytes`."""
        return self.device.memory_bytes >= self.peak_bytes and self.margin_bytes >= 0

    @property
    def excess_bytes(self) -> int:
        """The least additional memory that the step needs; 0 if the step fits or may fit."""
        low = self.peak_bytes if self.device.unified else self.process_bytes[0]
        return max(0, low - self.device.memory_bytes)

    def on(self, device: Accelerator) -> Self:
        """Return the same step on another device, with the simulated allocation if it is known."""
        other = replace(self, device=device)
        if "allocation" in self.__dict__:
            other.__dict__["allocation"] = self.allocation
        return other

    @cached_property
    def allocation(self) -> Replay:
        """The step's peaks in torch's caching allocator."""
        return replay(self.ledger)

    @property
    def process_bytes(self) -> tuple[int, int]:
        """The least and the most memory that the whole process takes on CUDA.

        The most includes everything that the allocator reserves. If that is too much, torch first
        releases segments that are completely free.
        """
        low, high = CONTEXT_BYTES
        return self.peak_bytes + low, self.allocation.reserved_bytes + high

    def as_json(self) -> dict[str, Any]:
        """Return the figures as plain data, in bytes."""
        return {
            "peak_bytes": self.peak_bytes,
            "allocated_bytes": self.allocation.allocated_bytes,
            "reserved_bytes": self.allocation.reserved_bytes,
            "process_bytes": self.process_bytes,
            "needed_bytes": self.needed_bytes,
            "peak_phase": self.ledger.peak_phase,
            "by_owner": self.ledger.by_owner(),
            "by_layer": self.ledger.by_layer(),
            "by_module": self.ledger.by_module(),
            "memory_bytes": self.device.memory_bytes,
            "memory_source": self.device.memory.source,
            "margin_bytes": self.margin_bytes,
            "fits": self.fits,
        }
