"""How `peakmem` reads its command line: help, version, completion, colour, and what it loads."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer

import peakmem
from peakmem.show.cli import main
from peakmem.show.cli.parameters import flat
from peakmem.show.cli.program import Unreadable, program, require_command, run
from peakmem.show.cli.step import Step
from peakmem.specs.hardware import ACCELERATORS
from peakmem.specs.models import MODELS
from peakmem.specs.recipes import Recipe

CALL = "import sys; from peakmem.show.cli import main; sys.exit(main())"
SMALL = ("estimate", "--model", "gpt2", "--gpu", "a100-80gb")


def test_its_version_is_the_librarys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"peakmem {peakmem.__version__}\n", "")


def test_help_has_each_command_in_its_group_within_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    titles = [at for at, line in enumerate(lines) if line.startswith("╭")]
    groups = {lines[at].strip("╭╮─ "): lines[at + 1].split()[1] for at in titles}
    assert groups == {
        "Options": "--version",
        "Before a training": "estimate",
        "After a training": "snapshot",
        "This machine": "doctor",
    }


def test_estimates_help_has_groups_of_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["estimate", "-h"]) == 0
    said = capsys.readouterr().out
    titles = re.findall(r"^╭─ ([^─]+) ─", said, re.MULTILINE)
    assert {"The model", "The device", "The training", "Many devices"} <= set(titles)
    assert "<bool>" not in said


def test_without_a_command_help_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "estimate" in told.err
    assert told.err.splitlines()[-1].startswith("peakmem: a command is required")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("peakmem est", {"estimate"}),
        ("peakmem estimate --gpu rtx30", {name for name in ACCELERATORS if "rtx30" in name}),
        ("peakmem estimate --model gpt2", {name for name in MODELS if name.startswith("gpt2")}),
        ("peakmem estimate --optimizer adamw", {"adamw"}),
        ("peakmem estimate --micro", {"--micro-batches"}),
    ],
)
def test_a_shell_completes_names(
    words: str,
    expected: set[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("_PEAKMEM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 0
    assert set(capsys.readouterr().out.split()) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_one_for_the_shell(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_PEAKMEM_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit):
        main([])
    script = capsys.readouterr().out
    assert f"_PEAKMEM_COMPLETE=complete_{shell}" in script
    assert "peakmem" in script


# Colour


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """A command's output on a terminal."""
    ours, theirs = pty.openpty()
    variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    variables |= {"TERM": "xterm", "COLUMNS": "80", **environment}
    done = subprocess.Popen(
        [sys.executable, "-c", CALL, *arguments], stdout=theirs, stderr=theirs, env=variables
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # how Linux tells that the other end is closed
        pass
    finally:
        os.close(ours)
        done.wait()
    return b"".join(parts).decode()


def test_a_terminal_gets_colour_and_no_color_is_honoured() -> None:
    assert "\x1b[32mIt fits" in on_a_terminal(*SMALL)
    bare = on_a_terminal(*SMALL, NO_COLOR="1")
    assert "\nIt fits" in bare
    assert "\x1b" not in bare


def test_a_pipe_gets_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (SMALL, ("--help",)):
        assert main(arguments) == 0
        assert "\x1b" not in capsys.readouterr().out


# What is loaded


def loaded_by(*arguments: str) -> set[str]:
    code = (
        "import sys; from peakmem.show.cli import main; main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_help_loads_no_predictor_and_an_answer_no_rich() -> None:
    of_help, of_answer = loaded_by("--help"), loaded_by(*SMALL)
    assert {"typer", "rich"} <= of_help
    assert not {"torch", "matplotlib", "peakmem.predict.estimate"} & of_help
    assert {"typer", "peakmem.predict.estimate"} <= of_answer
    assert not {"torch", "matplotlib", "rich"} & of_answer


def test_the_package_of_the_command_loads_nothing_by_itself() -> None:
    code = "import sys, peakmem.show.cli; sys.exit('typer' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Programs and parameters


def test_a_steps_defaults_are_the_recipes() -> None:
    assert Step().recipe == Recipe()


@dataclass(frozen=True)
class Size:
    width: int
    deep: Annotated[bool, typer.Option("--deep")] = False


def test_a_dataclass_becomes_options() -> None:
    app, seen = program("A test."), []

    @app.callback()
    def any_command(context: typer.Context) -> None:
        require_command(context, "draw")

    @app.command()
    @flat
    def draw(name: str, size: Size, times: int = 2) -> int:
        seen.append((name, size, times))
        return 7

    assert run(app, "test", ["draw", "a", "3", "--times", "4", "--deep"]) == 7
    assert seen == [("a", Size(3, deep=True), 4)]
    with pytest.raises(Unreadable) as caught:
        run(app, "test", ["draw", "a"])
    assert caught.value.command == "draw"
    assert "width is required" in caught.value.sentence.lower()
