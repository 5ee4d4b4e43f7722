"""Calculator of memory snapshots: what holds the recorded peak, and what would shrink it.

Files are read as plain data only. The examples are generated, so that a lecture needs no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, get_args

import ipywidgets
import traitlets

from peakmem.core.units import GB, MB, both
from peakmem.measure.generated_gpt import generated_gpt
from peakmem.measure.snapshot import (
    BEFORE,
    ledger_of_snapshot,
    parse_snapshot,
    read_snapshot,
    recorded_devices,
)
from peakmem.show.palette import colours_of
from peakmem.show.snapshot_report import by_place, remedies_of
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import row_of, sentence, unbroken_table
from peakmem.specs.ledger import Ledger, Owner, Tensor

__all__ = ["memory_snapshot"]

#: Example -> how it is generated: GPT-2 in training, 4 sequences of 1024 tokens, Adam in fp32.
_EXAMPLES: dict[str, dict[str, Any]] = {
    "GPT-2, plain": {},
    "GPT-2, tiled attention": {"blocks": True},
    "GPT-2, chunked loss too": {"blocks": True, "loss_chunks": 8},
}
_PLACES: dict[str, Callable[[Tensor], str]] = {
    "owner": lambda tensor: tensor.owner.replace("_", " "),
    "module": lambda tensor: tensor.layer or "outside torch.nn",
    "source line": lambda tensor: tensor.name,
}
_ROWS = 7  # of a table of places; the rest is summed up
_LETTERS = 26  # of a place: the end of a path says more than its beginning
_COLUMNS = 240  # of the picture of memory over time


def memory_snapshot(path: str | Path | None = None, *, predict: bool = False) -> Calculator:
    """Return a calculator of memory snapshots: memory over time, and what holds it.

    It begins with the file at `path`, as `torch.cuda.memory._dump_snapshot` writes it, or else with
    generated examples; a viewer opens other files with a button. Pass files of more than
    10 MB, which a page can't send, as `path`.

    Traits: snapshot (an example, or an opened file's name), by ("owner", "module" or "source
    line"), from_peak (the moment that is shown: allocations and frees after the peak, or before it
    if negative). With `predict` the result is hidden until the viewer has guessed the percent of
    the peak that its largest owner holds.

    Raises ValueError if the file isn't a snapshot, and OSError if it can't be read.
    """
    shown = _MemorySnapshot(predict)
    if path is not None:
        shown.add_snapshot(Path(path).name, read_snapshot(path))
        shown.begin(snapshot=shown.snapshot)
    return shown


class _MemorySnapshot(Calculator):
    snapshot = traitlets.Unicode(next(iter(_EXAMPLES)))
    by = traitlets.Unicode("owner")
    from_peak = traitlets.Int(0)

    def __init__(self, predict: bool) -> None:
        self._opened: dict[str, Ledger] = {}
        self._upload = ipywidgets.FileUpload(
            description="Open a snapshot", accept=".pickle,.pkl", icon=""
        )
        self._upload.observe(self._uploaded, names="value")
        self._remedies = ipywidgets.HTML()
        slider = ipywidgets.IntSlider(0, 0, 0, description="from the peak")
        self._bound(slider, self._ledger(self.snapshot))
        choice = ipywidgets.Dropdown
        super().__init__(
            {
                "snapshot": choice(options=list(_EXAMPLES), description="snapshot"),
                "by": choice(options=list(_PLACES), description="group by"),
                "from_peak": slider,
            },
            question="What percent of the peak does its largest owner hold?" if predict else None,
            presets={"At the peak": {"from_peak": 0}},
            subject=["snapshot"],
            below=[row_of([self._upload])],
            views={"memory over time": [], "what would shrink it": [self._remedies]},
        )

    def answer(self) -> Result:
        ledger = self._ledger(self.snapshot)
        moment = ledger.peak_event + self.from_peak
        self._remedies.value = _remedies(ledger)
        share = 100 * max(ledger.by_owner().values(), default=0) / (ledger.peak_bytes or 1)
        words = _words(ledger, moment, self.by)
        return Result(words, _draw(ledger, moment), (share, "percent"))

    def accept(self, name: str, old: Any, new: Any) -> None:
        """Another snapshot has another length, and is shown at its own peak."""
        if name != "snapshot":
            return
        self._bound(self._controls["from_peak"], self._ledger(new))
        if not self._setting:
            self._setting = True
            self.from_peak = 0
            self._setting = False

    def add_snapshot(self, name: str, found: dict[str, Any]) -> None:
        """Add a snapshot to the list, once for each GPU that it records, and show the first.

        Raises ValueError if it records no allocation.
        """
        devices = recorded_devices(found) or [0]  # the first one's error says what is missing
        names = {d: name if len(devices) == 1 else f"{name}, GPU {d}" for d in devices}
        self._opened |= {names[d]: ledger_of_snapshot(found, d) for d in devices}
        was, self._setting = self._setting, True  # a list with new options goes to its first one
        self._controls["snapshot"].options = [*_EXAMPLES, *self._opened]
        self._setting = was
        self.set(snapshot=names[devices[0]], from_peak=0)

    def _uploaded(self, _: Any = None) -> None:
        files, said = self._upload.value, []
        for file in files:
            name = str(file["name"])
            try:
                self.add_snapshot(name, parse_snapshot(bytes(file["content"]), name))
            except ValueError as error:
                said.append(str(error))
        if files:
            self._upload.value = ()  # so that the same file can be opened again
        if said:
            self._message.value = sentence(" ".join(said))

    def _ledger(self, name: str) -> Ledger:
        return self._opened[name] if name in self._opened else _example(name)

    @staticmethod
    def _bound(slider: Any, ledger: Ledger) -> None:
        """Let the slider go from the first event to the last; 0 always lies between."""
        peak = ledger.peak_event
        slider.min, slider.max = -peak, len(ledger.events) - 1 - peak


@cache
def _example(name: str) -> Ledger:
    return ledger_of_snapshot(generated_gpt(**_EXAMPLES[name]))


def _words(ledger: Ledger, moment: int, by: str) -> str:
    place_of, peak = _PLACES[by], ledger.peak_bytes or 1
    places = list(by_place(ledger, lambda tensor: (place_of(tensor),), moment).items())
    rows = [(_end(name), both(n), f"{n / peak:.0%}") for (name,), n in places[:_ROWS]]
    if rest := [n for _, n in places[_ROWS:]]:
        rows.append((f"{len(rest)} more", both(sum(rest)), f"{sum(rest) / peak:.0%}"))
    total = ledger.live_bytes[moment]
    rows.append(("together", both(total), f"{total / peak:.0%}"))
    when = "at the peak" if moment == ledger.peak_event else f"at event {moment}"
    note = ""
    if any(tensor.name == BEFORE for tensor in ledger.live(moment)):
        note = f'<p>Memory allocated {BEFORE} has no stack, and counts as "temporary".</p>'
    return unbroken_table(rows, (by, when, "of the peak")) + note


def _end(name: str) -> str:
    return name if len(name) <= _LETTERS else f"...{name[-_LETTERS:]}"


def _remedies(ledger: Ledger) -> str:
    rows = "".join(
        f"<tr><td>{one.owner}</td><td>{both(one.held_bytes)}</td>"
        f"<td>{both(one.peak_without)}</td></tr>"
        f'<tr><td></td><td colspan="2">{escape(one.text)}</td></tr>'
        for one in remedies_of(ledger)
    )
    head = "<tr><th></th><th>at the peak</th><th>the peak without</th></tr>"
    return (
        f'<div class="peakmem-remedies"><table style="text-align:left">{head}{rows}</table></div>'
    )


def _draw(ledger: Ledger, moment: int) -> str:
    """Live memory over the recording, stacked by owner, with the peak and the moment marked."""
    levels = _in_order(ledger.live_by_owner())
    colours = colours_of(levels)
    unit, n_bytes = ("GB", GB) if ledger.peak_bytes >= GB else ("MB", MB)
    last = len(ledger.events) - 1
    across = svg.Scale(0, last, 52, svg.WIDTH - 12)
    up = svg.Scale(0, 1.08 * ledger.peak_bytes / n_bytes, 222, 34)
    parts = [svg.axis_y(up, 52, f"{unit} live")]

    def place(event: int, size: int) -> tuple[float, float]:
        return across(event), up(size / n_bytes)

    columns = _columns(ledger)
    below = [0] * len(columns)
    for owner, level in levels.items():
        above = [under + level[n] for under, n in zip(below, columns, strict=True)]
        parts.append(_area(columns, below, above, place, colours[owner]))
        below = above
    parts.append(svg.axis_x(across, 222, "allocations and frees so far"))
    x, y = place(ledger.peak_event, ledger.peak_bytes)
    parts.append(f'<path d="M{x:g} {y:g}l-7 -11h14z" fill="{svg.INK}"/>')
    if moment != ledger.peak_event:
        parts.append(svg.line(across(moment), 24, across(moment), 222, width=2, dash="6 3"))
    anchor = "end" if x > svg.WIDTH / 2 else "start"
    words = f"peak, {ledger.peak_bytes / n_bytes:.3g} {unit}"
    parts.append(svg.text(x, 16, words, anchor=anchor, bold=True))
    now = ledger.by_owner(moment)
    for n, owner in enumerate(levels):
        x, y = 14 + 232 * (n % 2), 274 + 22 * (n // 2)
        size = f"{now.get(owner, 0) / n_bytes:.2f} {unit}"
        parts += svg.key(x, y, colours[owner], f"{owner.replace('_', ' ')} {size}")
    label = f"Live memory by owner over {last} allocations and frees; {words}"
    return svg.picture(278 + 22 * ((len(levels) + 1) // 2), parts, label)


def _in_order(levels: dict[Owner, tuple[int, ...]]) -> dict[Owner, tuple[int, ...]]:
    """Owners that last from step to step come first, so that they lie below the others."""
    owners: tuple[Owner, ...] = get_args(Owner)
    return {owner: levels[owner] for owner in owners if owner in levels}


def _columns(ledger: Ledger) -> list[int]:
    """The events to draw: all if they are few, or the highest of each equal part."""
    n = len(ledger.events)
    edges = [n * part // _COLUMNS for part in range(_COLUMNS + 1)] if n > _COLUMNS else range(n + 1)
    live = ledger.live_bytes
    pairs = zip(edges, list(edges)[1:], strict=False)
    return [max(range(start, end), key=live.__getitem__) for start, end in pairs]


def _area(
    columns: Sequence[int],
    below: Sequence[int],
    above: Sequence[int],
    place: Callable[[int, int], tuple[float, float]],
    fill: str,
) -> str:
    """The band of one owner, as steps: each level lasts until the next drawn event."""

    def steps(levels: Sequence[int]) -> list[tuple[float, float]]:
        found = [place(columns[0], levels[0])]
        for column, before, level in zip(columns[1:], levels, levels[1:], strict=False):
            if level != before:
                found += [place(column, before), place(column, level)]
        return [*found, place(columns[-1], levels[-1])]

    corners = [*steps(above), *reversed(steps(below))]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<polygon points="{points}" fill="{fill}"/>'
