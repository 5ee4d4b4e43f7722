"""Sliders over a student's functions: calls, pictures, and the fallback without ipywidgets."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from peakmem.labs.lab04 import segment_sliders
from peakmem.labs.lab06 import choice_sliders
from peakmem.labs.lab07 import scale_slider
from peakmem.show.explore import explore


def draw(width: int, depth: str) -> tuple[Figure, str]:
    return Figure(), f'a picture of "{width}" & {depth}'


def shown(page: Any) -> str:
    text: str = page.children[1].value
    return text


def alt(page: Any) -> str:
    found = re.search(r'alt="([^"]*)"', shown(page))
    assert found is not None, shown(page)
    return found.group(1)


def test_the_first_picture_is_that_of_the_middle_and_a_slider_draws_anew() -> None:
    page = explore(draw, width=[1, 2, 3], depth=["low", "high"])
    assert alt(page) == "a picture of &quot;2&quot; &amp; high"
    page.children[0].children[0].value = 3
    page.children[0].children[1].value = "low"
    assert alt(page) == "a picture of &quot;3&quot; &amp; low"


@pytest.mark.parametrize("choices", [{}, {"width": []}])
def test_no_choice_is_refused(choices: dict[str, list[int]]) -> None:
    with pytest.raises(ValueError, match="expected at least one choice"):
        explore(draw, **choices)


@pytest.fixture
def no_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ipywidgets" else find_spec(name)
    )


@pytest.mark.usefixtures("no_widgets")
def test_without_ipywidgets_the_picture_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("peakmem.show.explore.show_figure", lambda figure, alt: seen.append(alt))
    assert explore(draw, width=[1, 2, 3], depth=["low"]) is None
    assert seen == ['a picture of "2" & low']


def unwritten(*_: Any) -> Any:
    raise NotImplementedError


@pytest.mark.usefixtures("no_widgets")
def test_without_ipywidgets_what_is_not_written_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    segment_sliders(unwritten)
    assert "Write them first" in capsys.readouterr().out


def of_lab4(function: Any) -> Any:
    return segment_sliders(function)


def of_lab6(function: Any) -> Any:
    return choice_sliders(function)


def of_lab7(function: Any) -> Any:
    return scale_slider(function, [torch.tensor([2.0**-30, 1.0, 0.0, -(2.0**20)])])


@pytest.mark.parametrize("sliders", [of_lab4, of_lab6, of_lab7])
def test_what_a_student_has_not_written_or_gets_wrong_is_said(sliders: Any) -> None:
    assert "Write them first" in shown(sliders(unwritten))
    assert "your functions raise ZeroDivisionError" in shown(sliders(lambda *_: 1 / 0))


def test_lab_4s_curve_is_that_of_the_students_function() -> None:
    def peak(layers: int, length: int, saved: int) -> float:
        return layers / length + length * saved

    page = segment_sliders(peak)
    layers, saved = page.children[0].children
    layers.value, saved.value = 64, 4
    assert "64 layers: 32 units with segments of 4, 257 with all kept" in alt(page)


def test_lab_6s_map_asks_for_every_link_and_device() -> None:
    asked = []

    def choose(stage: Any, link: float, speed: float) -> str:
        asked.append((link, speed, stage.saved_bytes, stage.forward_flops, stage.hidden_flops))
        return "swap"

    page = choice_sliders(choose)
    page.children[0].children[0].value = 1024
    page.children[0].children[1].value = 2
    asked.clear()
    page.children[0].children[1].value = 3
    assert len(set(asked)) == 61 * 61
    assert {row[2:] for row in asked} == {(34 * 1024, 24 * 1024**2, 3 * 72 * 1024**2)}
    assert "width 1024 with 3 layers in between" in alt(page)


def test_lab_6_names_a_choice_that_is_none() -> None:
    assert "unknown choice &#x27;sell&#x27;" in shown(choice_sliders(lambda *_: "sell"))


def test_lab_7s_slider_says_what_is_flushed_and_what_overflows() -> None:
    page = of_lab7(lambda grads, dtype, scale: 1 / 3 if scale == 1 else 0.0)
    slider = page.children[0].children[0]
    slider.value = "2^0"
    assert "scale 2^0: 33.3% flushed to 0, 33.3% become inf" in alt(page)
    slider.value = "2^16"
    assert "scale 2^16: 0.0% flushed to 0, 66.7% become inf" in alt(page)
