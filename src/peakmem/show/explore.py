"""Sliders for a picture drawn by a student's own functions; without ipywidgets, the picture."""

from __future__ import annotations

import base64
import html
import importlib.util
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from peakmem.labs.figures import show_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["explore"]

Draw = Callable[..., tuple["Figure", str]]


def explore(draw: Draw, /, **choices: Sequence[Any]) -> Any:
    """Return a slider for each of `choices`, and the picture that `draw(**values)` returns.

    `draw` returns a figure and its description. Each slider starts at its middle value. If a
    student's function isn't written yet or fails, a sentence replaces the picture. Without
    ipywidgets, shows the first picture and returns None.

    Raises ValueError if there are no choices, or if a choice has no values.
    """
    if not choices or not all(choices.values()):
        raise ValueError(f"expected at least one choice, each with values, but got {choices!r}")
    first = {name: values[len(values) // 2] for name, values in choices.items()}
    if importlib.util.find_spec("ipywidgets") is None:
        picture = _picture(draw, first)
        print(picture) if isinstance(picture, str) else show_figure(*picture)
        return None
    import ipywidgets

    sliders = {
        name: ipywidgets.SelectionSlider(
            options=list(values),
            value=first[name],
            description=name.replace("_", " "),
            style={"description_width": "initial"},
        )
        for name, values in choices.items()
    }
    shown = ipywidgets.HTML()

    def show(_: Any = None) -> None:
        shown.value = _page(_picture(draw, {name: s.value for name, s in sliders.items()}))

    for slider in sliders.values():
        slider.observe(show, names="value")
    show()
    return ipywidgets.VBox([ipywidgets.HBox(list(sliders.values())), shown])


def _picture(draw: Draw, values: dict[str, Any]) -> tuple[Figure, str] | str:
    """Return `draw`'s picture, or a sentence that says why there is none."""
    try:
        return draw(**values)
    except NotImplementedError:
        return "Your own functions draw this picture. Write them first, then run this cell again."
    except Exception as error:  # a student's code may raise anything
        return f"With {values}, your functions raise {type(error).__name__}: {error}"


def _page(picture: tuple[Figure, str] | str) -> str:
    if isinstance(picture, str):
        return html.escape(picture)
    import matplotlib.pyplot as plt

    figure, alt = picture
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=100)
    plt.close(figure)
    data = base64.b64encode(png.getvalue()).decode()
    return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{data}">'
