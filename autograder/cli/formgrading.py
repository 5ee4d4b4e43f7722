"""`autograder formgrade`: opens a results folder's gradebook in Formgrader."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from autograder.base.course import Course
from autograder.base.terminal import say
from autograder.cli.common import Graded, require_graded

__all__ = ["AS_GIVEN", "formgrade"]

#: Typer's settings for a command that passes on everything after its first argument.
AS_GIVEN = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def formgrade(
    out: Graded,
    jupyter: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JUPYTER]...",
            help="Options for JupyterLab, such as --no-browser or --port=9999.",
        ),
    ] = None,
    *,
    course: Course,
) -> NoReturn:
    """Open Formgrader to grade manually and see verdicts."""
    require_graded(out)
    # The list of labs to grade manually; /formgrader alone opens stock nbgrader's own releases.
    page = "/formgrader/gradebook"
    # The address is logged as critical. The user's own options come later, and so prevail.
    quiet = ["--log-level=ERROR", "--LabApp.log_level=ERROR"]
    command = [sys.executable, "-m", "jupyter", "lab", f"--LabApp.default_url={page}", *quiet]
    if os.geteuid() == 0:
        command.append("--allow-root")
    export = shlex.join(["autograder", *course.command_options, "export", str(out)])
    say(f"Press Ctrl-C to stop. Then publish your grades: {export}")
    # nbgrader finds its settings, and so the gradebook, in the folder that JupyterLab starts in. It
    # runs alembic by its bare name.
    os.chdir(out.path)
    programs = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    environment = {**os.environ, "PATH": os.pathsep.join(programs)}
    os.execve(sys.executable, [*command, *(jupyter or [])], environment)
