"""What `peakmem estimate` tells people: who has the peak's bytes, whether it fits, remedies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peakmem.core.units import both
from peakmem.predict.estimate import Estimate
from peakmem.predict.suggestions import suggest
from peakmem.show.cli.step import GIVEN
from peakmem.specs.hardware import ACCELERATORS
from peakmem.specs.models import MODELS, parameter_count

__all__ = ["closing_lines", "listing", "notes_on", "table_lines", "verdict_lines"]


def listing() -> Iterator[str]:
    """Yield a line for each model and each GPU."""
    yield "models"
    for name, shape in MODELS.items():
        n_parameters = sum(parameter_count(shape).values())
        yield f"  {name:<16}{n_parameters:>16,} parameters"
    yield "GPUs, with the memory that a program can have"
    for name, device in ACCELERATORS.items():
        yield f"  {name:<16}{both(device.memory_bytes):<26}{device.memory.source}"


def table_lines(found: Estimate) -> Iterator[str]:
    """Yield the bytes at the peak by owner, beside the device's memory."""
    n_parameters = sum(parameter_count(found.model).values())
    devices, device = found.parallelism.devices, found.device
    name = device.name or ("device" if devices > 1 else "one device")
    where = f"{devices} x {name}" if devices > 1 else name
    yield f"{found.model.name}: {n_parameters:,} parameters; one step on {where}"
    yield ""
    yield f"{'at the peak, on one device':<28}{'bytes':>20}  "
    by_owner: dict[Any, int] = found.ledger.by_owner()
    for owner, n_bytes in by_owner.items():
        yield f"  {owner.replace('_', ' '):<26}{n_bytes:>20,}  {both(n_bytes)}"
    yield f"  {'peak':<26}{found.peak_bytes:>20,}  {both(found.peak_bytes)}"
    memory = "memory given" if device.memory.source == GIVEN else f"memory of {device.name}"
    yield f"  {memory:<26}{device.memory_bytes:>20,}  {both(device.memory_bytes)}"
    yield ""
    yield f"The peak comes in the {found.ledger.peak_phase} phase."


def verdict_lines(found: Estimate) -> Iterator[str]:
    """Yield whether it fits, and then what would make it."""
    if found.fits:
        yield f"It fits, with {both(found.margin_bytes)} to spare."
        return
    yield f"It does not fit: {both(-found.margin_bytes)} too much."
    if found.verdict == "reduce activations":
        yield "Reduce activations: with fewer sequences at a time it would fit."
    else:
        share = found.state_bytes / found.peak_bytes
        yield (
            "No batch size can fix this: one sequence at a time is too much. At the peak, weights, "
            f"gradients and optimizer state are {share:.0%} of what is live."
        )
    cheapest = suggest(found)
    rates = "" if found.device.name else " at a similar board's rates"
    yield (
        f"Cheapest changes that would fit (device time a sequence{rates}, now = 1):"
        if cheapest
        else ("Nothing that was tried makes it fit; take a smaller model or a larger device.")
    )
    for suggestion in cheapest:
        size = both(suggestion.estimate.peak_bytes)
        yield f"  {suggestion.cost:5.2f}  {'; '.join(suggestion.changes)}: {size}"


def notes_on(found: Estimate, *, was_chosen: bool) -> Iterator[str]:
    """Yield what you should know beside the figures, a sentence each."""
    device, many = found.device, found.parallelism
    if was_chosen and found.fits:
        yield f"{device.name} is the smallest board here that holds this step."
    elif was_chosen:
        yield f"No board here holds this step; {device.name} is the largest."
    if not device.memory.reported and device.memory.source != GIVEN:
        yield f"The memory of {device.name} is an {device.memory.source}."
    if many.zero and many.data == 1:
        yield (
            f"ZeRO stage {many.zero} has no effect with one replica; "
            "give --data-parallel 2 or more."
        )
    if device.unified:
        yield f"Predicted by the rules of torch on CUDA; {device.name} may need more."


def closing_lines(found: Estimate) -> Iterator[str]:
    """Yield what comes on top of the peak."""
    if not found.device.unified:
        yield from _process(found)
    yield "Not in the peak: the CUDA context, libraries' workspaces, the allocator's fragments."


def _process(found: Estimate) -> Iterator[str]:
    """Yield what comes on top of the peak, and whether it still fits then."""
    low, high = found.process_bytes
    reserved = both(found.allocation.reserved_bytes)
    yield f"Torch's allocator reserves {reserved}, without expandable segments."
    yield f"With the CUDA context and cuBLAS the process takes {both(low)} to {both(high)}."
    if found.fits and high > found.device.memory_bytes:
        yield f"So it {'may' if low <= found.device.memory_bytes else 'does'} not fit after all."
