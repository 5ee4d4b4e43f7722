"""Calculator: a batch cut into micro-batches; memory, time a sequence, and the budget's cut."""

from __future__ import annotations

from dataclasses import replace

import ipywidgets
import traitlets

from peakmem.estimate import Estimate, estimate
from peakmem.hardware import ACCELERATORS, Accelerator, accelerator
from peakmem.models import MODELS, ModelShape, model
from peakmem.recipes import Recipe
from peakmem.roofline import micro_batch_seconds
from peakmem.units import GB, both
from peakmem.widgets import svg
from peakmem.widgets.calculator import Calculator, Result, table

__all__ = ["accumulation"]

_SMALL = tuple(name for name in MODELS if name.startswith("gpt2"))  # a ledger for each point


def accumulation(*, predict: bool = False) -> Calculator:
    """Return a calculator of gradient accumulation.

    Traits: model, gpu, precision, doublings (0 to 6: a batch of 1 to 64), micro_doublings (the
    micro-batch), sequence. With `predict` the result is hidden until the viewer has guessed the
    largest micro-batch that fits.
    """
    return _Accumulation(predict)


class _Accumulation(Calculator):
    model = traitlets.Unicode("gpt2")
    gpu = traitlets.Unicode("rtx3080-10gb")
    precision = traitlets.Unicode("amp_bf16")
    doublings = traitlets.Int(5)
    micro_doublings = traitlets.Int(2)
    sequence = traitlets.Int(1024)

    def __init__(self, predict: bool) -> None:
        sizes = [(str(2**n), n) for n in range(7)]
        super().__init__(
            {
                "model": ipywidgets.Dropdown(options=_SMALL, description="model"),
                "gpu": ipywidgets.Dropdown(options=list(ACCELERATORS), description="GPU"),
                "precision": ipywidgets.Dropdown(
                    options=["fp32", "amp_bf16", "amp_fp16", "bf16"], description="precision"
                ),
                "doublings": ipywidgets.SelectionSlider(options=sizes, description="batch"),
                "micro_doublings": ipywidgets.SelectionSlider(
                    options=sizes, description="micro-batch"
                ),
                "sequence": ipywidgets.IntSlider(1024, 64, 1024, step=64, description="tokens"),
            },
            question="How large may the micro-batch be on this GPU?" if predict else None,
            presets={"Long sequences": {"sequence": 1024}, "Short sequences": {"sequence": 64}},
        )

    def answer(self) -> Result:
        if self.micro_doublings > self.doublings:
            raise ValueError(
                f"a micro-batch of {2**self.micro_doublings} is more than the batch of "
                f"{2**self.doublings}; make it smaller, or the batch larger"
            )
        gpu, batch = accelerator(self.gpu), 2**self.doublings
        recipe = Recipe(precision=self.precision, batch=batch, sequence=self.sequence)
        found = {
            2**n: _cut(model(self.model), recipe, gpu, 2**n) for n in range(self.doublings + 1)
        }
        seconds = {m: _seconds(one, gpu) for m, one in found.items()}
        mine = 2**self.micro_doublings
        largest = max((m for m, one in found.items() if one.fits), default=0)
        rows = [
            ("micro-batches", f"{batch // mine} of {mine}"),
            ("peak", both(found[mine].peak_bytes)),
            (f"memory of {gpu.name}", both(gpu.memory_bytes)),
            ("least time a sequence", f"{1000 * seconds[mine]:.3g} ms"),
            ("largest that fits", f"{largest}" if largest else "none, not even one sequence"),
        ]
        what = "Weights, gradients and state stay, however small the micro-batch."
        picture = _draw(found, seconds, gpu, mine)
        return Result(f"{table(rows)}<p>{what}</p>", picture, (largest, "sequences"))


def _cut(shape: ModelShape, recipe: Recipe, gpu: Accelerator, micro: int) -> Estimate:
    """A step in micro-batches of that size, or in two of them where there are more.

    The second one is played because it meets the gradients of the first; from the third on all
    repeat the second.
    """
    parts = min(recipe.batch // micro, 2)
    return estimate(shape, replace(recipe, batch=micro * parts, micro_batches=parts), gpu)


def _seconds(one: Estimate, gpu: Accelerator) -> float:
    return micro_batch_seconds(one.model, one.recipe, gpu) / one.recipe.micro_batch


def _draw(
    found: dict[int, Estimate], seconds: dict[int, float], gpu: Accelerator, mine: int
) -> str:
    """A bar a micro-batch size: peak above, time a sequence below; the budget as a line."""
    most = max(*(one.peak_bytes for one in found.values()), gpu.memory_bytes) / GB
    up, down = svg.Scale(0, most, 190, 30), svg.Scale(0, 1000 * max(seconds.values()), 350, 250)
    parts = [
        svg.axis_y(up, 52, "peak in GB over the micro-batch"),
        svg.axis_y(down, 52, "least time a sequence, ms"),
    ]
    wide = (svg.WIDTH - 66) / len(found)
    for n, (micro, one) in enumerate(found.items()):
        x = 58 + n * wide
        colour = svg.COLOURS[0] if one.fits else svg.COLOURS[1]
        more = f'stroke="{svg.INK}" stroke-width="3"' if micro == mine else ""
        y = up(one.peak_bytes / GB)
        parts.append(
            svg.rect(x, y, wide - 8, 190 - y, colour, title=both(one.peak_bytes), more=more)
        )
        y = down(1000 * seconds[micro])
        parts.append(svg.rect(x, y, wide - 8, 350 - y, svg.COLOURS[2], more=more))
        for line in (208, 368):
            parts.append(svg.text(x + (wide - 8) / 2, line, f"{micro}", anchor="middle"))
    y = up(gpu.memory_bytes / GB)
    parts.append(svg.line(52, y, svg.WIDTH - 8, y, width=2, dash="6 3"))
    parts.append(svg.text(svg.WIDTH - 10, y - 5, gpu.name, anchor="end"))
    parts.append(svg.text(4, 392, "blue: fits; orange: does not; framed: the chosen micro-batch"))
    return svg.picture(402, parts, f"Peak and time a sequence over the micro-batch on {gpu.name}")
