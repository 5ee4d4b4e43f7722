"""The program `peakmem`: its commands and their exit statuses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

import typer

from peakmem.show.cli.doctor import doctor
from peakmem.show.cli.parameters import flat
from peakmem.show.cli.program import (
    Command,
    Unreadable,
    program,
    require_command,
    run,
    version_option,
)
from peakmem.show.cli.snapshot import snapshot
from peakmem.show.cli.step import Step
from peakmem.show.cli.terminal import BAD, tell
from peakmem.show.cli.trace import trace

__all__ = ["main"]

_PIPE_CLOSED = 141  # what a shell reports if a closed pipe ended the command

_app = program("Predict the memory of a training step, and check this machine.")


@_app.callback()
def _any_command(
    context: typer.Context, version: Annotated[bool, version_option("peakmem")] = False
) -> None:
    require_command(context, "estimate")


def _command(name: str, panel: str, **settings: Any) -> Callable[..., None]:
    """Add a command whose function returns the exit status; ValueError means invalid input."""

    def add(function: Callable[..., int]) -> None:
        plain = flat(function)

        @wraps(plain)
        def told(**given: object) -> int:
            try:
                try:
                    return plain(**given)
                finally:
                    sys.stdout.flush()  # raises here if the pipe is closed, not at exit
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for exit's flush
                return _PIPE_CLOSED
            except ValueError as error:
                tell(f"peakmem {name}: {error}", style=BAD, to=sys.stderr)
                return 2

        _app.command(name, cls=Command, rich_help_panel=panel, **settings)(told)

    return add


def estimate(step: Step) -> int:
    """Predict the peak memory of one training step."""
    from peakmem.show.cli.estimate import run_estimate  # here, so that help is quick

    return run_estimate(step)


_command(
    "estimate",
    "Before a training",
    epilog="Exit status: 0 it fits, 1 it doesn't or may not, 2 invalid input. If a config's "
    "activations aren't predicted, 1 means that the model's states alone don't fit.",
)(estimate)
_command("trace", "Before a training", context_settings={"allow_interspersed_args": False})(trace)
_command("snapshot", "After a training")(snapshot)
_command("doctor", "This machine")(doctor)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    0 means that the step fits or the machine is ready, 1 that it doesn't or isn't, 2 that the input
    is invalid, and 141 that the output's reader closed the pipe, as `| head -1` does.
    """
    try:
        return run(_app, "peakmem", arguments)
    except Unreadable as error:
        tell(error.sentence, style=BAD, to=sys.stderr)
        return 2
