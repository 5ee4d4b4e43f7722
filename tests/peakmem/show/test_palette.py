"""One palette: an owner has the same colour in plots and in calculators."""

from __future__ import annotations

from typing import get_args

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from peakmem.show import plots
from peakmem.show.palette import INK, OWNERS, colours_of, ink_on
from peakmem.show.widgets import adam_state, memory, zero
from peakmem.show.widgets.calculator import Calculator
from peakmem.specs.ledger import Owner


def test_every_owner_of_a_ledger_has_a_colour_of_its_own() -> None:
    owners = [OWNERS[owner.replace("_", " ")] for owner in get_args(Owner)]
    assert len(set(owners)) == len(owners)


def test_other_parts_get_no_owners_colour() -> None:
    found = colours_of(["norms", "weights", "GELU", "gradients"])
    assert list(found) == ["norms", "weights", "GELU", "gradients"]
    assert len(set(found.values())) == 4


def test_plots_and_calculators_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in Calculator.__subclasses__():
        monkeypatch.setattr(kind, "later", Calculator.later)
    parts = ["weights", "gradients", "optimizer_state", "activations"]
    ax = plots.stacked_bars(
        Figure().add_subplot(), {"fp32": dict.fromkeys(parts, 4.0)}, label="bytes"
    )
    weights, gradients, state, activations = (
        to_hex(bars.patches[0].get_facecolor()).upper() for bars in ax.containers
    )
    for calculator, colours in (
        (memory(), (weights, state, activations)),
        (adam_state(), (weights, gradients, state)),
        (zero(), (weights, gradients, state)),
    ):
        assert all(f'fill="{colour}"' in calculator._picture.value for colour in colours)


@pytest.mark.parametrize("fill", ["#000000", "#0072B2", "#D55E00", "#56B4E9", "#ffffff", INK])
def test_ink_can_be_read_on_every_fill(fill: str) -> None:
    def luminance(colour: str) -> float:
        red, green, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in (value / 255 for value in bytes.fromhex(colour[1:]))
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(fill), luminance(ink_on(fill))))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
