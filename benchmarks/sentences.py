"""English sentences from a grammar: the same training text for a small model on every machine.

A model can learn sums and the agreement of nouns and verbs, but can only guess names, so its loss
falls in steps and never reaches 0.
"""

from __future__ import annotations

import random

__all__ = ["LETTERS", "sentences"]

LETTERS = " .abcdefghijklmnopqrstuvwxyz"

# fmt: off
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)
_TENS = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)
_NOUNS = (
    "ship", "tensor", "river", "horse", "garden", "letter", "kernel", "window", "baker",
    "island",
)
_VERBS = (
    "sail", "carry", "follow", "cross", "paint", "store", "reach", "guard", "open", "count",
)
_ADJECTIVES = (
    "old", "small", "red", "quiet", "heavy", "distant", "sparse", "dense", "narrow", "golden",
)
_PLACES = (
    "town", "harbour", "forest", "valley", "market", "bridge", "tower", "library",
)
# fmt: on


def sentences(characters: int, seed: int) -> str:
    """Return this many characters of sentences.

    >>> sentences(27, seed=2)
    'twelve old bakers sail the '
    """
    rng = random.Random(seed)
    parts: list[str] = []
    length = 0
    while length < characters:
        parts.append(_sum(rng) if rng.random() < 0.4 else _story(rng))
        length += len(parts[-1])
    return "".join(parts)[:characters]


def _number(value: int) -> str:
    if value < 20:
        return _ONES[value]
    tens, ones = _TENS[value // 10 - 2], value % 10
    return f"{tens} {_ONES[ones]}" if ones else tens


def _sum(rng: random.Random) -> str:
    first, second = int(20 * rng.random()), int(20 * rng.random())
    return f"{_number(first)} plus {_number(second)} is {_number(first + second)}. "


def _story(rng: random.Random) -> str:
    def one_of(words: tuple[str, ...]) -> str:
        return words[int(len(words) * rng.random())]

    count = 1 + int(12 * rng.random())
    plural = "" if count == 1 else "s"
    verb = one_of(_VERBS)
    third = {"y": verb[:-1] + "ies", "h": verb + "es"}.get(verb[-1], verb + "s")
    subject = f"{_number(count)} {one_of(_ADJECTIVES)} {one_of(_NOUNS)}{plural}"
    return (
        f"{subject} {third if count == 1 else verb} the {one_of(_NOUNS)} of the {one_of(_PLACES)}. "
    )
