"""What `peakmem` prints fits a terminal of 80 columns; files and pipes get whole lines."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import pytest

from peakmem.measure.generated_gpt import generated_gpt
from peakmem.show.cli import main, terminal
from tests.peakmem.specs.configs import PUBLISHED

COLUMNS = 80
SCRIPT = """
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(4, 8)).sum().backward()
optimizer.step()
"""
COMMANDS = [
    "estimate --model gpt2 --gpu rtx3090-24gb --batch 8",
    "estimate --model gpt2 --batch 64 --memory 8GB --largest-batch --by module",
    "estimate --model gpt3-6.7b --gpu l4-24gb",
    "estimate --model gpt3-175b --gpu a100-80gb --zero 3 --data-parallel 64 --pipeline 4",
    "estimate --model gpt2 --gpu m2-24gb --context-parallel 2 --zero 1",
    "estimate --model gpt2 --batch 64 --memory 8GB --export accelerate",
    "estimate --model gpt2 -q",
    "estimate --list",
    "estimate --inference --model llama3-8b --tensor-parallel 2 --quantized-base nf4",
    "estimate --config mixtral-8x7b --precision mixed --memory 80GB",
    "estimate --config gpt2 --batch 4",
    "estimate --model gpt5",
    "estimate --modle gpt2",
    "trace script.py",
    "snapshot recorded.pickle",
    "snapshot gone.pickle",
    "doctor",
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the commands name."""
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(SCRIPT, encoding="utf-8")
    Path("recorded.pickle").write_bytes(pickle.dumps(generated_gpt()))
    for name in ("gpt2", "mixtral-8x7b"):
        Path(name).mkdir()
        (Path(name) / "config.json").write_text(json.dumps(PUBLISHED[name]), encoding="utf-8")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_terminal(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "fitted", lambda text, _to: terminal.wrapped(text, COLUMNS))
    main(command.split())
    out, err = capsys.readouterr()
    lines = (out + err).splitlines()
    assert lines
    assert [line for line in lines if len(line) > COLUMNS] == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_gets_wrapped_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("NO_COLOR", "1")
    sentence = "A sentence of many words, which no terminal of fifty columns shows in a line."
    narrow, pipe = Terminal(), io.StringIO()
    for to in (narrow, pipe):
        terminal.tell(sentence, style=terminal.BAD, to=to)
    assert pipe.getvalue() == f"{sentence}\n"
    lines = narrow.getvalue().splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= 50
    assert " ".join(lines) == sentence


@pytest.mark.parametrize("command", ["estimate --model gpt5", "estimate --modle gpt2"])
def test_an_error_is_red_on_a_terminal_only(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for to, red in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr("sys.stderr", to)
        assert main(command.split()) == 2
        assert ("\x1b[1;31m" in to.getvalue()) is red


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- one two three four", ["- one two", "  three four"]),
        ("  a  one two three", ["  a  one two", "     three"]),
        ("say `a b c d e f` now", ["say", "`a b c d e f`", "now"]),
        ("-> a command to be copied", ["-> a command to be copied"]),
        ("one\ntwo three four", ["one", "two three", "four"]),
        ("averyveryverylongword", ["averyveryverylongword"]),
    ],
)
def test_wrapping_indents_below_the_text_and_keeps_commands_whole(
    text: str, lines: list[str]
) -> None:
    assert terminal.wrapped(text, 12).split("\n") == lines
