"""Sizes that the cases of lab 10 draw."""

from __future__ import annotations

import numpy as np

__all__ = ["ragged"]


def ragged(rng: np.random.Generator) -> int:
    """Draw a length of a few blocks of 8 and part of another."""
    return 8 * int(rng.integers(1, 4)) + int(rng.integers(1, 8))
