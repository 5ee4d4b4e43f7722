"""Does it fit? What a process that runs a ledger's step takes, beside the memory of one device.

A ledger has the bytes that tensors ask for. The verdict puts in what torch's allocator reserves on
top of them, and the CUDA context with cuBLAS's workspace. Still left out are other libraries'
workspaces and buffers of communication, so a step that fits with little to spare may still fail. On
a device that shares the host's memory nothing is known of its allocator, and the peak alone
decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from peakmem.core.units import MiB
from peakmem.predict.caching_allocator import Replay, replay
from peakmem.specs.hardware import Accelerator
from peakmem.specs.ledger import Ledger

__all__ = ["CONTEXT_BYTES", "Fit"]

#: Of a process that runs torch, at the least and at the most: with CUDA's modules loaded lazily, as
#: torch 1.13 and later ask for, and all of them at once (github.com/pytorch/pytorch/pull/86509). On
#: top cuBLAS's workspace, which is at most this large by default (32 MiB, on Hopper and later;
#: getChosenWorkspaceSize in torch).
CONTEXT_BYTES = (287_047_680, 666_632_192 + 32 * MiB)


@dataclass(frozen=True)
class Fit:
    """A step's ledger, predicted or traced, and the device that it is to run on."""

    device: Accelerator
    ledger: Ledger

    @property
    def peak_bytes(self) -> int:
        """The most that is live at once on one device."""
        return self.ledger.peak_bytes

    @property
    def needed_bytes(self) -> int:
        """The memory that is enough: the process's at the most; of unified memory, the peak."""
        return self.peak_bytes if self.device.unified else self.process_bytes[1]

    @property
    def margin_bytes(self) -> int:
        """What is left of the device's memory then; negative where it may not be enough."""
        return self.device.memory_bytes - self.needed_bytes

    @property
    def fits(self) -> bool:
        """Whether the device has as much as is needed."""
        return self.device.memory_bytes >= self.peak_bytes and self.margin_bytes >= 0

    @property
    def excess_bytes(self) -> int:
        """What is missing at the least; 0 where it fits, or may fit."""
        low = self.peak_bytes if self.device.unified else self.process_bytes[0]
        return max(0, low - self.device.memory_bytes)

    @cached_property
    def allocation(self) -> Replay:
        """What torch's caching allocator makes of the step."""
        return replay(self.ledger)

    @property
    def process_bytes(self) -> tuple[int, int]:
        """What the whole process takes on CUDA: at the least, and with all that is reserved.

        Where that is too much, torch first gives back segments that are wholly free.
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
