"""Calculator of pipelines: a schedule as a coloured table, and its bubble."""

from __future__ import annotations

import ipywidgets
import traitlets

from peakmem.scale.pipelines import SCHEDULES, Schedule, schedule
from peakmem.show.palette import ACTIONS, ink_on
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import table

__all__ = ["pipelines"]

_MEANS = {"F": "forward", "B": "backward", "R": "forward again"}


def pipelines(*, predict: bool = False) -> Calculator:
    """Return a calculator of pipeline schedules: GPipe, 1F1B and Varuna.

    Traits: name, stages (1 to 8), micro_batches (1 to 16), recompute. With `predict`, the result is
    hidden until the viewer has guessed the share of idle time.
    """
    return _Pipelines(predict)


class _Pipelines(Calculator):
    name = traitlets.Unicode("gpipe")
    stages = traitlets.Int(4)
    micro_batches = traitlets.Int(5)
    recompute = traitlets.Bool(True)

    def __init__(self, predict: bool) -> None:
        question = "What share of the time are the devices idle, in percent?"
        super().__init__(
            {
                "name": ipywidgets.Dropdown(options=list(SCHEDULES), description="schedule"),
                "stages": ipywidgets.IntSlider(4, 1, 8, description="stages"),
                "micro_batches": ipywidgets.IntSlider(5, 1, 16, description="micro-batches"),
                "recompute": ipywidgets.Checkbox(True, description="recompute"),
            },
            question=question if predict else None,
            presets={"The lecture's table": {"name": "varuna", "stages": 4, "micro_batches": 5}},
        )

    def answer(self) -> Result:
        found = schedule(self.name, self.stages, self.micro_batches, recompute=self.recompute)
        rows = [
            ("slots", f"{found.slots}"),
            ("bubble: share of idle time", f"{found.bubble_fraction:.1%}"),
            ("inputs kept, first stage", f"{found.peak_inputs()[0]} micro-batches"),
            ("activations kept, first stage", f"{found.peak_activations()[0]} micro-batches"),
        ]
        return Result(table(rows), _draw(found), (100 * found.bubble_fraction, "percent"))


def _draw(found: Schedule) -> str:
    """Draw a row for each stage, the last on top as in the lecture, and a cell for each slot."""
    left, row, width = 34, 30, (svg.WIDTH - 42) / found.slots
    parts = []
    for place, stage in enumerate(reversed(range(found.stages))):
        y = 8 + place * row
        parts.append(svg.text(4, y + 19, f"S{stage + 1}"))
        parts.append(svg.rect(left, y, width * found.slots, row - 3, "#f2f2f2"))
        for o in found.of_stage(stage):
            x, wide = left + o.start * width, (o.end - o.start) * width
            fill = ACTIONS[_MEANS[o.kind]]
            what = f"stage {stage + 1}, slot {o.start}: {_MEANS[o.kind]} of {o.micro_batch + 1}"
            parts.append(svg.rect(x + 0.5, y, wide - 1, row - 3, fill, title=what))
            name = f"{o.kind}{o.micro_batch + 1}"
            if wide >= 9 * len(name):  # the last row of an audience can't read smaller letters
                ink, middle = ink_on(fill), x + wide / 2
                parts.append(svg.text(middle, y + 18, name, anchor="middle", colour=ink))
    y = 14 + found.stages * row
    for n, (kind, action) in enumerate(_MEANS.items()):
        parts += svg.key(left + 140 * n, y, ACTIONS[action], f"{kind} {action}")
    label = f"{found.stages} stages and {found.micro_batches} micro-batches in {found.slots} slots"
    return svg.picture(y + 24, parts, label)
