"""Building blocks of calculators: sentences, tables, buttons, rows and views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets

from peakmem.core.units import GB, GiB
from peakmem.show.widgets.look import MANY

__all__ = [
    "button_of",
    "gb_and_gib",
    "grid_of",
    "range_in_words",
    "row_of",
    "sentence",
    "table",
    "unbroken_table",
    "views_of",
    "whole_row",
]


def sentence(words: str) -> str:
    """Return a message as HTML that stands out and that screen readers announce."""
    return f'<div role="alert">{escape(words)}</div>'


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = ()) -> str:
    """Return rows of text as an HTML table, aligned right from the second column on."""

    def cells(row: tuple[str, ...], tag: str) -> str:
        sides = ["left", *["right"] * (len(row) - 1)]
        return "".join(
            f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )

    top = f"<tr>{cells(head, 'th')}</tr>" if head else ""
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{top}{body}</table>"


def unbroken_table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Return a table whose cells are short and stay on one line each."""
    return f'<div class="peakmem-nowrap">{table(rows, head)}</div>'


def gb_and_gib(n_bytes: int) -> str:
    """Return bytes as "GB (GiB)" without the units, for a table whose head names them.

    >>> gb_and_gib(13_480_000_000), gb_and_gib(1_000_000_000_000)
    ('13.5 (12.6)', '1,000 (931)')
    """
    sizes = n_bytes / GB, n_bytes / GiB
    one, two = (f"{size:,.0f}" if size >= 100 else f"{size:.3g}" for size in sizes)
    return f"{one} ({two})"


def range_in_words(control: Any) -> str:
    """Return a phrase that says which values a control takes."""
    if hasattr(control, "max"):
        return f"give a number from {control.min:g} to {control.max:g}"
    return f"choose one of {', '.join(str(label) for label in control._options_labels)}"


def button_of(name: str, press: Callable[[], None]) -> ipywidgets.Button:
    """Return a button with this name that calls `press`."""
    button = ipywidgets.Button(description=name)
    button.on_click(lambda _: press())
    return button


def row_of(widgets: Sequence[ipywidgets.Widget]) -> ipywidgets.Box:
    """Return widgets side by side, wrapped into as many lines as they need."""
    row = ipywidgets.Box(list(widgets))
    row.add_class("peakmem-row")
    return row


def grid_of(controls: Iterable[ipywidgets.Widget]) -> ipywidgets.Box:
    """Return controls in one column, or in two if there are many."""
    grid = ipywidgets.Box(list(controls))
    grid.add_class("peakmem-controls")
    if len(grid.children) >= MANY:
        grid.add_class("peakmem-many")
    return grid


def whole_row(control: ipywidgets.Widget) -> ipywidgets.Widget:
    """Return a control that takes both columns of a grid, because its values are long."""
    control.add_class("peakmem-whole")
    return control


def views_of(
    picture: ipywidgets.HTML,
    views: Mapping[str, Sequence[ipywidgets.Widget]],
    chosen: Callable[[str], None] = lambda _: None,
) -> list[ipywidgets.Widget]:
    """Return the picture; with several views, buttons that choose which stands in its place.

    `chosen` is called with the name of the view that a viewer chose.
    """
    boxes = {name: ipywidgets.VBox(list(inside)) for name, inside in views.items()}
    if len(boxes) < 2:
        return [picture, *boxes.values()]
    first = next(iter(boxes.values()))
    first.children = (picture, *first.children)
    choice = ipywidgets.ToggleButtons(options=list(boxes))

    def choose(_: Any = None) -> None:
        for name, box in boxes.items():
            box.layout.display = "" if name == choice.value else "none"
        if _ is not None:
            chosen(str(choice.value))

    choice.observe(choose, names="value")
    choose()
    return [choice, *boxes.values()]
