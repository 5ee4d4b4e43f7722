"""The program `peakmem`: its commands and exit statuses."""

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
from peakmem.show.cli.trace import trace

__all__ = ["main"]

_PIPE_CLOSED = 141  # a shell's exit status for a command ended by a closed pipe

_app = program("What a training step takes, and what this machine can run.")


@_app.callback()
def _any_command(
    context: typer.Context, version: Annotated[bool, version_option("peakmem")] = False
) -> None:
    require_command(context, "estimate")


def _command(name: str, panel: str, **settings: Any) -> Callable[..., None]:
    """Add a command; its function returns the exit status, and raises ValueError on bad input."""

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
                print(f"peakmem {name}: {error}", file=sys.stderr)
                return 2

        _app.command(name, cls=Command, rich_help_panel=panel, **settings)(told)

    return add


def estimate(step: Step) -> int:
    """Predict one training step's peak memory."""
    from peakmem.show.cli.estimate import run_estimate  # late, so that help is quick

    return run_estimate(step)


_command(
    "estimate",
    "Before a training",
    epilog="The exit status is 0 if the step fits, 1 if not, and 2 for wrong input. Of a config "
    "whose activations are not predicted it is 1 only if the model's states alone are too large.",
)(estimate)
_command("trace", "Before a training", context_settings={"allow_interspersed_args": False})(trace)
_command("snapshot", "After a training")(snapshot)
_command("doctor", "This machine")(doctor)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    0 says that the step fits or the machine is ready, 1 that it is not so, 2 that the input has
    something to mend, and 141 that the reader of the output went away, as `| head -1` does.
    """
    try:
        return run(_app, "peakmem", arguments)
    except Unreadable as error:
        print(error.sentence, file=sys.stderr)
        return 2
