"""Calculator of ZeRO: model states on each device, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import ipywidgets
import traitlets

from peakmem.core.units import GB, MiB
from peakmem.scale.parallelism import ZeroStates, zero_communicated_bytes, zero_states
from peakmem.show.palette import colours_of
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import gb_and_gib, unbroken_table
from peakmem.specs.hardware import ACCELERATORS, accelerator
from peakmem.specs.models import MODELS, model, parameter_count

__all__ = ["zero"]

_STAGES = (0, 1, 2, 3)
_PARTS = ("parameters", "gradients", "optimizer")
# The model of `python3 course.py bench shards`, and the MiB that it metered under stages 0 to 3: of
# the rank that held the most, by the number of ranks.
_METERED_X = (150, 240, 330, 420)  # of the columns of the table of these figures
_METERED_PARAMETERS = 8 * 256 * 256
_METERED_MIB = {2: (8.00, 6.00, 5.00, 4.00), 4: (8.00, 5.00, 3.50, 2.00)}


def zero(*, predict: bool = False) -> Calculator:
    """Return a calculator of ZeRO: model states per device under stages 0 to 3.

    Traits: model (a key of MODELS), gpu (a key of ACCELERATORS), doublings (0 to 12: 1 to 4096
    devices). With `predict`, the result is hidden until the viewer has guessed stage 3's GB.
    """
    return _Zero(predict)


class _Zero(Calculator):
    model = traitlets.Unicode("gpt3-6.7b")
    gpu = traitlets.Unicode("a100-80gb")
    doublings = traitlets.Int(6)

    def __init__(self, predict: bool) -> None:
        question = "How many GB of model states does a device hold under stage 3?"
        super().__init__(
            {
                "model": ipywidgets.Dropdown(options=list(MODELS), description="model"),
                "gpu": ipywidgets.Dropdown(options=list(ACCELERATORS), description="GPU"),
                "doublings": ipywidgets.SelectionSlider(
                    options=[(str(2**n), n) for n in range(13)], description="devices"
                ),
            },
            question=question if predict else None,
            subject=["model"],
            presets={"GPT-3 on 1024": {"model": "gpt3-175b", "doublings": 10}},
        )

    def answer(self) -> Result:
        n_parameters = sum(parameter_count(model(self.model)).values())
        devices, gpu = 2**self.doublings, accelerator(self.gpu)
        states = [zero_states(n_parameters, devices, stage) for stage in _STAGES]
        rows = [
            (
                f"stage {stage}",
                gb_and_gib(state.total),
                "fits" if state.total <= gpu.memory_bytes else "does not fit",
                gb_and_gib(zero_communicated_bytes(n_parameters, devices, stage)),
            )
            for stage, state in zip(_STAGES, states, strict=True)
        ]
        words = unbroken_table(
            rows, ("", "states per device, GB (GiB)", gpu.name, "sent per step, GB (GiB)")
        )
        note = (
            "<p>16 bytes per parameter in total, plus activations and buffers. <code>python3 "
            "course.py bench shards</code> meters lab 8's solution.</p>"
        )
        picture = _draw(states, gpu.memory_bytes, devices)
        return Result(words + note, picture, (states[3].total / GB, "GB"))


def _draw(states: list[ZeroStates], memory_bytes: int, devices: int) -> str:
    """Draw a stacked bar for each stage, and one device's memory as a line."""
    most = max(*(state.total for state in states), memory_bytes) / GB
    across = svg.Scale(0, most, 74, svg.WIDTH - 14)
    colours = colours_of(_PARTS)
    parts = []
    for row, state in enumerate(states):
        y = 30 + 34 * row
        parts.append(svg.text(6, y + 18, f"stage {row}"))
        sizes = [getattr(state, name) / GB for name in _PARTS]
        for (name, colour), size, end in zip(
            colours.items(), sizes, accumulate(sizes), strict=True
        ):
            x = across(end - size)
            title = f"{name}: {size:.2f} GB"
            parts.append(svg.rect(x, y, across(end) - x, 26, colour, title=title))
    parts += svg.limit(across(memory_bytes / GB), 166, "one device's memory")
    parts.append(svg.axis_x(across, 168, f"GB of model states on each of {devices} devices"))
    for n, name in enumerate(_PARTS):
        parts += svg.key(74 + 130 * n, 218, colours[name], name)
    parts += _metered(top=264)
    label = f"Model states under ZeRO 0 to 3 on {devices} devices, and metered on 2 and 4 processes"
    return svg.picture(340, parts, label)


def _metered(top: float) -> Iterator[str]:
    """Draw a table of what real processes held, beside what the formula predicts."""
    yield svg.line(6, top - 20, svg.WIDTH - 14, top - 20, colour=svg.PALE)
    yield svg.text(6, top, "MiB")
    for stage in _STAGES:
        yield svg.text(_METERED_X[stage], top, f"stage {stage}", anchor="middle")
    for row, (devices, metered) in enumerate(_METERED_MIB.items(), 1):
        y = top + 22 * row
        yield svg.text(6, y, f"{devices} processes")
        for stage, mib in zip(_STAGES, metered, strict=True):
            words = f"{_predicted_mib(devices, stage):.2f} / {mib:.2f}"
            yield svg.text(_METERED_X[stage], y, words, anchor="middle")
    words = "predicted / metered on real processes, 2 MiB of fp32 weights"
    yield svg.text(6, top + 66, words)


def _predicted_mib(devices: int, stage: int) -> float:
    """Return the MiB of a device's states under fp32 Adam: 4, 4 and 8 bytes, not 2, 2 and 12."""
    mixed = zero_states(_METERED_PARAMETERS, devices, stage)
    return (2 * mixed.parameters + 2 * mixed.gradients + mixed.optimizer * 8 / 12) / MiB
