"""`autograder formgrade`: opens a results folder's gradebook in Formgrader."""

from __future__ import annotations

import argparse
import os
import shlex
import socket
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
    _require_address(jupyter or [])
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


def _require_address(options: list[str]) -> None:
    """Raise ValueError unless JupyterLab can listen at the address in its options.

    By itself it would wait forever without a sentence, or show a traceback.
    """
    parser = argparse.ArgumentParser(prog="formgrade", add_help=False, allow_abbrev=False)
    parser.add_argument("--port", "--ServerApp.port")
    parser.add_argument("--ip", "--ServerApp.ip")
    try:
        given, _ = parser.parse_known_args(options)
    except SystemExit:  # an option without its value: JupyterLab says so
        return
    port, host = given.port, given.ip
    if port is not None and not (port.isdecimal() and int(port) < 2**16):
        raise ValueError(
            f"--port={port} is not a port; give a number from 0 to 65535, such as --port=8888"
        )
    try:
        if host not in (None, "", "*"):
            socket.getaddrinfo(host, None)
    except OSError:
        raise ValueError(
            f"--ip={host} is not an address of this machine; leave it out, or give one such as "
            "--ip=127.0.0.1"
        ) from None
