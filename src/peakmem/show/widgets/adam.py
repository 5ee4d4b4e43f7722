"""Calculator of optimizers: bytes per parameter, and live memory over one step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

import ipywidgets
import traitlets

from peakmem.core.collector import no_collection
from peakmem.core.units import GB, both
from peakmem.predict.step_ledger import build_ledger
from peakmem.show.palette import SERIES, colours_of
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.estimates import QUICK_MODELS
from peakmem.show.widgets.parts import table
from peakmem.specs.ledger import Ledger, Owner
from peakmem.specs.models import model, parameter_count
from peakmem.specs.recipes import OPTIMIZERS, PRECISIONS, Recipe

__all__ = ["adam_state"]

_IMPLEMENTATIONS = ("for-loop", "foreach", "fused")
_STATES: tuple[Owner, ...] = ("parameter", "gradient", "master", "optimizer_state")
_PHASES = {
    "forward": svg.Scale(0, 1, 58, 194),
    "backward": svg.Scale(0, 1, 196, 332),
    "optimizer": svg.Scale(0, 1, 334, 470),
}


def adam_state(*, predict: bool = False) -> Calculator:
    """Return a calculator of the optimizer's state and of one step's live bytes.

    Traits: model, precision, optimizer, batch, sequence. The curves show torch's three
    implementations of the optimizer's step. With `predict`, the result is hidden until the viewer
    has guessed the bytes per parameter.
    """
    return _AdamState(predict)


class _AdamState(Calculator):
    model = traitlets.Unicode("gpt2")
    precision = traitlets.Unicode("fp32")
    optimizer = traitlets.Unicode("adamw")
    batch = traitlets.Int(1)
    sequence = traitlets.Int(256)

    def __init__(self, predict: bool) -> None:
        self._curves = ipywidgets.HTML()
        question = "How many bytes per parameter do weights, gradients and state take together?"
        super().__init__(
            {
                "model": ipywidgets.Dropdown(options=QUICK_MODELS, description="model"),
                "precision": ipywidgets.Dropdown(options=list(PRECISIONS), description="precision"),
                "optimizer": ipywidgets.Dropdown(options=list(OPTIMIZERS), description="optimizer"),
                "batch": ipywidgets.IntSlider(1, 1, 16, description="batch"),
                "sequence": ipywidgets.IntSlider(256, 64, 1024, step=64, description="tokens"),
            },
            question=question if predict else None,
            presets={
                "fp32 Adam": {"precision": "fp32", "optimizer": "adam"},
                "mixed Adam": {"precision": "mixed", "optimizer": "adam"},
                "8-bit Adam": {"precision": "fp32", "optimizer": "adam8bit"},
            },
            subject=["model"],
            views={"bytes per parameter": [], "one step": [self._curves]},
        )

    def answer(self) -> Result:
        per_parameter = _bytes_per_parameter(self.model, self.precision, self.optimizer)
        total = sum(per_parameter.values())
        rows = [(owner.replace("_", " "), f"{n:.3f}") for owner, n in per_parameter.items()]
        rows.append(("together", f"{total:.3f}"))
        words = table(rows, ("bytes per parameter", ""))
        return Result(words, _bar(per_parameter), (total, "bytes per parameter"))

    def later(self) -> Iterator[None]:
        """Draw the curves of one step; each needs a ledger of its own."""
        self._curves.value = ""
        if not self.shows("one step"):
            return
        ledgers = {}
        for name in self._implementations():
            yield
            ledgers[name] = self._ledger(name)
            peaks = [
                (f"{name}: peak in {ledger.peak_phase}", both(ledger.peak_bytes))
                for name, ledger in ledgers.items()
            ]
            self._curves.value = table(peaks, ("one step", "")) + _curves(ledgers)

    def _implementations(self) -> tuple[str, ...]:
        """Return the implementations to compare: only Adam's differ."""
        return _IMPLEMENTATIONS if self.optimizer in ("adam", "adamw") else ("foreach",)

    def _ledger(self, implementation: str) -> Ledger:
        recipe = Recipe(
            precision=self.precision,
            optimizer=self.optimizer,
            implementation=implementation,  # type: ignore[arg-type]
            batch=self.batch,
            sequence=self.sequence,
        )
        with no_collection():
            return build_ledger(model(self.model), recipe)


@lru_cache(maxsize=64)
def _bytes_per_parameter(name: str, precision: str, optimizer: str) -> dict[str, float]:
    """Return the bytes per parameter at the end of a step, by owner."""
    shape = model(name)
    recipe = Recipe(precision=precision, optimizer=optimizer)
    with no_collection():
        ledger = build_ledger(shape, recipe, profile="paper")
    at_end = ledger.by_owner(len(ledger.events) - 1)
    n_parameters = sum(parameter_count(shape).values())
    return {owner: at_end[owner] / n_parameters for owner in _STATES if owner in at_end}


def _bar(per_parameter: dict[str, float]) -> str:
    """Draw a stacked bar of bytes per parameter."""
    across = svg.Scale(0, max(20.0, sum(per_parameter.values())), 14, svg.WIDTH - 14)
    colours, parts = colours_of(per_parameter), []
    for n, ((owner, size), end) in enumerate(
        zip(per_parameter.items(), accumulate(per_parameter.values()), strict=True)
    ):
        x = across(end - size)
        parts.append(svg.rect(x, 8, across(end) - x, 30, colours[owner]))
        parts.append(svg.rect(14 + 116 * n, 84, 14, 14, colours[owner]))
        parts.append(svg.text(32 + 116 * n, 96, owner.replace("optimizer_", "").replace("_", " ")))
    parts.append(svg.axis_x(across, 40, "bytes per parameter"))
    return svg.picture(108, parts, "Bytes per parameter by owner")


def _curves(ledgers: dict[str, Ledger]) -> str:
    """Draw live bytes over one step, one line for each implementation of the optimizer."""
    top, bottom = 26, 182
    highest = max(ledger.peak_bytes for ledger in ledgers.values()) / GB
    up = svg.Scale(0, highest * 1.05, bottom, top)
    parts = [svg.axis_y(up, 58, "GB live over one step")]
    for n, (name, ledger) in enumerate(ledgers.items()):
        xs = _places(ledger)
        points = [(x, up(live / GB)) for x, live in zip(xs, ledger.live_bytes, strict=True)]
        dash = ("", "7 3", "2 3")[n]
        parts.append(svg.path(points, colour=SERIES[n], width=2.2 - 0.4 * n, dash=dash))
        x, y = xs[ledger.peak_event], up(ledger.peak_bytes / GB)
        parts.append(svg.rect(x - 4, y - 4, 8, 8, SERIES[n], title=f"peak of {name}"))
        y = bottom + 38 + 20 * n
        key = [(58.0, y), (98.0, y)]
        parts.append(svg.path(key, colour=SERIES[n], dash=dash))
        where = ledger.events[ledger.peak_event].name
        parts.append(svg.text(108, y + 5, f"{name}, peak at {where}"))
    parts.append(svg.line(58, bottom, svg.WIDTH - 10, bottom))
    for phase, scale in _PHASES.items():
        parts.append(svg.line(scale.start, top, scale.start, bottom + 6, dash="2 3"))
        middle = (scale.start + scale.end) / 2
        parts.append(svg.text(middle, bottom + 18, phase, anchor="middle"))
    return svg.picture(bottom + 42 + 20 * len(ledgers), parts, "Live bytes over one step")


def _places(ledger: Ledger) -> list[float]:
    """Return the events' x positions: each phase takes a third, however many operators it has."""
    phases: list[str] = [event.phase for event in ledger.events]
    places = []
    for phase, scale in _PHASES.items():
        last = max(phases.count(phase) - 1, 1)
        places += [scale(n / last) for n in range(phases.count(phase))]
    return places
