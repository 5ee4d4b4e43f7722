"""Result of the memory calculator: the verdict, a step's figures, and its peak by owner.

A large model's allocation takes as long as its ledger, so it follows the ledger's own figures.
"""

from __future__ import annotations

from itertools import accumulate

from peakmem.core.collector import no_collection
from peakmem.core.units import GB, both
from peakmem.predict.estimate import Estimate
from peakmem.show.palette import colours_of
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Result
from peakmem.show.widgets.estimates import is_whole
from peakmem.show.widgets.parts import table
from peakmem.specs.models import parameter_count

__all__ = ["result_of"]

_LEFT_OUT = (
    "<p>Not counted: other libraries' workspaces, and scratch memory inside an operator.</p>"
)


def result_of(found: Estimate) -> Result:
    """Return the text and picture of an estimate, with "..." for figures that follow."""
    n_parameters = sum(parameter_count(found.model).values())
    with no_collection():  # the verdict may need a second ledger
        verdict = _verdict(found) if is_whole(found) else "..."
    rows = [
        ("parameters", f"{n_parameters:,}"),
        (f"peak, in {found.ledger.peak_phase}", both(found.peak_bytes)),
        *_process(found),
        (f"memory of {found.device.name}", both(found.device.memory_bytes)),
    ]
    words = f"<p><b>{verdict}</b></p>{table(rows)}"
    return Result(words, _draw(found) + _LEFT_OUT, (found.peak_bytes / GB, "GB"))


def _verdict(found: Estimate) -> str:
    left = both(abs(found.margin_bytes))
    return {
        "fits": f"It fits, with {left} to spare.",
        "may fit": f"It may not fit: it may need {left} more.",
        "reduce activations": "It doesn't fit. Fewer sequences at a time would fit.",
        "no batch size can fix this": "It doesn't fit, and no batch size can fix this.",
    }[found.verdict]


def _process(found: Estimate) -> list[tuple[str, str]]:
    """Return rows about the memory on top of the peak, if torch's own allocator is used."""
    if found.device.unified:
        return []
    reserved = needed = "..."
    if is_whole(found):
        reserved, needed = both(found.allocation.reserved_bytes), both(found.needed_bytes)
    return [("reserved by torch's allocator", reserved), ("the process, at most", needed)]


def _draw(found: Estimate) -> str:
    """Draw the peak by owner as one stacked bar, and the GPU's memory as a line."""
    by_owner = found.ledger.by_owner()
    colours = colours_of(by_owner)
    most = max(found.peak_bytes, found.device.memory_bytes) / GB
    across = svg.Scale(0, most, 14, svg.WIDTH - 14)
    parts = []
    sizes = [n / GB for n in by_owner.values()]
    for (owner, n_bytes), end in zip(by_owner.items(), accumulate(sizes), strict=True):
        x = across(end - n_bytes / GB)
        title = f"{owner.replace('_', ' ')}: {both(n_bytes)}"
        parts.append(svg.rect(x, 34, across(end) - x, 44, colours[owner], title=title))
    parts += svg.limit(across(found.device.memory_bytes / GB), 84, found.device.name)
    parts.append(svg.axis_x(across, 86, "GB live at the peak, by owner"))
    for n, (owner, n_bytes) in enumerate(by_owner.items()):
        x, y = 14 + 232 * (n % 2), 138 + 22 * (n // 2)
        label = f"{owner.replace('_', ' ')} {n_bytes / GB:.2f} GB"
        parts += svg.key(x, y, colours[owner], label)
    label = f"Peak memory of {found.model.name} by owner: {both(found.peak_bytes)}"
    return svg.picture(142 + 22 * ((len(by_owner) + 1) // 2), parts, label)
