"""Holds measurements back until the student predicts, so that Run All doesn't give them away."""

from __future__ import annotations

__all__ = ["predicted"]


def predicted(*values: object, question: str = "") -> bool:
    """Tell whether every prediction has been made; if one is None, say that the cell waits.

    >>> predicted(None, question="How many MiB are live at the peak?")
    This cell waits for your prediction: How many MiB are live at the peak?
    Replace None in the prediction cell above, run it, then run this cell again.
    False
    >>> predicted(12.5, 0)
    True

    Raises ValueError if there is no value.
    """
    if not values:
        raise ValueError(
            "no prediction was given; expected the variables that the student fills in"
        )
    if all(value is not None for value in values):
        return True
    print(f"This cell waits for your prediction{': ' + question if question else '.'}")
    print("Replace None in the prediction cell above, run it, then run this cell again.")
    return False
