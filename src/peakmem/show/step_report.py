"""Output of `peakmem estimate`: the peak's owners and layers, and whether the step fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType

from peakmem.core.units import both
from peakmem.predict.estimate import Estimate
from peakmem.predict.fit import CONTEXT_BYTES, Fit
from peakmem.predict.suggestions import largest_batch, suggest
from peakmem.show.cli.step import GIVEN
from peakmem.specs.hardware import Accelerator
from peakmem.specs.ledger import Ledger

__all__ = [
    "TABLES",
    "batch_line",
    "board_line",
    "fit_line",
    "head",
    "layer_lines",
    "memory_row",
    "owner_lines",
    "peak_lines",
    "row",
    "verdict_lines",
]


def head(what: str, width: int = 26) -> str:
    """Return the first line of a table of bytes; `what` says what its rows are."""
    return f"{what:<{width + 2}}{'bytes':>20}"


def row(name: str, n_bytes: int, width: int = 26) -> str:
    """Return a line of a table of bytes."""
    return f"  {name:<{width}}{n_bytes:>20,}  {both(n_bytes)}"


def memory_row(device: Accelerator) -> str:
    """Return the line with a device's memory, which the user may have given."""
    given = device.memory.source == GIVEN or not device.name
    return row("memory given" if given else f"memory of {device.name}", device.memory_bytes)


def owner_lines(ledger: Ledger) -> Iterator[str]:
    """Yield the bytes live at the peak by owner, and their sum."""
    for owner, n_bytes in ledger.by_owner().items():
        yield row(owner.replace("_", " "), n_bytes)
    yield row("peak", ledger.peak_bytes)


def layer_lines(ledger: Ledger) -> Iterator[str]:
    """Yield the bytes live at the peak by layer; equal neighbours share a line.

    Yields nothing if no layer is known.
    """
    by_layer = {layer: sum(of.values()) for layer, of in ledger.by_layer().items()}
    outside = by_layer.pop("", 0)
    if not by_layer:
        return
    rows = {
        _range(list(alike)): n_bytes
        for n_bytes, alike in groupby(by_layer, key=by_layer.__getitem__)
    } | {"outside any layer": outside}
    width = max(26, *map(len, rows))
    yield head("by layer", width)
    for name, n_bytes in rows.items():
        yield row(name, n_bytes, width)


def module_lines(ledger: Ledger) -> Iterator[str]:
    """Yield what is live at the peak by module within a layer, all layers together.

    Nothing if no module is known.
    """
    rows: dict[str, int] = {}
    for layer, modules in ledger.by_module().items():
        for module, by_owner in modules.items():
            stem, _, last = layer.rpartition(".")
            every = f"{stem}.*" if last.isdigit() else layer
            name = ".".join(filter(None, (every, module))) or "in no module"
            rows[name] = rows.get(name, 0) + sum(by_owner.values())
    if set(rows) <= {"in no module"}:
        return
    width = max(26, *map(len, rows))
    yield head("the same by module", width)
    for name, n_bytes in sorted(rows.items(), key=lambda item: -item[1]):
        yield row(name, n_bytes, width)


#: By the name that --by takes: what yields the table of a ledger.
TABLES: Mapping[str, Callable[[Ledger], Iterator[str]]] = MappingProxyType(
    {"layer": layer_lines, "module": module_lines}
)


def _range(layers: list[str]) -> str:
    """Return the names of neighbours in short, such as "blocks.0 to 11, each"."""
    if len(layers) == 1:
        return layers[0]
    before, last = layers[0].rpartition(".")[0], layers[-1]
    return f"{layers[0]} to {last.removeprefix(f'{before}.')}, each"


def peak_lines(found: Fit, by: str) -> Iterator[str]:
    """Yield the bytes at the peak by owner and by layer or module, and the whole process's."""
    yield head("at the peak, on one device")
    yield from owner_lines(found.ledger)
    yield memory_row(found.device)
    yield ""
    if table := list(TABLES[by](found.ledger)):
        yield from (*table, "")
    yield f"The peak occurs in the {found.ledger.peak_phase} phase."
    yield from process_lines(found)


def process_lines(found: Fit) -> Iterator[str]:
    """Yield the memory on top of the peak; nothing on a device that shares the host's memory."""
    if found.device.unified:
        return
    low, high = found.process_bytes
    reserved = both(found.allocation.reserved_bytes)
    yield f"Torch's allocator reserves {reserved}, without expandable segments."
    yield (
        f"The CUDA context and cuBLAS add {both(CONTEXT_BYTES[0])} to {both(CONTEXT_BYTES[1])}, "
        f"so the process takes {both(low)} to {both(high)}."
    )


def fit_line(margin_bytes: int, excess_bytes: int) -> str:
    """Return a sentence that says whether the whole process fits.

    The margin is what the most that it takes leaves; the excess, what even the least lacks.
    """
    if margin_bytes >= 0:
        return f"It fits, with at least {both(margin_bytes)} to spare."
    if excess_bytes > 0:
        return f"It doesn't fit: it needs at least {both(excess_bytes)} more."
    return f"It may not fit: it needs up to {both(-margin_bytes)} more."


def board_line(device: Accelerator, what: str, *, fits: bool) -> str:
    """Return a sentence on the board that was chosen because the user named none."""
    if fits:
        return f"{device.name} is the smallest listed board that holds {what}."
    return f"No listed board holds {what}; {device.name} is the largest."


def batch_line(found: Estimate) -> str:
    """Return a sentence that says how many sequences fit at once."""
    n, device = largest_batch(found), found.device.name or "this device"
    return f"Largest batch of {found.recipe.sequence}-token sequences that fits on {device}: {n}."


def verdict_lines(found: Estimate) -> Iterator[str]:
    """Yield whether the step fits and, if it doesn't, changes that would make it fit."""
    yield fit_line(found.margin_bytes, found.excess_bytes)
    if found.fits:
        return
    if found.verdict == "reduce activations":
        yield "Reduce activations: it would fit with fewer sequences at a time."
    elif found.verdict == "no batch size can fix this":
        share = found.state_bytes / found.peak_bytes
        yield (
            "No batch size can fix this: even one sequence is too much. At the peak, weights, "
            f"gradients and optimizer state make up {share:.0%} of live memory."
        )
    cheapest = suggest(found)
    rates = "" if found.device.name else " at a similar board's rates"
    yield (
        f"Cheapest changes that make it fit (device time per sequence{rates}, now = 1):"
        if cheapest
        else "No known change makes it fit; use a smaller model or a larger device."
    )
    for suggestion in cheapest:
        size = both(suggestion.estimate.needed_bytes)
        yield f"  {suggestion.cost:5.2f}  {'; '.join(suggestion.changes)}: {size}"
