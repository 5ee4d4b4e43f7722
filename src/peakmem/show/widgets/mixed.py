"""Calculator of mixed precision: gradients, a format's range, and the effect of a loss scale."""

from __future__ import annotations

import ipywidgets
import numpy as np
import numpy.typing as npt
import traitlets

from peakmem.numbers.formats import FORMATS, NumberFormat, limits
from peakmem.numbers.rounding_outcomes import RoundingOutcomes, rounding_outcomes
from peakmem.show.palette import OUTCOMES
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import table

__all__ = ["mixed_precision"]

_FORMATS = ("fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "fp32")
_NORMAL = np.random.default_rng(0).standard_normal(10_000)
_LOW, _HIGH = -60, 40  # powers of two that the picture shows


def mixed_precision(*, predict: bool = False) -> Calculator:
    """Return a calculator of loss scaling: a histogram of gradients above the formats' ranges.

    The gradients aren't measured: their logarithms are always the same 10,000 draws from a normal
    distribution. Traits: format, log_scale (0 to 30: the loss times 1 to 2^30), centre and spread
    (of the gradients' log2). With `predict`, the result is hidden until the viewer has guessed what
    percentage is flushed to 0.
    """
    return _Mixed(predict)


class _Mixed(Calculator):
    format = traitlets.Unicode("fp16")
    log_scale = traitlets.Int(0)
    centre = traitlets.Int(-22)
    spread = traitlets.Int(4)

    def __init__(self, predict: bool) -> None:
        slider = ipywidgets.IntSlider
        super().__init__(
            {
                "format": ipywidgets.Dropdown(options=_FORMATS, description="format"),
                "log_scale": slider(0, 0, 30, description="log2 loss scale"),
                "centre": slider(-22, -40, 0, description="log2 of the median"),
                "spread": slider(4, 1, 8, description="spread, powers"),
            },
            question="What percentage of these gradients becomes 0?" if predict else None,
            presets={
                "fp16, no scale": {"format": "fp16", "log_scale": 0},
                "torch's first scale": {"format": "fp16", "log_scale": 16},
                "bf16, no scale": {"format": "bf16", "log_scale": 0},
            },
        )

    def answer(self) -> Result:
        fmt, scale = FORMATS[self.format], 2.0**self.log_scale
        gradients = np.exp2(self.centre + self.spread * _NORMAL)
        found = rounding_outcomes(fmt, gradients, scale)
        rows = [
            (words, f"{count:,}", f"{count / found.total:.2%}")
            for words, count in (
                ("flushed to 0", found.zero),
                ("subnormal: fewer bits", found.subnormal),
                ("normal", found.normal),
                ("overflow", found.overflow),
            )
        ]
        words = table(rows, (f"in {fmt.name}, scale {scale:,.0f}", "gradients", "share"))
        note = (
            "The gradients are 10,000 log-normal random numbers, not measured values; they never "
            "change."
        )
        percent = 100 * found.zero / found.total
        exponents = np.log2(gradients) + self.log_scale
        return Result(
            f"{words}<p><b>{_verdict(found)}</b></p><p>{note}</p>",
            _draw(exponents, fmt),
            (percent, "percent"),
        )


def _verdict(found: RoundingOutcomes) -> str:
    if found.overflow:
        return "At least one gradient overflows: the scaler skips this step and halves the scale."
    if found.zero:
        return "Nothing overflows, but some gradients are lost: a larger scale saves more of them."
    return "Nothing is lost."


def _draw(exponents: npt.NDArray[np.float64], fmt: NumberFormat) -> str:
    """Draw a histogram over log2 of the scaled gradients, and a bar for each format's range."""
    across = svg.Scale(_LOW, _HIGH, 88, svg.WIDTH - 14)
    edges = np.arange(_LOW, _HIGH + 1, 2)
    counts, _ = np.histogram(np.clip(exponents, _LOW, _HIGH), edges)
    up = svg.Scale(0, max(int(counts.max()), 1), 170, 30)
    parts = [svg.axis_y(up, 88, "gradients (the outer bars include all beyond)")]
    for edge, count in zip(edges[:-1], counts, strict=True):
        outcome = _outcome(edge + 1, _edges(fmt))
        x, wide = across(edge), across(edge + 2) - across(edge)
        y = up(count)
        title = f"2^{edge} to 2^{edge + 2}: {count}"
        parts.append(svg.rect(x + 0.5, y, wide - 1, 170 - y, OUTCOMES[outcome], title=title))
    parts.append(svg.axis_x(across, 170, "log2 of |gradient x scale|"))
    for n, (words, colour) in enumerate(OUTCOMES.items()):
        parts += svg.key(14 + 116 * n, 220, colour, words)
    for n, name in enumerate(_FORMATS):
        parts.append(_range(FORMATS[name], 250 + 24 * n, across, name == fmt.name))
    return svg.picture(250 + 24 * len(_FORMATS) + 4, parts, f"Gradients against {fmt.name}'s range")


def _outcome(exponent: float, edges: tuple[float, float, float]) -> str:
    lost, least, most = edges
    if exponent < lost:
        return "becomes 0"
    if exponent < least:
        return "subnormal"
    return "normal" if exponent <= most else "overflow"


def _edges(fmt: NumberFormat) -> tuple[float, float, float]:
    """Return log2 of half the smallest number, of the smallest normal and of the largest number."""
    edge = limits(fmt)
    return tuple(np.log2([edge.min_subnormal / 2, edge.min_normal, edge.max]))


def _range(fmt: NumberFormat, y: float, across: svg.Scale, mine: bool) -> str:
    """Draw a format's normal range, and its subnormal range in a paler colour."""
    lost, least, most = (across(min(max(edge, _LOW), _HIGH)) for edge in _edges(fmt))
    dark, pale = (OUTCOMES["normal"], OUTCOMES["subnormal"]) if mine else ("#999999", "#cccccc")
    return (
        svg.text(82, y + 14, fmt.name, anchor="end", bold=mine)
        + svg.rect(lost, y + 2, least - lost, 14, pale, title=f"{fmt.name}: subnormal")
        + svg.rect(least, y + 2, most - least, 14, dark, title=f"{fmt.name}: normal")
    )
