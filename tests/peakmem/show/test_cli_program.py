"""How `peakmem` reads its command line: help, version, completion, colour, and what it loads."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass, fields
from typing import Annotated

import pytest
import typer

import peakmem
from peakmem.show.cli import main
from peakmem.show.cli.help import LINES, Group, page
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


def test_help_has_each_command_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    titles = [at for at, line in enumerate(lines) if re.fullmatch(r"\w.*:", line)]
    assert {lines[at].strip(":"): lines[at + 1].split()[0] for at in titles} == {
        "Before a training": "estimate",
        "After a training": "snapshot",
        "This machine": "doctor",
        "Options": "--version",
    }


@pytest.mark.parametrize("command", [(), ("estimate",), ("trace",), ("snapshot",), ("doctor",)])
def test_help_fits_a_terminal(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80


def test_estimates_help_folds_groups_of_options_and_help_all_unfolds_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["estimate", "-h"]) == 0
    short = capsys.readouterr().out
    assert main(["estimate", "--help-all"]) == 0
    whole = capsys.readouterr().out
    options = re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", whole)
    assert len(options) == len(fields(Step))
    assert set(options) <= set(re.findall(r"--[a-z-]+", short))
    assert "\nMany devices: --data-parallel, --zero, " in short
    assert "\nMany devices:\n" in whole
    assert "--help-all` describes every option" in short
    assert "--help-all" not in whole
    assert len(whole.splitlines()) > 24


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


def test_help_loads_no_predictor_and_neither_help_nor_an_answer_rich() -> None:
    of_help, of_answer = loaded_by("--help"), loaded_by(*SMALL)
    assert "typer" in of_help
    assert not {"rich", "torch", "matplotlib", "peakmem.predict.estimate"} & of_help
    assert {"typer", "peakmem.predict.estimate"} <= of_answer
    assert not {"torch", "matplotlib", "rich"} & of_answer


def test_the_package_of_the_command_loads_nothing_by_itself() -> None:
    code = "import sys, peakmem.show.cli; sys.exit('typer' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Pages of help


def group(title: str, *names: str) -> Group:
    return Group(title, tuple((name, f"About {name}.") for name in names))


def test_a_page_unfolds_the_first_groups_that_fit() -> None:
    many = [f"--option-{number}" for number in range(LINES)]
    groups = [group("", "LAB"), group("First", "--a"), group("Many", *many), group("Last", "--z")]
    told = page(["Usage: test"], groups, [], "See all.").splitlines()
    assert len(told) <= LINES
    assert told[2:5] == ["  LAB  About LAB.", "First:", "  --a  About --a."]
    assert told[5].startswith("Many: --option-0, --option-1, ")
    assert told[-4:] == ["Last:", "  --z  About --z.", "", "See all."]
    unfolded = page(["Usage: test"], groups, [], "").splitlines()
    assert "Many:" in unfolded
    assert "See all." not in unfolded


def test_a_page_that_fits_folds_nothing_and_says_nothing_of_it() -> None:
    told = page(["Usage: test"], [group("Few", "-q, --quiet", "--out OUT")], ["The end."], "All.")
    assert told.splitlines() == [
        "Usage: test",
        "",
        "Few:",
        "  -q, --quiet  About -q, --quiet.",
        "  --out OUT    About --out OUT.",
        "",
        "The end.",
    ]


def test_a_name_too_long_for_its_column_has_a_line_of_its_own() -> None:
    long = "--an-option-with-a-long-name VALUE"
    told = page(["Usage: test"], [group("Few", long, "-q")], [], "").splitlines()
    assert told[3:] == [f"  {long}", f"      About {long}.", "  -q  About -q."]


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
