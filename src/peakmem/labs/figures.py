"""Shows figures with their text descriptions, for readers who can't see them."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["show_figure"]


def show_figure(figure: Figure, alt: str) -> None:
    """Show a figure with `alt` as its description for those who can't see it, then close it.

    A script without IPython, such as a lab's source on a machine for GPU work, prints `alt`.

    Raises ValueError if `alt` is empty.
    """
    import matplotlib.pyplot as plt  # here, so that self-checks alone load no matplotlib

    if not alt.strip():
        raise ValueError(
            "alt is empty; expected one or two sentences that say what the figure shows. "
            "Describe the axes and the shape of the curves."
        )
    if importlib.util.find_spec("IPython") is None:
        print(alt)
    else:
        from IPython.display import display

        display(figure, metadata={"image/png": {"alt": alt}})
    plt.close(figure)
