"""Calculator of scaling laws: a budget's best model and tokens, and the cost of training."""

from __future__ import annotations

import math

import ipywidgets
import traitlets

from peakmem.scale.scaling_laws import (
    APPROACHES,
    SITE_OVERHEAD,
    TrainingRun,
    compute_optimal,
)
from peakmem.show.palette import SERIES
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import table
from peakmem.specs.hardware import ACCELERATORS, accelerator

__all__ = ["LAWS", "scaling"]

_GOPHER, _GPT3 = 5.76e23, 3.14e23
#: A law of `APPROACHES` -> its name for readers: Hoffmann et al. 2022 in three ways, the third with
#: three sets of constants.
LAWS = {
    "approach-1": "1, training curves",
    "approach-2": "2, IsoFLOP profiles",
    "approach-3-rounded": "3, fit as printed",
    "approach-3-unrounded": "3, fit unrounded",
    "approach-3-replication": "3, fit replicated",
}
_SIZES = ("10M", "100M", "1B", "10B", "100B", "1T", "10T", "100T")
_BUDGETS: dict[float, str] = {
    18: "10¹⁸",
    20: "10²⁰",
    22: "10²²",
    24: "10²⁴",
    26: "10²⁶",
    28: "10²⁸",
}


def scaling(*, predict: bool = False) -> Calculator:
    """Return a calculator of scaling laws: compute -> parameters and tokens; time, cost, CO2.

    Traits: flops (operations, 1e18 to 1e28), approach, gpu, devices (1 to 100,000), utilisation
    (percent), price (US$ per device hour), watts (per device), grid (g of CO2 per kWh). With
    `predict`, the result is hidden until the viewer has guessed the days.
    """
    return _Scaling(predict)


class _Scaling(Calculator):
    flops = traitlets.Float(_GOPHER)
    approach = traitlets.Unicode(APPROACHES[0])
    gpu = traitlets.Unicode("a100-80gb")
    devices = traitlets.Int(1024)
    utilisation = traitlets.Int(45)
    price = traitlets.Float(2.0)
    watts = traitlets.Int(400)
    grid = traitlets.Int(447)

    def __init__(self, predict: bool) -> None:
        field = ipywidgets.BoundedFloatText  # a slider would round what a preset sets
        super().__init__(
            {
                "flops": field(
                    _GOPHER, min=1e18, max=1e28, step=1e22, description="compute, FLOPs"
                ),
                "approach": ipywidgets.Dropdown(
                    options=[(words, law) for law, words in LAWS.items()], description="law"
                ),
                "gpu": ipywidgets.Dropdown(options=list(ACCELERATORS), description="GPU"),
                "devices": ipywidgets.BoundedIntText(1024, 1, 100_000, description="devices"),
                "utilisation": ipywidgets.IntSlider(45, 1, 100, description="utilisation, %"),
                "price": field(2, min=0, max=1e4, description="US$ per GPU hour"),
                "watts": ipywidgets.BoundedIntText(400, 1, 10_000, description="watts per GPU"),
                "grid": ipywidgets.BoundedIntText(447, 0, 2000, description="g CO2 per kWh"),
            },
            question="How many days does it take?" if predict else None,
            presets={
                "Gopher's budget": {"flops": _GOPHER},
                "GPT-3's": {"flops": _GPT3, "devices": 1024},
            },
        )

    def answer(self) -> Result:
        flops, devices = self.flops, self.devices
        gpu = accelerator(self.gpu)
        rate = gpu.flops_per_s(next(f for f in ("bf16", "fp16", "fp32") if f in gpu.tflops))
        run = TrainingRun(flops, devices, rate, self.utilisation / 100)
        n_parameters, tokens = compute_optimal(flops, self.approach)
        rows = [
            ("compute", f"{flops:.3g} FLOPs"),
            ("best model", f"{n_parameters / 1e9:.3g}B parameters"),
            ("best data", f"{tokens / 1e9:.4g}B tokens, {tokens / n_parameters:.1f} per parameter"),
            (f"time on {devices:,} x {gpu.name}", f"{run.days:,.1f} days"),
            ("GPU hours", f"{run.device_hours:,.0f}"),
            ("cost", f"US$ {run.cost(self.price):,.0f}"),
            (
                f"energy, {SITE_OVERHEAD - 1:.0%} more for the site",
                f"{run.energy_kwh(self.watts) / 1000:,.1f} MWh",
            ),
            ("CO2", f"{run.co2_kg(self.watts, self.grid) / 1000:,.1f} t"),
        ]
        picture = _draw(math.log10(flops), self.approach)
        return Result(table(rows), picture, (run.days, "days"))


def _draw(log_flops: float, chosen: str) -> str:
    """Draw the best model size over compute by each law; the chosen law is thick."""
    across = svg.Scale(18, 28, 60, svg.WIDTH - 16)
    up = svg.Scale(7, 14, 230, 36)
    parts = [
        svg.axis_y(up, 60, "best number of parameters", dict(enumerate(_SIZES, start=7))),
        svg.axis_x(across, 230, "compute budget, FLOPs", _BUDGETS),
    ]
    for n, approach in enumerate(APPROACHES):
        best = [(x / 2, math.log10(compute_optimal(10 ** (x / 2), approach)[0])) for x in (36, 56)]
        points = [(across(x), up(y)) for x, y in best]
        mine = approach == chosen
        dash = ("", "7 3", "2 3", "9 3 2 3", "4 2")[n]
        width = 4 if mine else 1.6
        parts.append(svg.path(points, colour=SERIES[n], width=width, dash=dash))
        y = 292 + 19 * n
        parts.append(svg.path([(60, y), (100, y)], colour=SERIES[n], width=width, dash=dash))
        parts.append(svg.text(110, y + 5, LAWS[approach], bold=mine))
    x = across(log_flops)
    parts.append(svg.line(x, 30, x, 230, dash="3 3"))
    return svg.picture(392, parts, f"Compute-optimal model size by {len(APPROACHES)} laws")
