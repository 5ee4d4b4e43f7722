"""The base of all calculators: traits as state, one call into the library, a text and a picture.

A calculator is a box of controls and a result. Every control is linked to a trait of the same name,
so `calculator.batch = 8` in a program has the same effect as moving the slider. A change calls
`answer()`, which calls the library once and returns a `Result`. Slower results come from `later()`,
piece by piece; the next change cancels it. If a control doesn't have a value, the trait is reset,
and a sentence says why. If the library raises ValueError, its sentence is shown, and the last
result stays.

With `predict=True`, the result is hidden until the viewer has entered a guess. A preset, Reset, or
a change of the calculator's subject, such as another model, asks again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ipywidgets
import traitlets

from peakmem.show.widgets.guess import Guess
from peakmem.show.widgets.look import STYLE
from peakmem.show.widgets.parts import (
    button_of,
    grid_of,
    range_in_words,
    row_of,
    sentence,
    views_of,
)

__all__ = ["Calculator", "Result"]


@dataclass(frozen=True)
class Result:
    """A calculator's output."""

    #: HTML.
    text: str
    #: SVG.
    picture: str = ""
    #: The answer to the question, as (value, unit); None if there is nothing to guess.
    figure: tuple[float, str] | None = None


class Calculator(ipywidgets.VBox):  # type: ignore[misc]
    """Controls beside a result. Subclasses declare traits, make controls, and define `answer`.

    Args:
        controls: one for each trait of the same name, in the order of the page.
        question: the question to guess first; None shows the result at once.
        presets: button -> values of traits.
        more: traits of the state without such a control.
        subject: traits that the question is about; changing one hides the result again.
        below: widgets below the controls.
        above: widgets above the result that are never hidden.
        views: name -> widgets in the picture's place; the first view has the picture too.

    Set `at_once` in a program that stores the output when a cell is done: `later()` then runs at
    once.
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
        self._guess = Guess(question, self._show) if question else None
        self._subject = frozenset(subject)
        self.observe(self._changed, names=list(self._first))
        buttons = [
            button_of(name, partial(self._ask_anew, v)) for name, v in (presets or {}).items()
        ]
        self._buttons_row = row_of(
            [*buttons, button_of("Reset", partial(self._ask_anew, self._first))]
        )
        # In boxes of their own, because a still page shows what boxes hide.
        self._words = ipywidgets.VBox([self._text])
        self._view = next(iter(views or {}), "")
        self._result = ipywidgets.VBox(views_of(self._picture, views or {}, self._look_at))
        self._put_beside([grid_of(controls.values()), self._buttons_row, *below], above)
        self._show()

    def _put_beside(
        self, controls: Sequence[ipywidgets.Widget], above: Sequence[ipywidgets.Widget]
    ) -> None:
        """Put controls and text on the left; the guess and the picture on the right."""
        guess = [self._guess.box] if self._guess else []
        left = ipywidgets.VBox([*controls, self._message, self._words])
        right = ipywidgets.VBox([*above, *guess, self._result])
        for side, name in ((left, "peakmem-left"), (right, "peakmem-right")):
            side.add_class(name)
        sides = ipywidgets.Box([left, right])
        sides.add_class("peakmem-sides")
        self.children = (ipywidgets.HTML(STYLE), sides)

    def answer(self) -> Result:
        """Return the result for the current state. Raises ValueError if the library refuses it."""
        raise NotImplementedError

    def later(self) -> Iterator[None]:
        """Show slower results, in pieces of some milliseconds."""
        yield from ()

    def accept(self, name: str, old: Any, new: Any) -> None:
        """Check a trait's new value beyond its control's checks. Raises ValueError to refuse it."""

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
        """Set several traits, and make Reset return to them."""
        self._first.update(values)
        self.set(**values)

    @property
    def message(self) -> str:
        """The sentence about refused input; empty if there is none."""
        return str(self._message.value)

    @property
    def shown(self) -> bool:
        """Whether the result is visible; False until the viewer has guessed."""
        return self._guess is None or self._guess.shown

    def shows(self, view: str) -> bool:
        """Whether this view is chosen, or may be viewed later without a kernel.

        Hidden views need not be drawn, so a change appears sooner.
        """
        return self._view == view or self.at_once or not _has_loop()

    def _look_at(self, view: str) -> None:
        self._view = view
        self._go_on_later()

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
        """Show a trait's value in its control. Raises ValueError if the control can't have it."""
        control = self._controls.get(name)
        if control is None:
            return
        with contextlib.suppress(traitlets.TraitError):  # a dropdown refuses unknown values
            control.value = new
        if control.value != new:
            what = f"{control.description} cannot be {_short(new)}; {range_in_words(control)}"
            raise ValueError(f"{what}; its value stays as it was")

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
        self._put(result)
        self._go_on_later()

    def _put(self, result: Result) -> None:
        """Put a result's words and picture in their places; `later()` may do so again."""
        guessed = self._guess.beside(result.figure) if self._guess else ""
        self._text.value = f"<div>{guessed}{result.text}</div>"
        self._picture.value = result.picture

    def _go_on_later(self) -> None:
        """Run `later()` when the kernel is idle; a change before its end restarts it."""
        if self._pieces is not None:
            self._pieces.cancel()
        if not _has_loop() or self.at_once:
            for _ in self.later():
                pass
        else:
            self._pieces = asyncio.get_running_loop().create_task(self._one_by_one())

    async def _one_by_one(self) -> None:
        for _ in self.later():
            await asyncio.sleep(0.001)  # let a slider's next message through


def _has_loop() -> bool:
    """Whether a kernel runs; there is none in a test or a plain program."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 40 else f"{words[:40]}..."
