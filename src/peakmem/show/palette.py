"""Colours of plots and calculators: one table of owners, and hues for everything else."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["COLOURS", "INK", "OWNERS", "colours_of", "ink_on"]

INK = "#222222"
# Okabe and Ito (2008), without yellow, which projectors wash out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

#: Owner of memory -> colour, by the ledger's names and those that labs and lectures print.
OWNERS = {
    **dict.fromkeys(("parameter", "parameters", "weights"), COLOURS[0]),
    **dict.fromkeys(("gradient", "gradients"), COLOURS[1]),
    **dict.fromkeys(("optimizer state", "optimizer", "moments", "two moments"), COLOURS[2]),
    "first moment": COLOURS[2],
    "second moment": "#66C9AC",  # paler, because the two are neighbours in one bar
    **dict.fromkeys(("master", "master weights", "fp32 weights"), "#8C8C8C"),
    **dict.fromkeys(("activation", "activations"), COLOURS[3]),
    **dict.fromkeys(("temporary", "temporaries"), COLOURS[4]),
    "logits": COLOURS[5],
    "communication": INK,
}


def colours_of(parts: Iterable[str]) -> dict[str, str]:
    """Return a colour for each part: owners have their own, and other parts get the rest.

    >>> colours_of(["optimizer_state", "fixed"])
    {'optimizer_state': '#009E73', 'fixed': '#0072B2'}
    """
    names = {part: part.replace("_", " ") for part in parts}
    found = {part: OWNERS[name] for part, name in names.items() if name in OWNERS}
    others = [part for part in names if part not in found]
    spare = [hue for hue in COLOURS if hue not in found.values()] or list(COLOURS)
    found |= {part: spare[n % len(spare)] for n, part in enumerate(others)}
    return {part: found[part] for part in names}


def ink_on(fill: str) -> str:
    """Return black or white, whichever is more legible on a fill such as "#D55E00".

    >>> ink_on("#0072B2"), ink_on("#E69F00")
    ('#ffffff', '#000000')
    """
    # Black has more contrast from this luminance on: (L + 0.05)^2 = 1.05 * 0.05.
    return "#000000" if _luminance(fill) > (1.05 * 0.05) ** 0.5 - 0.05 else "#ffffff"


def _luminance(colour: str) -> float:
    """Return WCAG 2's relative luminance, 0 to 1."""
    shares = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
