"""Colours of plots and calculators: one table of owners, and other hues for everything else."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ACTIONS", "INK", "OUTCOMES", "OWNERS", "SERIES", "VERDICTS", "colours_of", "ink_on"]

INK = "#222222"
# Okabe and Ito (2008), without yellow, which projectors wash out.
_BLUE, _VERMILION, _GREEN = "#0072B2", "#D55E00", "#009E73"
_PINK, _SKY, _ORANGE = "#CC79A7", "#56B4E9", "#E69F00"

#: Owner of memory -> colour, by the ledger's names and those that labs and lectures print.
OWNERS = {
    **dict.fromkeys(("parameter", "parameters", "weights"), _BLUE),
    **dict.fromkeys(("gradient", "gradients"), _VERMILION),
    **dict.fromkeys(("optimizer state", "optimizer", "moments", "two moments"), _GREEN),
    "first moment": _GREEN,
    "second moment": "#66C9AC",  # paler, because the two are neighbours in one bar
    **dict.fromkeys(("master", "master weights", "fp32 weights"), "#8C8C8C"),
    **dict.fromkeys(("activation", "activations", "saved tensors"), _PINK),
    "output": "#E8BAD4",  # paler: a stage's output is one of its activations
    **dict.fromkeys(("temporary", "temporaries"), _SKY),
    "logits": _ORANGE,
    "communication": INK,
}

#: What compute or the link does -> colour, none of them an owner's.
ACTIONS = {
    "forward": "#DDCC77",
    "forward again": "#332288",
    "backward": "#7B4B2A",
    "out": "#8A4FFF",
    "in": "#C9B6FF",  # paler: the same bytes come back
}
#: Verdict -> colour, pale enough for text on it.
VERDICTS = {"fits": "#CFE6F5", "does not fit": "#F7D3BD"}
#: Hues of curves and bars that are neither owners nor actions. Curves need dashes as well, because
#: colour-blind viewers can't tell all of these apart.
SERIES = ("#332288", "#857A00", "#8A4FFF", "#882255", "#7B4B2A", "#1F5130", "#7FB800")
#: What becomes of a rounded number -> colour.
OUTCOMES = {
    "becomes 0": SERIES[3],
    "subnormal": "#DDCC77",
    "normal": SERIES[0],
    "overflow": SERIES[2],
}


def colours_of(parts: Iterable[str]) -> dict[str, str]:
    """Return a colour for each part: owners have their own, and other parts get no owner's.

    >>> colours_of(["optimizer_state", "fixed"])
    {'optimizer_state': '#009E73', 'fixed': '#332288'}
    """
    names = {part: part.replace("_", " ") for part in parts}
    found = {part: OWNERS[name] for part, name in names.items() if name in OWNERS}
    others = [part for part in names if part not in found]
    found |= {part: SERIES[n % len(SERIES)] for n, part in enumerate(others)}
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
