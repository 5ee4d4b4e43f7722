"""What all calculators share: state that is traits, one call into the library, a text, a picture.

A calculator is a box of controls and a result. Every control is tied to a trait of the same name,
so a program sets `calculator.batch = 8` and a person moves the slider, with the same effect. A
change calls `answer()`, which asks the library once and returns a `Result`. What takes longer comes
in `later()`, piece by piece, and the next change ends it. A value that its control does not have is
put back, with a sentence. What the library refuses (a ValueError) is shown as its sentence; the
result before it stays where it is.

With `predict=True` the result is hidden until the viewer has entered a guess.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import ipywidgets
import traitlets

__all__ = ["Calculator", "Result", "sentence", "table"]

_TEXT = "font-size:16px;line-height:1.45;color:#222222"


@dataclass(frozen=True)
class Result:
    """What a calculator shows: HTML text, an SVG picture, and the number that a guess is held to.

    `figure` is (value, unit in words), or None where there is nothing to guess.
    """

    text: str
    picture: str = ""
    figure: tuple[float, str] | None = None


class Calculator(ipywidgets.VBox):  # type: ignore[misc]
    """Controls above a result. A subclass declares traits, makes controls and answers.

    Args:
        controls: one for each trait of the same name; the order is that on the page.
        question: what a viewer guesses first; None shows the result at once.
        presets: name -> values of traits, a button each.
        more: traits of the state that have no control of this kind.

    `at_once` is for a program that keeps what is shown when a cell is done: no piece comes later.
    """

    at_once = False

    def __init__(
        self,
        controls: dict[str, ipywidgets.Widget],
        *,
        question: str | None = None,
        presets: dict[str, dict[str, Any]] | None = None,
        more: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.add_class("peakmem-calculator")
        self._controls = controls
        self._first = {name: getattr(self, name) for name in (*controls, *more)}
        self._setting = False
        self._refused = ""
        self._pieces: asyncio.Task[None] | None = None
        self._message = ipywidgets.HTML()
        self._text, self._picture = ipywidgets.HTML(), ipywidgets.HTML()
        self._result = ipywidgets.VBox([self._text, self._picture])
        for name, control in controls.items():
            control.value = getattr(self, name)
            control.observe(partial(self._moved, name), names="value")
            _lay_out(control)
        self._guess = _Guess(question, self._show) if question else None
        self.observe(self._changed, names=list(self._first))
        row = ipywidgets.Layout(display="flex", flex_flow="row wrap", width="100%")
        boxes = [ipywidgets.Box(list(controls.values()), layout=row)]
        buttons = [self._button(name, values) for name, values in (presets or {}).items()]
        buttons.append(self._button("Reset", self._first))
        boxes.append(ipywidgets.Box(buttons, layout=row))
        guess = [self._guess.box] if self._guess else []
        self.children = (*boxes, *guess, self._message, self._result)
        self._show()

    def answer(self) -> Result:
        """Ask the library about the present state; ValueError for what it refuses."""
        raise NotImplementedError

    def later(self) -> Iterator[None]:
        """Show what takes longer, in pieces of some milliseconds."""
        yield from ()

    def accept(self, name: str, old: Any, new: Any) -> None:
        """Check a new value of a trait beyond what its control checks; ValueError refuses it."""

    def set(self, **values: Any) -> None:
        """Set several traits, and show the result once."""
        self._setting = True
        try:
            for name, value in values.items():
                setattr(self, name, value)
        finally:
            self._setting = False
        self._show()

    def begin(self, **values: Any) -> None:
        """Set several traits, and let Reset come back to them."""
        self._first.update(values)
        self.set(**values)

    @property
    def message(self) -> str:
        """The sentence about input that was refused; "" where all is well."""
        return str(self._message.value)

    def _moved(self, name: str, change: Any) -> None:
        setattr(self, name, change["new"])

    def _changed(self, change: Any) -> None:
        name, old, new = change["name"], change["old"], change["new"]
        try:
            self._hand_to_control(name, new)
            self.accept(name, old, new)
        except (ValueError, traitlets.TraitError) as error:
            self._refused = str(error)
            was, self._setting = self._setting, True
            setattr(self, name, old)
            self._setting = was
        if not self._setting:
            self._show()

    def _hand_to_control(self, name: str, new: Any) -> None:
        """Show a trait's value in its control; ValueError where the control has no such value."""
        control = self._controls.get(name)
        if control is None:
            return
        with contextlib.suppress(traitlets.TraitError):  # a list refuses what it does not hold
            control.value = new
        if control.value != new:
            what = f"{control.description} cannot be {_short(new)}; {_range_of(control)}"
            raise ValueError(f"{what}; it stays as it was")

    def _show(self) -> None:
        self._message.value = sentence(self._refused) if self._refused else ""
        self._refused = ""
        try:
            result = self.answer()
        except ValueError as error:
            self._message.value = sentence(str(error))
            return
        hidden = self._guess is not None and not self._guess.entered
        self._result.layout.display = "none" if hidden else ""
        guessed = self._guess.beside(result) if self._guess else ""
        self._text.value = f'<div style="{_TEXT}">{guessed}{result.text}</div>'
        self._picture.value = result.picture
        self._go_on_later()

    def _go_on_later(self) -> None:
        """Run `later()` once nothing else is to do; a change before its end begins it again."""
        if self._pieces is not None:
            self._pieces.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no kernel, as in a test
            loop = None
        if loop is None or self.at_once:
            for _ in self.later():
                pass
        else:
            self._pieces = loop.create_task(self._one_by_one())

    async def _one_by_one(self) -> None:
        for _ in self.later():
            await asyncio.sleep(0.001)  # let a slider's next message through

    def _button(self, name: str, values: dict[str, Any]) -> ipywidgets.Button:
        button = ipywidgets.Button(description=name, layout=ipywidgets.Layout(width="auto"))
        button.on_click(lambda _: self.set(**values))
        return button


class _Guess:
    """A field for the viewer's guess, and the guess beside the answer."""

    def __init__(self, question: str, entered: Any) -> None:
        self._field = ipywidgets.Text(placeholder="your guess, a number", continuous_update=False)
        self._field.add_class("peakmem-guess")
        self._field.observe(lambda _: self._typed(entered), names="value")
        self._problem = ipywidgets.HTML()
        words = ipywidgets.HTML(
            f'<div style="{_TEXT}"><b>Predict first.</b> {escape(question)}</div>'
        )
        self.box = ipywidgets.VBox([words, self._field, self._problem])

    def _typed(self, entered: Any) -> None:
        wrong = bool(self._field.value) and not self.entered
        words = f"{self._field.value!r} is no number; type one such as 12 or 0.5"
        self._problem.value = sentence(words) if wrong else ""
        entered()

    @property
    def entered(self) -> bool:
        return self._value() is not None

    def beside(self, result: Result) -> str:
        guess = self._value()
        if guess is None or result.figure is None:
            return ""
        value, unit = result.figure
        ratio = f", {guess / value:.2f} times it" if value else ""
        return f"<p>You said <b>{guess:g} {unit}</b>; it is <b>{value:.4g} {unit}</b>{ratio}.</p>"

    def _value(self) -> float | None:
        try:
            value = float(str(self._field.value).replace(",", "."))
        except ValueError:
            return None
        return value if math.isfinite(value) else None


def sentence(words: str) -> str:
    """Return a message as HTML that stands out and that a screen reader speaks."""
    return (
        f'<div role="alert" style="{_TEXT};border-left:6px solid #D55E00;padding:4px 10px">'
        f"{escape(words)}</div>"
    )


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = ()) -> str:
    """Return rows of text as an HTML table, numbers to the right from the second column on."""

    def cells(row: tuple[str, ...], tag: str) -> str:
        sides = ["left", *["right"] * (len(row) - 1)]
        style = "padding:2px 12px 2px 0;font-size:16px"
        return "".join(
            f'<{tag} style="text-align:{side};{style}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )

    top = f"<tr>{cells(head, 'th')}</tr>" if head else ""
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse">{top}{body}</table>'


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 40 else f"{words[:40]}..."


def _range_of(control: Any) -> str:
    """What a control takes, in words."""
    if hasattr(control, "max"):
        return f"it goes from {control.min:g} to {control.max:g}"
    return f"choose one of {', '.join(str(label) for label in control._options_labels)}"


def _lay_out(control: ipywidgets.Widget) -> None:
    """Give a control room for its label, on a projector and on a phone."""
    control.layout.width = "340px"
    control.layout.max_width = "100%"
    if hasattr(control.style, "description_width"):
        control.style.description_width = "130px"
