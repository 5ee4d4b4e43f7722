"""The float explorer beside the bits that struct knows."""

from __future__ import annotations

import struct

import pytest

from peakmem.numbers.formats import FORMATS, decode, encode
from peakmem.show.widgets import float_explorer


def test_a_click_flips_a_bit() -> None:
    explorer = float_explorer()
    (sign,) = (b for b in explorer._buttons if "peakmem-bit-31" in b._dom_classes)
    sign.click()
    (expected,) = struct.unpack(">I", struct.pack(">f", -0.15625))
    assert explorer.bits == expected
    assert sign.description == "1"
    assert "<b>-0.15625</b>" in explorer._text.value


def test_a_typed_number_gets_its_bits() -> None:
    explorer = float_explorer()
    explorer._number.value = "0.1"
    (expected,) = struct.unpack(">I", struct.pack(">f", 0.1))
    assert explorer.bits == expected
    assert f"0x{expected:08x}" in explorer._text.value


def test_what_is_no_number_is_a_sentence() -> None:
    explorer = float_explorer()
    explorer._number.value = "a tenth"
    assert "is not a number" in explorer.message
    assert explorer.bits == encode(FORMATS["fp32"], 0.15625)


@pytest.mark.parametrize("name", FORMATS)
def test_the_number_stays_when_the_format_changes(name: str) -> None:
    explorer = float_explorer()
    explorer.format = name
    assert explorer.bits == encode(FORMATS[name], 0.15625)
    assert f"<b>{decode(FORMATS[name], explorer.bits)!r}</b>" in explorer._text.value
    shown = [button for button in explorer._buttons if button.layout.display != "none"]
    assert len(shown) == FORMATS[name].width


def test_a_format_without_nan_takes_none() -> None:
    explorer = float_explorer()
    explorer._number.value = "nan"
    explorer.format = "fp4_e2m1"
    assert explorer.format == "fp32"
    assert "but fp4_e2m1 has none" in explorer.message
    explorer.set(format="fp4_e2m1", bits=1)
    explorer._number.value = "nan"
    assert explorer.bits == 1
    assert "has no NaN" in explorer.message


@pytest.mark.parametrize("bits", [-1, 2**32, 10**40])
def test_what_is_no_pattern_is_refused(bits: int) -> None:
    explorer = float_explorer()
    before = explorer.bits
    explorer.bits = bits
    assert explorer.bits == before
    assert "not a pattern of fp32" in explorer.message


@pytest.mark.parametrize("name", FORMATS)
def test_a_button_is_shown_for_each_bit_in_its_parts_colour(name: str) -> None:
    fmt, shown = FORMATS[name], float_explorer()
    shown.format = name
    n_exponent = fmt.width - 1 - fmt.mantissa_bits
    parts = ["fraction"] * fmt.mantissa_bits + ["exponent"] * n_exponent + ["sign"]
    visible = [button for button in shown._buttons if button.layout.display != "none"]
    assert visible == shown._buttons[: fmt.width]
    assert [button.tooltip.partition(", ")[2] for button in visible] == parts
    colours = {part: set[str]() for part in parts}
    for button, part in zip(visible, parts, strict=True):
        colours[part].add(button.style.button_color)
    assert all(len(some) == 1 for some in colours.values())
    assert len(set.union(*colours.values())) == len(colours)


def test_buttons_share_layouts_and_styles() -> None:
    # A page waits for each widget, and a layout and a style of each button are two more.
    buttons = float_explorer()._buttons
    assert len({button.layout.model_id for button in buttons}) <= 2
    assert len({button.style.model_id for button in buttons}) <= 3
