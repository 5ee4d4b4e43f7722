"""No value that a trait can take stops a calculator, and its state is one of its controls'."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import traitlets
from hypothesis import given, settings
from hypothesis import strategies as st

from peakmem.show import widgets
from peakmem.show.widgets.calculator import Calculator

FACTORIES = {name: getattr(widgets, name) for name in widgets.__all__}
SMALL = ("gpt2", "own shape")  # a large model's ledger takes its time


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later results have tests of their own."""

    def nothing(self: Calculator) -> Iterator[None]:
        yield from ()

    for kind in Calculator.__subclasses__():
        monkeypatch.setattr(kind, "later", nothing)


def values(calculator: Calculator, name: str) -> st.SearchStrategy[Any]:
    """Values to which a program may set a trait, sensible or not."""
    trait = calculator.traits()[name]
    control = calculator._controls.get(name)
    if isinstance(trait, traitlets.Bool):
        return st.booleans()
    if isinstance(trait, traitlets.Float):
        return st.floats() | st.floats(0, 30)
    if isinstance(trait, traitlets.Unicode):
        options = [value for _, value in control._options_full] if control else []
        if name == "model":
            options = [option for option in options if option in SMALL] or options
        return st.sampled_from(options) | st.text(max_size=5)
    sensible = st.integers(0, 20)
    if name == "layers":
        return st.integers(-1, 12)  # more of them take their time, and nothing else
    if hasattr(control, "max"):
        sensible = st.integers(max(control.min, -40), min(control.max, 2000))
    return sensible | st.integers(-(10**40), 10**40)


@pytest.mark.parametrize("name", FACTORIES)
@settings(max_examples=10)
@given(data=st.data())
def test_no_value_stops_it(name: str, data: st.DataObject) -> None:
    calculator = FACTORIES[name](predict=data.draw(st.booleans()))
    for _ in range(5):
        trait = data.draw(st.sampled_from(list(calculator._first)))
        value = data.draw(values(calculator, trait))
        setattr(calculator, trait, value)
        for tied, control in calculator._controls.items():
            assert getattr(calculator, tied) == control.value
        taken = getattr(calculator, trait) == value
        assert taken or calculator.message, f"{trait} = {value!r} was refused without a word"
        assert calculator._text.value
    calculator.set(**calculator._first)
    assert calculator.message == ""


@pytest.mark.parametrize("name", FACTORIES)
def test_presets_are_of_its_state(name: str) -> None:
    calculator = FACTORIES[name]()
    for button in calculator._buttons_row.children:
        button.click()
        assert calculator.message == "", button.description


@pytest.mark.parametrize("name", FACTORIES)
def test_a_guess_is_asked_for(name: str) -> None:
    factory: Callable[..., Calculator] = FACTORIES[name]
    calculator = factory(predict=True)
    assert calculator._result.layout.display == "none"
    assert calculator._guess is not None
    calculator._guess.fields[0].value = "12"
    calculator._guess.show.click()
    assert calculator._result.layout.display == ""
    assert "You said <b>12" in calculator._text.value
    assert factory()._result.layout.display == ""


@pytest.mark.parametrize("name", FACTORIES)
def test_every_control_has_words(name: str) -> None:
    for control in FACTORIES[name]()._controls.values():
        assert control.description
