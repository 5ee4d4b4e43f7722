"""The base of all calculators: state, refusals, guesses, and later results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import ipywidgets
import pytest
import traitlets

from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import table, views_of


class Square(Calculator):
    """Squares a number, and shows its cube later."""

    side = traitlets.Int(3)
    kind = traitlets.Unicode("square")

    def __init__(self, *, predict: bool = False) -> None:
        self.cubes: list[int] = []
        super().__init__(
            {"side": ipywidgets.IntSlider(3, 0, 10, description="side")},
            question="How large is <it>?" if predict else None,
            presets={"four": {"side": 4}},
            more=["kind"],
            subject=["kind"],
        )

    def answer(self) -> Result:
        if self.side == 7:
            raise ValueError("seven has <no> square today")
        return Result(f"square {self.side**2}", figure=(self.side**2, "units"))

    def later(self) -> Iterator[None]:
        side = self.side
        for part in range(3):
            yield
            self.cubes.append(100 * side + part)


def button(calculator: Calculator, name: str) -> ipywidgets.Button:
    (found,) = (b for b in calculator._buttons_row.children if b.description == name)
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
    assert f"side cannot be {value}; give a number from 0 to 10" in square.message
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


def hidden(calculator: Calculator) -> bool:
    found = {part.layout.display == "none" for part in (calculator._words, calculator._result)}
    assert len(found) == 1, "words and picture are hidden together"
    return found == {True}


def guessed(*words: str) -> Square:
    square = Square(predict=True)
    assert square._guess is not None
    for field, text in zip(square._guess.fields, words, strict=False):
        field.value = text
    square._guess.show.click()
    return square


def test_a_guess_comes_before_the_result() -> None:
    square = Square(predict=True)
    guess = square._guess
    assert guess is not None
    assert "How large is &lt;it&gt;?" in guess.box.children[0].value
    assert hidden(square)
    for words in ("many", "nan", "1e999"):
        guess.fields[0].value = words
        guess.show.click()
        assert hidden(square)
        assert "is not a number" in guess._problem.value
    guess.fields[0].value = "4,5"
    assert guess._problem.value == ""
    assert hidden(square), "a second guess can come before the answer"
    guess.show.click()
    assert not hidden(square)
    assert "You said <b>4.5 units</b> (0.50 times it); it is <b>9 units</b>" in square._text.value


def test_two_guesses_stand_beside_the_answer() -> None:
    words = "<b>18 units</b> (2.00 times it) and <b>9 units</b> (1.00 times it); it is"
    assert words in guessed("18", "9")._text.value


def test_no_guess_shows_nothing() -> None:
    square = guessed()
    assert hidden(square)
    assert square._guess is not None
    assert "No guess yet" in square._guess._problem.value


@pytest.mark.parametrize("what", ["again", "Reset", "four", "subject"])
def test_a_new_question_clears_the_guess(what: str) -> None:
    square = guessed("4", "5")
    assert square._guess is not None
    if what == "again":
        square._guess.again.click()
    elif what == "subject":
        square.kind = "another"
    else:
        button(square, what).click()
    assert hidden(square)
    assert [field.value for field in square._guess.fields] == ["", ""]
    assert "You said" not in square._text.value


def test_a_slider_keeps_the_guess_and_the_answer() -> None:
    square = guessed("4")
    square.side = 2
    assert not hidden(square)
    assert "You said <b>4 units</b> (1.00 times it)" in square._text.value


def test_views_take_turns_in_the_pictures_place() -> None:
    picture, later = ipywidgets.HTML(), ipywidgets.HTML()
    choice, first, second = views_of(picture, {"film": [], "curve": [later]})
    assert (first.children, second.children) == ((picture,), (later,))
    assert (first.layout.display, second.layout.display) == ("", "none")
    choice.value = "curve"
    assert (first.layout.display, second.layout.display) == ("none", "")


def test_what_takes_longer_comes_in_pieces_that_a_change_ends() -> None:
    async def drag() -> list[int]:
        square = Square()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        square.side = 5
        assert "square 25" in square._text.value, "the answer waits for nothing"
        while square._pieces is not None and not square._pieces.done():
            await asyncio.sleep(0.001)
        return square.cubes

    shown = asyncio.run(drag())
    assert shown[-3:] == [500, 501, 502]
    assert 302 not in shown


def test_a_view_is_drawn_when_it_is_looked_at() -> None:
    class Viewed(Square):
        def later(self) -> Iterator[None]:
            yield
            self.cubes.append(self.shows("cube"))

    async def look() -> list[bool]:
        square = Viewed()
        square._view = "square"
        await asyncio.sleep(0.01)
        square._look_at("cube")
        await asyncio.sleep(0.01)
        return square.cubes

    assert asyncio.run(look()) == [False, True]
    assert Viewed().cubes == [True], "without a kernel nobody can look at it later"


def test_a_table_is_escaped() -> None:
    assert "&lt;b&gt;" in table([("<b>", "1")], ("what", "<i>"))
