"""`autograder formgrade`: opens Formgrader on a results folder's gradebook."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from autograder.base.terminal import say
from autograder.cli.common import add_out, require_graded

if TYPE_CHECKING:
    from autograder.cli.common import Commands

__all__ = ["add_formgrade"]


def add_formgrade(commands: Commands) -> None:
    """Add `formgrade`."""
    command = commands.add_parser(
        "formgrade", help="open Formgrader, for manual grading and a look at verdicts"
    )
    add_out(command)
    command.add_argument(
        "jupyter",
        nargs=argparse.REMAINDER,
        metavar="OPTION",
        help="options of JupyterLab's, such as --no-browser or --port=9999",
    )
    command.set_defaults(run=_formgrade)


def _formgrade(options: argparse.Namespace) -> NoReturn:
    require_graded(options.out)
    command = [sys.executable, "-m", "jupyter", "lab", "--LabApp.default_url=/formgrader"]
    if os.geteuid() == 0:
        command.append("--allow-root")
    export = f"autograder export {shlex.quote(str(options.out))}"
    say(f"Ctrl-C ends it. Then write it all: {export}")
    # nbgrader finds its settings, and so the gradebook, in the folder that JupyterLab starts in. It
    # runs alembic by its bare name.
    os.chdir(options.out.path)
    programs = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    environment = {**os.environ, "PATH": os.pathsep.join(programs)}
    os.execve(sys.executable, [*command, *options.jupyter], environment)
