"""The frame of all calculators: state, refusals, guesses, and what comes later."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import ipywidgets
import pytest
import traitlets

from peakmem.show.widgets.calculator import Calculator, Result, table


class Square(Calculator):
    """Squares a number, and shows its cube later."""

    side = traitlets.Int(3)

    def __init__(self, *, predict: bool = False) -> None:
        self.shown: list[int] = []
        super().__init__(
            {"side": ipywidgets.IntSlider(3, 0, 10, description="side")},
            question="How large is <it>?" if predict else None,
            presets={"four": {"side": 4}},
        )

    def answer(self) -> Result:
        if self.side == 7:
            raise ValueError("seven has <no> square today")
        return Result(f"square {self.side**2}", figure=(self.side**2, "units"))

    def later(self) -> Iterator[None]:
        side = self.side
        for part in range(3):
            yield
            self.shown.append(100 * side + part)


def button(calculator: Calculator, name: str) -> ipywidgets.Button:
    (found,) = (b for b in calculator.children[1].children if b.description == name)
    return found


def test_a_trait_and_its_control_are_one() -> None:
    square = Square()
    square.side = 5
    assert square._controls["side"].value == 5
    square._controls["side"].value = 6
    assert square.side == 6
    assert "square 36" in square._text.value


@pytest.mark.parametrize("value", [-1, 11, 10**30])
def test_a_value_out_of_range_is_put_back(value: int) -> None:
    square = Square()
    square.side = value
    assert square.side == square._controls["side"].value == 3
    assert f"side cannot be {value}; it goes from 0 to 10" in square.message
    assert "square 9" in square._text.value
    square.side = 4
    assert square.message == ""


def test_what_the_library_refuses_leaves_the_result() -> None:
    square = Square()
    square.side = 7
    assert "seven has &lt;no&gt; square today" in square.message
    assert 'role="alert"' in square.message
    assert "square 9" in square._text.value


def test_presets_and_reset() -> None:
    square = Square()
    button(square, "four").click()
    assert square.side == 4
    button(square, "Reset").click()
    assert square.side == 3


def test_reset_comes_back_to_where_it_began() -> None:
    square = Square()
    square.begin(side=5)
    square.side = 6
    button(square, "Reset").click()
    assert square.side == 5


def test_a_guess_comes_before_the_result() -> None:
    square = Square(predict=True)
    guess = square._guess
    assert guess is not None
    assert "How large is &lt;it&gt;?" in guess.box.children[0].value
    assert square._result.layout.display == "none"
    for words in ("many", "nan", "1e999"):
        guess._field.value = words
        assert square._result.layout.display == "none"
        assert "is no number" in guess._problem.value
    guess._field.value = "4,5"
    assert guess._problem.value == ""
    assert square._result.layout.display == ""
    assert "You said <b>4.5 units</b>; it is <b>9 units</b>, 0.50 times it" in square._text.value


def test_what_takes_longer_comes_in_pieces_that_a_change_ends() -> None:
    async def drag() -> list[int]:
        square = Square()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        square.side = 5
        assert "square 25" in square._text.value, "the answer waits for nothing"
        while square._pieces is not None and not square._pieces.done():
            await asyncio.sleep(0.001)
        return square.shown

    shown = asyncio.run(drag())
    assert shown[-3:] == [500, 501, 502]
    assert 302 not in shown


def test_a_table_is_escaped() -> None:
    assert "&lt;b&gt;" in table([("<b>", "1")], ("what", "<i>"))
