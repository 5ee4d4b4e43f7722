"""Guesses of viewers, which a calculator takes before it shows its answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

import ipywidgets

from peakmem.show.widgets.parts import button_of, row_of, sentence

__all__ = ["Guess"]


class Guess:
    """Two fields for guesses, a button to show the answer, and a button to guess again."""

    def __init__(self, question: str, change: Callable[[], None]) -> None:
        self.shown = False
        self._change = change
        self.fields = [
            ipywidgets.Text(placeholder=words, continuous_update=False)
            for words in ("a guess", "another")
        ]
        for field in self.fields:
            field.add_class("peakmem-guess")
            field.observe(lambda _: self._typed(), names="value")
        self._problem = ipywidgets.HTML()
        words = ipywidgets.HTML(f"<div><b>Predict first.</b> {escape(question)}</div>")
        self.show = button_of("Show the answer", self._pressed)
        self.again = button_of("Guess again", self._emptied)
        self.box = ipywidgets.VBox([words, row_of([*self.fields, self.show, self.again])])
        self.box.children = (*self.box.children, self._problem)

    def clear(self) -> None:
        """Empty the fields, and hide the answer with the next result."""
        self.shown = False
        for field in self.fields:
            field.value = ""

    def _emptied(self) -> None:
        self.clear()
        self._change()

    def _pressed(self) -> None:
        self._typed()
        if not self._values() and not self._problem.value:
            self._problem.value = sentence("No guess yet; type a number such as 12 or 0.5")
        self.shown = bool(self._values())
        self._change()

    def _typed(self) -> None:
        wrong = [field.value for field in self.fields if field.value and _number(field) is None]
        words = " and ".join(repr(value) for value in wrong)
        what = "are not numbers" if len(wrong) > 1 else "is not a number"
        self._problem.value = (
            sentence(f"{words} {what}; type one such as 12 or 0.5") if wrong else ""
        )
        if self.shown:
            self._change()  # the viewer corrected a guess

    def beside(self, figure: tuple[float, str] | None) -> str:
        """Return the guesses beside the answer, (value, unit), as HTML; empty without a guess."""
        if not self._values() or figure is None:
            return ""
        value, unit = figure
        guesses = " and ".join(
            f"<b>{_with_unit(f'{guess:g}', unit)}</b>"
            + (f" ({guess / value:.2f} times it)" if value else "")
            for guess in self._values()
        )
        return f"<p>You said {guesses}; it is <b>{_with_unit(f'{value:.4g}', unit)}</b>.</p>"

    def _values(self) -> list[float]:
        return [value for value in map(_number, self.fields) if value is not None]


def _number(field: ipywidgets.Text) -> float | None:
    try:
        value = float(str(field.value).replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _with_unit(number: str, unit: str) -> str:
    return f"{number} {unit}".rstrip()
