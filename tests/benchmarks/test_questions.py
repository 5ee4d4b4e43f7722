"""The twenty questions: each command runs, and the page has its output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.questions import PAGE, answer, blocks

_PAGE = (Path(__file__).parents[2] / PAGE).read_text("utf-8")
_SECTIONS = _PAGE.split("\n## ")[1:]
_FIGURE = re.compile(r"\d[\d,.]* [KMG]i?B")
# Commands that trace a model or try many remedies, over two seconds each.
_SLOW = ("--trace", "llama3-70b --gpu h100-80gb --precision amp", "--seq 131072")


def marked() -> list[object]:
    found = []
    for number, (command, _) in enumerate(blocks(_PAGE), 1):
        marks = [pytest.mark.slow] if any(word in command for word in _SLOW) else []
        found.append(pytest.param(command, id=str(number), marks=marks))
    return found


@pytest.mark.parametrize("command", marked())
def test_the_page_has_what_the_command_prints(
    command: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--trace" in command:
        pytest.importorskip("transformers")
    monkeypatch.chdir(repository)
    assert answer(command) == dict(blocks(_PAGE))[command]


def test_there_are_twenty_each_with_one_command() -> None:
    assert [int(section.split(".")[0]) for section in _SECTIONS] == list(range(1, 21))
    assert len(list(blocks(_PAGE))) == 20
    assert all(section.count("$ peakmem estimate") == 1 for section in _SECTIONS)


@pytest.mark.parametrize("section", _SECTIONS, ids=lambda section: section.split(".")[0])
def test_figures_in_the_text_are_printed_below_it(section: str) -> None:
    text, printed = section.split("```", 1)
    _, text = text.split("\n", 1)
    wrong = [figure for figure in _FIGURE.findall(text) if figure not in printed]
    assert wrong in ([], ["128 GB"])  # 16 bytes times 8 billion, which no command prints
    said = re.search(r"\$ echo \$\?\n(\d)", printed)
    assert said is not None
    assert text.strip().startswith("Yes") <= (said[1] == "0")
    assert text.strip().startswith("No") <= (said[1] == "1")


def test_another_figure_would_be_seen() -> None:
    section = _SECTIONS[0].replace("take 5.79 GB", "take 5.78 GB")
    with pytest.raises(AssertionError):
        test_figures_in_the_text_are_printed_below_it(section)
