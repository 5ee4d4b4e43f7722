"""One palette: an owner has the same colour in plots and in calculators."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import combinations
from typing import get_args

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from peakmem.show import plots
from peakmem.show.palette import (
    ACTIONS,
    INK,
    OUTCOMES,
    OWNERS,
    SERIES,
    VERDICTS,
    colours_of,
    ink_on,
)
from peakmem.show.plots import lab06, lab07, lab09
from peakmem.show.widgets import (
    accumulation,
    adam_state,
    checkpointing,
    memory,
    mixed_precision,
    pipelines,
    scaling,
    swap,
    zero,
)
from peakmem.show.widgets.calculator import Calculator
from peakmem.specs.ledger import Owner


def test_every_owner_of_a_ledger_has_a_colour_of_its_own() -> None:
    owners = [OWNERS[owner.replace("_", " ")] for owner in get_args(Owner)]
    assert len(set(owners)) == len(owners)


def test_other_parts_get_no_owners_colour() -> None:
    found = colours_of(["norms", "weights", "GELU", "gradients"])
    assert list(found) == ["norms", "weights", "GELU", "gradients"]
    assert len(set(found.values())) == 4
    assert not {found["norms"], found["GELU"]} & set(OWNERS.values())


_OTHERS = {
    **ACTIONS,
    **VERDICTS,
    **OUTCOMES,
    **{f"curve {n}": hue for n, hue in enumerate(SERIES)},
}


@pytest.mark.parametrize("name", _OTHERS)
def test_every_other_hue_is_told_apart_from_all_owners(name: str) -> None:
    owner, least = min(
        ((owner, _distance(hue, _OTHERS[name])) for owner, hue in OWNERS.items()),
        key=lambda found: found[1],
    )
    assert least > _APART, f"{name} looks like {owner}: {least:.0f}"


@pytest.mark.parametrize("table", [list(ACTIONS.values()), list(SERIES), list(VERDICTS.values())])
def test_hues_of_one_table_are_told_apart(table: list[str]) -> None:
    assert all(_distance(one, other) > _APART for one, other in combinations(table, 2))


def test_the_distance_notices_a_shared_blue() -> None:
    assert _distance("#0072B2", "#1177B5") < _APART < _distance("#0072B2", "#D55E00")


def test_an_output_has_a_paler_shade_of_its_owners_colour() -> None:
    assert _APART < _distance(OWNERS["output"], OWNERS["activation"]) < 2 * _APART


def test_checkpointing_shows_saved_tensors_in_the_activations_colour() -> None:
    drawn = _drawn(checkpointing(), step=23)
    assert {OWNERS["activation"], OWNERS["output"]} <= drawn
    assert not drawn & {OWNERS["parameter"], OWNERS["temporary"], OWNERS["logits"]}
    assert set(ACTIONS.values()) & drawn == {
        ACTIONS["forward"],
        ACTIONS["forward again"],
        ACTIONS["backward"],
    }


def test_swap_shows_live_memory_in_the_activations_colour() -> None:
    assert _drawn(swap()) & set(OWNERS.values()) == {OWNERS["activation"], INK}


@pytest.mark.parametrize("make", [pipelines, scaling, mixed_precision])
def test_pictures_of_no_memory_have_no_owners_colour(make: Callable[[], Calculator]) -> None:
    assert _drawn(make()) & set(OWNERS.values()) <= {INK}


def test_curves_of_implementations_and_micro_batches_have_no_owners_colour() -> None:
    adam, cut = adam_state(), accumulation()
    for _ in adam.later():
        pass
    for _ in cut.later():
        pass
    for picture in (adam._curves.value, cut._all.value):
        assert _hues(picture) & set(OWNERS.values()) <= {INK}


def test_figures_of_labs_use_an_owners_colour_for_the_owner_only() -> None:
    owners = set(OWNERS.values())
    scaler = lab07.draw_scaler({"fp32": [1.0, 0.5], "bf16": [1.0, 0.7]}, [1.0, 2.0])
    lines = [line for ax in scaler.axes for line in ax.lines]
    assert not {to_hex(line.get_color()).upper() for line in lines} & owners
    assert not {hue.upper() for hue in lab06._CHOICES.values()} & owners
    bars = lab09.draw_model_bytes({"int8": 1.0}, {"A100": 80.0}).axes[0].patches
    assert to_hex(bars[0].get_facecolor()).upper() == OWNERS["weights"]


def _drawn(calculator: Calculator, **state: object) -> set[str]:
    calculator.begin(**state)
    return _hues(calculator._picture.value)


def _hues(picture: str) -> set[str]:
    return set(re.findall(r'(?:fill|stroke)="(#[0-9A-Fa-f]{6})"', picture))


_APART = 19  # of CIE 1976's distance, in which 2.3 is just noticeable


def _distance(one: str, other: str) -> float:
    return math.dist(_lab(one), _lab(other))


def _lab(colour: str) -> tuple[float, float, float]:
    """Return CIE L*a*b* of an sRGB colour, for daylight (D65)."""
    r, g, b = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (value / 255 for value in bytes.fromhex(colour[1:]))
    )
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089
    fx, fy, fz = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


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
