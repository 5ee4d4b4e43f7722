"""Output of `peakmem estimate --inference`: weights, KV cache, and how many sequences fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from peakmem.core.units import both
from peakmem.predict.fit import CONTEXT_BYTES
from peakmem.predict.inference import Inference
from peakmem.show.step_report import board_line, fit_line, head, memory_row, row
from peakmem.specs.hardware import BOARDS, Accelerator, smallest_board

__all__ = ["InferenceReport"]

_NOT_COUNTED = (
    "Not counted: other libraries' workspaces, and temporaries for the prompt, which grow with the "
    "number of tokens processed at once."
)


@dataclass(frozen=True)
class InferenceReport:
    """A model that generates text on one of its devices."""

    #: The model's name, or its config as the user gave it.
    name: str
    #: The predicted memory.
    found: Inference
    #: The device that the model runs on, one of its kind or several.
    device: Accelerator
    #: Whether the user named no device, so that this is the smallest one that is enough.
    was_chosen: bool

    @classmethod
    def of(cls, name: str, found: Inference, device: Accelerator | None) -> InferenceReport:
        """Return the report; without a device, on the smallest board that is enough."""
        needed = found.bytes + CONTEXT_BYTES[1]
        chosen = device or smallest_board(needed) or BOARDS[-1]
        return cls(name, found, chosen, was_chosen=device is None)

    @property
    def process_bytes(self) -> tuple[int, int]:
        """The least and the most bytes that the process takes."""
        if self.device.unified:
            return self.found.bytes, self.found.bytes
        return self.found.bytes + CONTEXT_BYTES[0], self.found.bytes + CONTEXT_BYTES[1]

    @property
    def margin_bytes(self) -> int:
        """The device's memory less the most that the process takes."""
        return self.device.memory_bytes - self.process_bytes[1]

    @property
    def largest_batch(self) -> int:
        """How many sequences fit if the process takes the most."""
        overhead = self.process_bytes[1] - self.found.bytes
        return self.found.largest_batch(self.device.memory_bytes - overhead)

    @property
    def fit_line(self) -> str:
        """A sentence that says whether the model fits."""
        return fit_line(self.margin_bytes, self.process_bytes[0] - self.device.memory_bytes)

    @property
    def notes(self) -> list[str]:
        """A sentence for each assumption."""
        serving, found = self.found.serving, []
        if serving.quantized:
            found.append(
                f"Matrices of attention, MLP and experts are in {serving.quantized}, with their "
                f"scales; everything else, including the cache, is in {serving.dtype}."
            )
        if serving.expert > 1:
            groups = serving.expert // serving.tensor
            found.append(
                f"{serving.expert} devices share the experts. They are {groups} groups of "
                f"{serving.tensor}, each of which has its own sequences and all other weights."
            )
        if any(layer.heads == 1 for layer in self.found.cache) and serving.tensor > 1:
            found.append("Each device holds the whole cache: there are no heads to split.")
        if any(layer.window for layer in self.found.cache):
            found.append("Layers with a sliding window cache only the window.")
        return [*found, _NOT_COUNTED]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the output without --json."""
        serving, table = self.found.serving, self.found.table
        devices = f"{serving.devices} x " if serving.devices > 1 else ""
        where = self.device.name or "one device"
        yield f"{self.name}: {table.total:,} parameters; inference on {devices}{where}"
        sequences = "1 sequence" if serving.batch == 1 else f"{serving.batch} sequences"
        yield f"{sequences} of {serving.context} tokens, in {serving.dtype}"
        yield ""
        yield head("on one device")
        for owner, n_bytes in self.found.by_owner().items():
            yield row({"kv_cache": "KV cache"}.get(owner, owner), n_bytes)
        yield row("total", self.found.bytes)
        yield memory_row(self.device)
        yield ""
        low, high = self.process_bytes
        if high > low:
            yield f"The process takes {both(low)} to {both(high)} with CUDA's context and cuBLAS."
        yield self.fit_line
        if self.was_chosen:
            yield board_line(self.device, "it", fits=self.margin_bytes >= 0)
        yield f"Largest batch of {serving.context}-token sequences that fits: {self.largest_batch}."
        yield from self.notes

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data, in bytes."""
        return {
            "model": self.name,
            "gpu": self.device.name or None,
            "parameters": self.found.table.total,
            "devices": self.found.serving.devices,
            "batch": self.found.serving.batch,
            "context": self.found.serving.context,
            "by_owner": self.found.by_owner(),
            "sequence_bytes": self.found.sequence_bytes,
            "process_bytes": self.process_bytes,
            "memory_bytes": self.device.memory_bytes,
            "margin_bytes": self.margin_bytes,
            "fits": self.margin_bytes >= 0,
            "largest_batch": self.largest_batch,
            "notes": self.notes,
        }
