"""Calculator of number formats: a number's bits as buttons, and the number in another format."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import ipywidgets
import traitlets

from peakmem.numbers.formats import (
    FORMATS,
    NumberFormat,
    decode,
    encode,
    fields,
    neighbours,
    powers_of_two,
    ulp,
)
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import sentence, table

__all__ = ["float_explorer"]

# Pale enough for dark digits, and safe for colour-blind viewers.
_COLOURS = {"sign": "#f4b183", "exponent": "#9fd8c4", "fraction": "#b7dcf5"}
_WIDEST = max(fmt.width for fmt in FORMATS.values())
_UPPER = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def float_explorer(*, predict: bool = False) -> Calculator:
    """Return the float explorer: click a bit to flip it, or type a number to see its bits.

    Traits: format and other (keys of FORMATS), bits (the pattern in `format`, an integer). With
    `predict`, the result is hidden until the viewer has guessed the number.
    """
    return _Floats(predict)


class _Floats(Calculator):
    format = traitlets.Unicode("fp32")
    other = traitlets.Unicode("bf16")
    bits = traitlets.Int(encode(FORMATS["fp32"], 0.15625))

    def __init__(self, predict: bool) -> None:
        self._number = ipywidgets.Text(description="number", continuous_update=False)
        self._number.add_class("peakmem-number")
        self._number.observe(self._typed, names="value")
        # Shared by all buttons: a page waits for each widget, and layouts and styles are widgets.
        self._used, self._unused = ipywidgets.Layout(), ipywidgets.Layout(display="none")
        self._styles = {
            part: ipywidgets.ButtonStyle(button_color=colour, text_color="#000000")
            for part, colour in _COLOURS.items()
        }
        self._buttons = [self._bit_button(place) for place in range(_WIDEST)]
        places = ipywidgets.Box([*reversed(self._buttons)])
        places.add_class("peakmem-bits")
        super().__init__(
            {
                "format": ipywidgets.Dropdown(options=list(FORMATS), description="format"),
                "other": ipywidgets.Dropdown(options=list(FORMATS), description="compare with"),
            },
            question="Which number do these bits stand for?" if predict else None,
            presets={
                "1/10": {"format": "fp32", "bits": encode(FORMATS["fp32"], 0.1)},
                "largest": {"format": "fp16", "bits": FORMATS["fp16"].largest_pattern},
                "smallest": {"format": "fp16", "bits": 1},
                "infinity": {"format": "fp32", "bits": FORMATS["fp32"].largest_pattern + 1},
            },
            more=["bits"],
            below=[self._number],
            above=[places],
        )

    def answer(self) -> Result:
        fmt, other = FORMATS[self.format], FORMATS[self.other]
        value = decode(fmt, self.bits)
        self._show_bits(fmt, value)
        rows = [*_parts(fmt, self.bits), *_around(fmt, self.bits), *_beside(other, value)]
        figure = (value, "") if math.isfinite(value) else None
        return Result(f"<p>{_equation(fmt, self.bits)}</p>{table(rows)}", figure=figure)

    def accept(self, name: str, old: Any, new: Any) -> None:
        """Keep the number, rounded, when the format changes."""
        if name == "format" and not self._setting:
            pattern = encode(FORMATS[new], decode(FORMATS[old], self.bits))
            self.set(bits=pattern)
        elif name == "bits":
            decode(FORMATS[self.format], new)  # raises ValueError for other integers

    def _typed(self, change: Any) -> None:
        if not change["new"]:
            return  # a question hides the number
        try:
            value = float(change["new"])
        except ValueError:
            self._message.value = sentence(
                f"{change['new']!r} is not a number; type one such as 0.1, -3e-8, inf or nan"
            )
            return
        fmt = FORMATS[self.format]
        if math.isnan(value) and not fmt.has_nan:
            self._message.value = sentence(f"{fmt.name} has no NaN; type another number")
        elif not _same(value, decode(fmt, self.bits)):
            self.bits = encode(fmt, value)

    def _show_bits(self, fmt: NumberFormat, value: float) -> None:
        for place, button in enumerate(self._buttons):
            part = _part(fmt, place)
            button.layout = self._used if place < fmt.width else self._unused
            button.style = self._styles[part]
            button.description = str(self.bits >> place & 1)
            button.tooltip = f"bit {place}, {part}"
        self._number.value = f"{value!r}" if self.shown else ""

    def _bit_button(self, place: int) -> ipywidgets.Button:
        button = ipywidgets.Button(layout=self._unused, style=self._styles["fraction"])
        button.add_class(f"peakmem-bit-{place}")
        button.on_click(lambda _: setattr(self, "bits", self.bits ^ 1 << place))
        return button


def _same(a: float, b: float) -> bool:
    return repr(a) == repr(b)  # distinguishes -0.0 from 0.0, but not one NaN from another


def _part(fmt: NumberFormat, place: int) -> str:
    if place < fmt.mantissa_bits:
        return "fraction"
    return "sign" if place == fmt.width - 1 else "exponent"


def _equation(fmt: NumberFormat, bits: int) -> str:
    """Return the value as an exact sum of powers of two, in HTML."""
    parts = fields(fmt, bits)
    sign = "-" if parts.sign else ""
    if parts.kind in ("infinity", "nan"):
        return f"<b>{sign}{parts.kind}</b>"
    powers = [f"2{str(power).translate(_UPPER)}" for power in powers_of_two(fmt, bits)]
    total = " + ".join(powers) or "0"
    total = f"-({total})" if parts.sign else total
    return f"<b>{escape(repr(decode(fmt, bits)))}</b> = {total}, exactly"


def _parts(fmt: NumberFormat, bits: int) -> list[tuple[str, str]]:
    parts = fields(fmt, bits)
    power = max(parts.exponent, 1) - fmt.bias
    return [
        (f"pattern in {fmt.name}", f"0x{bits:0{(fmt.width + 3) // 4}x}"),
        ("class", parts.kind),
        ("sign", f"{parts.sign}"),
        ("exponent", f"{parts.exponent}, for 2{str(power).translate(_UPPER)}"),
        ("fraction", f"{parts.mantissa} / {2**fmt.mantissa_bits}"),
    ]


def _around(fmt: NumberFormat, bits: int) -> list[tuple[str, str]]:
    if fields(fmt, bits).kind == "nan":
        return []
    below, above = neighbours(fmt, bits)
    rows = [("next below", f"{below!r}"), ("next above", f"{above!r}")]
    value = decode(fmt, bits)
    return [*rows, ("gap", f"{ulp(fmt, value)!r}")] if math.isfinite(value) else rows


def _beside(other: NumberFormat, value: float) -> list[tuple[str, str]]:
    """Return rows about the number in the other format, and the rounding error."""
    bits = encode(other, value) if other.has_nan or not math.isnan(value) else None
    if bits is None:
        return [(f"in {other.name}", "it has no NaN")]
    rounded = decode(other, bits)
    rows = [
        (f"in {other.name}", f"{rounded!r}"),
        ("its pattern", f"0x{bits:0{(other.width + 3) // 4}x}"),
    ]
    if math.isfinite(value) and math.isfinite(rounded):
        error = rounded - value
        relative = f" ({error / value:+.2%})" if value else ""
        rows.append(("rounding error", f"{error!r}{relative}"))
    return rows
