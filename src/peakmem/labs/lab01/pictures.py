"""Pictures of formats, and bits to click on."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from peakmem.labs.figures import show_figure
from peakmem.labs.lab01.formats import fields, float16_sums

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "bit_flipper",
    "show_bit_fields",
    "show_number_line",
    "show_relative_spacing",
    "show_stalling_sum",
]

_EXAMPLE = 0x3E200000  # 0.15625
# Sign, exponent, fraction: pale enough for dark digits, and distinct for colour-blind readers.
_FIELDS = (("sign", "#f4b183"), ("exponent", "#9fd8c4"), ("fraction", "#b7dcf5"))


def show_number_line() -> None:
    """Show all numbers of FP4, the smallest float format in use, and the gaps between them."""
    from peakmem.show.plots import number_line

    positive = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    gaps = [(-6, -4, 2), (-4, -2, 1), (-2, 2, 0.5), (2, 4, 1), (4, 6, 2)]
    figure, ax = _figure(2.2)
    number_line(ax, [-x for x in positive] + positive, gaps, label="numbers of FP4 (E2M1)")
    show_figure(
        figure,
        "Number line from -6 to 6 with a tick at each of the 15 values of FP4. Their gap is 0.5 up "
        "to 2, 1 from 2 to 4, and 2 from 4 to 6, on both sides of zero.",
    )


def show_bit_fields(bits: int = _EXAMPLE) -> None:
    """Show the 32 bits of an fp32 number, coloured by field."""
    figure, ax = _figure(1.7)
    for place in range(32):
        colour = _FIELDS[_field(place)][1]
        x = 31 - place
        ax.barh(0, 1, left=x, height=1, color=colour, edgecolor="black", linewidth=0.6)
        ax.text(x + 0.5, 0, str(bits >> place & 1), ha="center", va="center", fontsize=12)
        if place in (31, 30, 23, 22, 0):
            ax.text(x + 0.5, 0.6, str(place), ha="center", va="bottom", fontsize=10)
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    for middle, text in [
        (0.5, f"$S$ = {bits >> 31}"),
        (5, f"$E$ = {exponent}"),
        (20.5, f"$F / 2^{{23}}$ = {fraction / 2**23:g}"),
    ]:
        ax.text(middle, -0.65, text, ha="center", va="top", fontsize=12)
    ax.set(xlim=(-0.6, 32.1), ylim=(-1.3, 1.1))
    ax.axis("off")
    show_figure(
        figure,
        f"The 32 bits of an fp32 number in three coloured fields: sign {bits >> 31}, exponent "
        f"{exponent}, fraction {fraction} of 2^23. The bits are {fields(bits)}.",
    )


def show_relative_spacing() -> None:
    """Show how far apart neighbours are in five formats, relative to their value."""
    from peakmem.show.plots import relative_spacing

    curves = {}
    for name, lowest, highest, m in [  # exponents of the smallest normal and the largest number
        ("fp32", -126, 127, 23),
        ("fp16", -14, 15, 10),
        ("bf16", -126, 127, 7),
        ("fp8 E4M3", -6, 8, 3),
        ("fp8 E5M2", -14, 15, 2),
    ]:
        k = np.arange(lowest - m, highest + 1)  # every power of two that the format has
        curves[name] = (2.0**k, 2.0 ** (np.maximum(k, lowest) - m - k))
    figure, ax = _figure(4.5)
    relative_spacing(ax, curves)
    show_figure(
        figure,
        "Gap to the next number divided by the value, over the value, for five formats. Each curve "
        "is flat over the normal numbers, at 2^-23 for fp32, 2^-10 for fp16, 2^-7 for bf16, 2^-3 "
        "and 2^-2 for fp8, and rises to 1 over the subnormal numbers. fp32 and bf16 reach from "
        "about 2^-149 and 2^-133 to 2^127; fp16 and fp8 cover a short stretch around 1.",
    )


def show_stalling_sum() -> None:
    """Show a sum of steps of 0.01 in float16, and where sums of other steps stall."""
    from peakmem.show.plots import running_sum

    step, count = 0.01, 4000
    sums = float16_sums(step, count)
    figure, ax = _figure(4.5)
    exact = step * np.arange(count + 1)
    running_sum(ax, {"exact": exact, "float16": sums.astype(float)}, stalls_at=32.0)
    show_figure(
        figure,
        "Sum of 0.01 over the number of additions, exact and in float16. float16 follows the exact "
        "line up to 4, then grows faster from 4 to 8, slower from 8 to 16, and faster from 16 to "
        "32, which it reaches after 2798 additions and never leaves.",
    )
    print(f"after 1000 additions: {sums[1000]:.3f}\n")
    print("    step   stalls at   gap from there on")
    for step in (0.01, 2.0**-6, 0.02, 0.03, 2.0**-5, 0.05):
        stall = float16_sums(step, 5000)[-1]
        print(f"{step:8.6f} {stall:10.0f}   {float(np.spacing(stall)):.6f}")


def bit_flipper(decode: Callable[[int], float], bits: int = _EXAMPLE) -> Any:
    """Return 32 buttons that flip the bits of an fp32 number, and its value by `decode`.

    Without ipywidgets, shows the bits as a still picture instead.
    """
    if importlib.util.find_spec("ipywidgets") is None:
        show_bit_fields(bits)
        return None
    import ipywidgets

    pattern = bits
    value = ipywidgets.HTML()
    buttons = [
        ipywidgets.Button(
            layout=ipywidgets.Layout(width="27px", height="34px", margin="1px", padding="0"),
            style={"button_color": _FIELDS[_field(place)][1]},
            tooltip=f"bit {place}, {_FIELDS[_field(place)][0]}",
        )
        for place in range(32)
    ]

    def show() -> None:
        for place, button in enumerate(buttons):
            button.description = str(pattern >> place & 1)
        value.value = f"<b>0x{pattern:08X}</b> is <b>{_value(decode, pattern)}</b>"

    def flip(place: int) -> None:
        nonlocal pattern
        pattern ^= 1 << place
        show()

    for place, button in enumerate(buttons):
        button.on_click(lambda _, place=place: flip(place))
    show()
    row = ipywidgets.Box(buttons[::-1], layout=ipywidgets.Layout(flex_flow="row wrap"))
    return ipywidgets.VBox([row, value])


def _value(decode: Callable[[int], float], bits: int) -> str:
    """A student's function's value of a pattern, or a sentence if it fails."""
    try:
        return f"{decode(bits)!r}"
    except NotImplementedError:
        return "unknown until you write decode_fp32"
    except Exception as error:  # a student's code may raise anything
        return f"unknown: your decode_fp32 raises {type(error).__name__}"


def _field(place: int) -> int:
    return 0 if place == 31 else 1 if place >= 23 else 2


def _figure(height: float) -> tuple[Any, Axes]:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(8, height), layout="constrained")
