"""Calculator of gradient accumulation: memory and time per sequence over the micro-batch."""

from __future__ import annotations

from collections.abc import Iterator

import ipywidgets
import traitlets

from peakmem.core.units import GB, both
from peakmem.predict.estimate import Estimate
from peakmem.predict.roofline import micro_batch_seconds
from peakmem.show.palette import SERIES, VERDICTS
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.estimates import QUICK_MODELS, is_whole, remembered_estimate
from peakmem.show.widgets.parts import table
from peakmem.specs.hardware import ACCELERATORS
from peakmem.specs.models import model
from peakmem.specs.recipes import Recipe

__all__ = ["accumulation"]


def accumulation(*, predict: bool = False) -> Calculator:
    """Return a calculator of gradient accumulation.

    Traits: model, gpu, precision, doublings (0 to 6: a batch of 1 to 64), micro_doublings (the
    micro-batch), sequence. With `predict`, the result is hidden until the viewer has guessed the
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
        self._all = ipywidgets.HTML()
        sizes = [(str(2**n), n) for n in range(7)]
        super().__init__(
            {
                "model": ipywidgets.Dropdown(options=QUICK_MODELS, description="model"),
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
            question="How many sequences can the micro-batch have on this GPU?"
            if predict
            else None,
            presets={"Long sequences": {"sequence": 1024}, "Short sequences": {"sequence": 64}},
            subject=["model", "gpu"],
            views={"all micro-batches": [self._all]},
        )

    def answer(self) -> Result:
        mine = 2**self.micro_doublings
        if self.micro_doublings > self.doublings:
            raise ValueError(
                f"a micro-batch of {mine} exceeds the batch of {2**self.doublings}; make it "
                "smaller, or the batch larger"
            )
        one = self.cut(mine, allocation=False)
        rows = [
            ("micro-batches", f"{2**self.doublings // mine} of {mine}"),
            ("peak", both(one.peak_bytes)),
            (f"memory of {one.device.name}", both(one.device.memory_bytes)),
            ("on this GPU it", _verdict(one)),
            ("least time per sequence", f"{1000 * _seconds(one):.3g} ms"),
        ]
        what = "Even with the smallest micro-batch, weights, gradients and optimizer state stay."
        asked = self._guess is not None and self.shown
        figure = (self.largest(), "sequences") if asked else None
        return Result(f"{table(rows)}<p>{what}</p>", figure=figure)

    def cut(self, micro: int, *, allocation: bool = True) -> Estimate:
        """Return a step in micro-batches of this size, but in no more than two of them.

        The second one finds the gradients of the first in memory; all others repeat the second.
        `allocation` is that of `remembered_estimate`.
        """
        parts = min(2**self.doublings // micro, 2)
        recipe = Recipe(
            precision=self.precision,
            batch=micro * parts,
            micro_batches=parts,
            sequence=self.sequence,
        )
        return remembered_estimate(model(self.model), recipe, self.gpu, allocation=allocation)

    def largest(self) -> int:
        """Return the largest micro-batch that fits, or 0 if none does."""
        return max((m for m in self.sizes() if self.cut(m).fits), default=0)

    def sizes(self) -> list[int]:
        """Return the sizes of micro-batches that divide the batch."""
        return [2**n for n in range(self.doublings + 1)]

    def later(self) -> Iterator[None]:
        """Draw all micro-batch sizes, each with its own ledger, and name the largest that fits."""
        found, mine = {}, 2**self.micro_doublings
        if not is_whole(self.cut(mine, allocation=False)):
            yield
            found[mine] = self.cut(mine)
            self._put(self.answer())
        for micro in self.sizes():
            yield
            found[micro] = self.cut(micro)
        largest = self.largest()
        words = f"{largest} sequences" if largest else "none, not even one sequence"
        picture = _draw({micro: found[micro] for micro in self.sizes()}, mine)
        self._all.value = table([("largest micro-batch that fits", words)]) + picture


def _verdict(one: Estimate) -> str:
    """Return whether it fits, or "..." until its allocation is known."""
    return ("fits" if one.fits else "does not fit") if is_whole(one) else "..."


def _seconds(one: Estimate) -> float:
    return micro_batch_seconds(one.model, one.recipe, one.device) / one.recipe.micro_batch


def _draw(found: dict[int, Estimate], mine: int) -> str:
    """Draw peak and time per sequence as bars over the micro-batch, and the memory as a line."""
    gpu = found[mine].device
    seconds = {micro: _seconds(one) for micro, one in found.items()}
    most = max(*(one.peak_bytes for one in found.values()), gpu.memory_bytes) / GB
    up, down = svg.Scale(0, most, 172, 30), svg.Scale(0, 1000 * max(seconds.values()), 330, 230)
    parts = [
        svg.axis_y(up, 52, "peak in GB over the micro-batch"),
        svg.axis_y(down, 52, "least time per sequence, ms"),
    ]
    wide = (svg.WIDTH - 66) / len(found)
    for n, (micro, one) in enumerate(found.items()):
        x = 58 + n * wide
        colour = VERDICTS["fits" if one.fits else "does not fit"]
        more = f'stroke="{svg.INK}" stroke-width="{3 if micro == mine else 0.5}"'
        y = up(one.peak_bytes / GB)
        parts.append(
            svg.rect(x, y, wide - 8, 172 - y, colour, title=both(one.peak_bytes), more=more)
        )
        y = down(1000 * seconds[micro])
        parts.append(svg.rect(x, y, wide - 8, 330 - y, SERIES[0], more=more))
        for line in (190, 348):
            parts.append(svg.text(x + (wide - 8) / 2, line, f"{micro}", anchor="middle"))
    y = up(gpu.memory_bytes / GB)
    parts.append(svg.line(52, y, svg.WIDTH - 8, y, width=2, dash="6 3"))
    parts.append(svg.text(58, y - 5, gpu.name))
    parts.append(svg.text(4, 370, "blue: fits; orange: does not fit; framed: your micro-batch"))
    return svg.picture(378, parts, f"Peak and time per sequence over the micro-batch on {gpu.name}")
