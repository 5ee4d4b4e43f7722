"""Output of `peakmem snapshot`: the owners of the peak in a recorded memory snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakmem.core.units import both
from peakmem.measure.snapshot import BEFORE, ledger_of_snapshot, read_snapshot
from peakmem.specs.ledger import Ledger, Owner, Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Remedy",
    "by_place",
    "draw_snapshot",
    "remedies_of",
    "snapshot_lines",
    "snapshot_report",
]

_MOST_LINES = 12

#: An owner's plural, and what would shrink what it holds.
_REMEDIES: dict[Owner, tuple[str, str]] = {
    "parameter": ("parameters", "fewer bits (bf16, a quantized base), or shards on many devices"),
    "gradient": ("gradients", "update each in backward, accumulate in 16 bits, or shard them"),
    "optimizer_state": ("optimizer state", "8-bit moments, shards (ZeRO), or the host's memory"),
    "activation": (
        "activations",
        "checkpointing, flash attention, a smaller micro-batch, or a swap",
    ),
    "logits": ("logits", "compute the loss in chunks of tokens, so that they are never all live"),
    "temporary": ("temporaries", "in-place or fused operations, or an optimizer without foreach"),
}


def snapshot_report(path: str, *, device: int = 0, plot: str | None = None) -> list[str]:
    """Return the lines to print about a snapshot's file; draw it into the file `plot`, if given.

    Raises ValueError if the file isn't a snapshot or has no such device, and OSError if a file
    can't be read or written.
    """
    ledger = ledger_of_snapshot(read_snapshot(path), device)
    lines = list(snapshot_lines(ledger))
    if plot is not None:
        draw_snapshot(ledger).savefig(plot)
        lines += ["", f"plot written to {plot}"]
    return lines


def snapshot_lines(ledger: Ledger) -> Iterator[str]:
    """Yield the peak, its owners, the source lines that hold it, and ways to shrink it."""
    peak = ledger.peak_bytes
    yield f"peak: {both(peak)}, at event {ledger.peak_event} of {len(ledger.events) - 1}"
    yield ""
    owners = sorted(ledger.by_owner().items(), key=lambda item: -item[1])
    for owner, n_bytes in owners:
        yield f"{n_bytes / peak:6.1%}  {owner.replace('_', ' '):16} {both(n_bytes)}"
    yield ""
    places = list(by_place(ledger, lambda tensor: (tensor.name, tensor.layer)).items())
    for (place, module), n_bytes in places[:_MOST_LINES]:
        inside = f" in {module}" if module else ""
        yield f"{n_bytes / peak:6.1%}  {both(n_bytes):26} {place}{inside}"
    if rest := places[_MOST_LINES:]:
        yield f"        and {len(rest)} more places: {both(sum(n for _, n in rest))}"
    yield ""
    yield "What would shrink it, the largest first:"
    for remedy in remedies_of(ledger):
        yield f"- {remedy.owner}: {remedy.text} (the peak without: {both(remedy.peak_without)})"
    if any(tensor.name == BEFORE for tensor in ledger.live()):
        yield f'Memory allocated {BEFORE} has no stack and counts as "temporary".'


@dataclass(frozen=True)
class Remedy:
    """What would shrink an owner's share of the peak, and what all of it could save."""

    #: In the plural, as people say it.
    owner: str
    #: What would shrink it.
    text: str
    #: What the owner holds at the peak.
    held_bytes: int
    #: The most that is live at any event if this owner held nothing.
    peak_without: int


def remedies_of(ledger: Ledger) -> list[Remedy]:
    """Return a remedy for each owner that holds some of the peak, the largest owner first."""
    levels = ledger.live_by_owner()
    found = []
    for owner, n_bytes in sorted(ledger.by_owner().items(), key=lambda item: -item[1]):
        if owner in _REMEDIES:
            both_levels = zip(ledger.live_bytes, levels[owner], strict=True)
            without = max(live - own for live, own in both_levels)
            found.append(Remedy(*_REMEDIES[owner], n_bytes, without))
    return found


def by_place(
    ledger: Ledger, place_of: Callable[[Tensor], tuple[str, ...]], event: int | None = None
) -> dict[tuple[str, ...], int]:
    """Return what each place holds at an event (the peak's, if None), the largest first."""
    places: dict[tuple[str, ...], int] = {}
    for tensor in ledger.live(event):
        place = place_of(tensor)
        places[place] = places.get(place, 0) + tensor.bytes
    return dict(sorted(places.items(), key=lambda item: (-item[1], item[0])))


def draw_snapshot(ledger: Ledger) -> Figure:
    """Return a plot of live memory over the recording, stacked by owner, with the peak marked."""
    from matplotlib.figure import Figure  # late, because matplotlib is slow to load

    from peakmem.show.plots.memory import live_by_owner

    figure = Figure(figsize=(10, 4.8), layout="constrained")
    live_by_owner(figure.add_subplot(), ledger, x_label="allocations and frees so far")
    return figure
