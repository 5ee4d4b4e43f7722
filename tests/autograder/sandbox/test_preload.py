"""The prepared process imports the parts of peakmem that a lab may use, and no commands."""

from __future__ import annotations

from pathlib import Path

import peakmem
from autograder.sandbox.guest.preload import _modules_in
from tests.test_architecture import imports_of


def test_no_module_of_the_command_line_is_preloaded(repository: Path) -> None:
    preloaded = set(_modules_in(peakmem.__path__, "peakmem."))
    assert {"peakmem.show.config_report", "peakmem.measure.meter"} <= preloaded
    source = repository / "src"
    of_commands = {
        ".".join(file.relative_to(source).with_suffix("").parts)
        for file in source.rglob("*.py")
        if {name.partition(".")[0] for name in imports_of(file.read_text("utf-8"))}
        & {"typer", "rich"}
    }
    assert "peakmem.show.cli.step" in of_commands
    assert of_commands & preloaded == set()
