"""What all calculators share: state that is traits, one call into the library, a text, a picture.

A calculator is a box of controls and a result. Every control is tied to a trait of the same name,
so a program sets `calculator.batch = 8` and a person moves the slider, with the same effect. A
change calls `answer()`, which asks the library once and returns a `Result`. What takes longer comes
in `later()`, piece by piece, and the next change ends it. A value that its control does not have is
put back, with a sentence. What the library refuses (a ValueError) is shown as its sentence; the
result before it stays where it is.

With `predict=True` the result is hidden until a guess or two are entered and shown. A preset, Reset
and a change of the calculator's subject, such as another model, ask anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import ipywidgets
import traitlets

from peakmem.show.widgets.look import MANY, STYLE

__all__ = ["Calculator", "Result", "sentence", "table"]


@dataclass(frozen=True)
class Result:
    """What a calculator shows: HTML text, an SVG picture, and the number that a guess is held to.

    `figure` is (value, unit in words), or None if there is nothing to guess.
    """

    text: str
    picture: str = ""
    figure: tuple[float, str] | None = None


class Calculator(ipywidgets.VBox):  # type: ignore[misc]
    """Controls beside a result. A subclass declares traits, makes controls and answers.

    Args:
        controls: one for each trait of the same name; the order is that on the page.
        question: what a viewer guesses first; None shows the result at once.
        presets: name -> values of traits, a button each.
        more: traits of the state that have no control of this kind.
        subject: traits that the question is about; a change of one hides the result again.
        below: widgets that belong to the controls.
        above: widgets above the result that are never hidden.
        views: name -> what is shown in the picture's place; the first is the picture's own name.

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
        subject: Sequence[str] = (),
        below: Sequence[ipywidgets.Widget] = (),
        above: Sequence[ipywidgets.Widget] = (),
        views: Mapping[str, Sequence[ipywidgets.Widget]] | None = None,
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
        for name, control in controls.items():
            control.value = getattr(self, name)
            control.observe(partial(self._moved, name), names="value")
        self._guess = _Guess(question, self._show) if question else None
        self._subject = frozenset(subject)
        self.observe(self._changed, names=list(self._first))
        buttons = [_button(name, partial(self._ask_anew, v)) for name, v in (presets or {}).items()]
        self._buttons_row = _row([*buttons, _button("Reset", partial(self._ask_anew, self._first))])
        # A box each, for a still page shows what boxes hide.
        self._words = ipywidgets.VBox([self._text])
        self._result = ipywidgets.VBox(_views(self._picture, views or {}))
        self._put_beside([_grid(controls.values()), self._buttons_row, *below], above)
        self._show()

    def _put_beside(
        self, controls: Sequence[ipywidgets.Widget], above: Sequence[ipywidgets.Widget]
    ) -> None:
        """Put controls and words on the left; the guess and the picture on the right."""
        guess = [self._guess.box] if self._guess else []
        left = ipywidgets.VBox([*controls, self._message, self._words])
        right = ipywidgets.VBox([*above, *guess, self._result])
        for side, name in ((left, "peakmem-left"), (right, "peakmem-right")):
            side.add_class(name)
        sides = ipywidgets.Box([left, right])
        sides.add_class("peakmem-sides")
        self.children = (ipywidgets.HTML(STYLE), sides)

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
        """The sentence about input that was refused, or "" if all is well."""
        return str(self._message.value)

    @property
    def shown(self) -> bool:
        """Whether the result is on the page; False while a guess is waited for."""
        return self._guess is None or self._guess.shown

    def _ask_anew(self, values: dict[str, Any]) -> None:
        if self._guess is not None:
            self._guess.clear()
        self.set(**values)

    def _moved(self, name: str, change: Any) -> None:
        setattr(self, name, change["new"])

    def _changed(self, change: Any) -> None:
        name, old, new = change["name"], change["old"], change["new"]
        try:
            self._hand_to_control(name, new)
            self.accept(name, old, new)
            if name in self._subject and self._guess is not None:
                self._guess.clear()
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
        for part in (self._words, self._result):
            part.layout.display = "" if self.shown else "none"
        guessed = self._guess.beside(result) if self._guess else ""
        self._text.value = f"<div>{guessed}{result.text}</div>"
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


class _Guess:
    """Fields for two guesses of the viewers, a button that shows the answer, and one for more."""

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
        self.show = _button("Show the answer", self._pressed)
        self.again = _button("Guess again", self._emptied)
        self.box = ipywidgets.VBox([words, _row([*self.fields, self.show, self.again])])
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
            self._change()  # a guess that was mended

    def beside(self, result: Result) -> str:
        """Return the guesses beside the answer, as HTML; "" while there are none."""
        if not self._values() or result.figure is None:
            return ""
        value, unit = result.figure
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


def sentence(words: str) -> str:
    """Return a message as HTML that stands out and that a screen reader speaks."""
    return f'<div role="alert">{escape(words)}</div>'


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = ()) -> str:
    """Return rows of text as an HTML table, numbers to the right from the second column on."""

    def cells(row: tuple[str, ...], tag: str) -> str:
        sides = ["left", *["right"] * (len(row) - 1)]
        return "".join(
            f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )

    top = f"<tr>{cells(head, 'th')}</tr>" if head else ""
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{top}{body}</table>"


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 40 else f"{words[:40]}..."


def _range_of(control: Any) -> str:
    """What a control takes, in words."""
    if hasattr(control, "max"):
        return f"it goes from {control.min:g} to {control.max:g}"
    return f"choose one of {', '.join(str(label) for label in control._options_labels)}"


def _button(name: str, press: Callable[[], None]) -> ipywidgets.Button:
    button = ipywidgets.Button(description=name)
    button.on_click(lambda _: press())
    return button


def _row(widgets: Sequence[ipywidgets.Widget]) -> ipywidgets.Box:
    row = ipywidgets.Box(list(widgets))
    row.add_class("peakmem-row")
    return row


def _grid(controls: Iterable[ipywidgets.Widget]) -> ipywidgets.Box:
    grid = ipywidgets.Box(list(controls))
    grid.add_class("peakmem-controls")
    if len(grid.children) >= MANY:
        grid.add_class("peakmem-many")
    return grid


def _views(
    picture: ipywidgets.HTML, views: Mapping[str, Sequence[ipywidgets.Widget]]
) -> list[ipywidgets.Widget]:
    """The picture; with several views, buttons that choose which of them stands in its place."""
    boxes = {name: ipywidgets.VBox(list(inside)) for name, inside in views.items()}
    if len(boxes) < 2:
        return [picture, *boxes.values()]
    first = next(iter(boxes.values()))
    first.children = (picture, *first.children)
    choice = ipywidgets.ToggleButtons(options=list(boxes))

    def choose(_: Any = None) -> None:
        for name, box in boxes.items():
            box.layout.display = "" if name == choice.value else "none"

    choice.observe(choose, names="value")
    choose()
    return [choice, *boxes.values()]
