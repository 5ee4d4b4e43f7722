"""How command lines are parsed: grouped help, hints at similar names, one-sentence errors.

`peakmem` and `autograder` share it, so they look and behave alike.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from peakmem import __version__
from peakmem.core.errors import PeakmemError, did_you_mean
from peakmem.show.cli.help import ALL, help_of

__all__ = ["Command", "Unreadable", "program", "require_command", "run", "version_option"]

_NUMBERS: dict[object, str] = {int: "a whole number", float: "a number"}


@dataclass
class Unreadable(PeakmemError):
    """The command line is invalid."""

    #: The command it names, such as `estimate`; empty if none.
    command: str
    #: One sentence that says what is wrong and where to look.
    sentence: str


def program(about: str, *, epilog: str | None = None) -> typer.Typer:
    """Return a program without commands; its callback must call `require_command`."""
    return typer.Typer(
        cls=_Group,
        help=about,
        epilog=epilog,
        invoke_without_command=True,
        subcommand_metavar="COMMAND",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def version_option(name: str) -> Any:
    """Return the program's option `--version`."""

    def show(wanted: bool) -> None:
        if wanted:
            print(f"{name} {__version__}")
            raise typer.Exit

    return typer.Option("--version", callback=show, is_eager=True, help="Show the version.")


def require_command(context: typer.Context, example: str) -> None:
    """If the command line names no command, list all on standard error and raise BadParameter."""
    if context.invoked_subcommand is None:
        with contextlib.redirect_stdout(sys.stderr):
            print(context.get_help())
        raise typer.BadParameter(f"a command is required, such as `{example}`", context)


def run(app: typer.Typer, name: str, arguments: Sequence[str] | None) -> int:
    """Run one command and return its exit status; 0 if it only printed help.

    `arguments` default to this process's own. Raises Unreadable if they are invalid.
    """
    for word in sys.argv[1:] if arguments is None else arguments:
        if not word or (word.startswith("--") and word.endswith("=")):
            # An empty path is the current folder, and a command would write into it.
            said = "an argument is empty; give its value, or check the shell variable it is from"
            raise Unreadable("", f"{name}: {said}")
    try:
        status = get_command(app).main(arguments, prog_name=name, standalone_mode=False)
    except typer.TyperException as error:
        context: typer.Context | None = getattr(error, "ctx", None)
        command = context.info_name if context and context.parent else None
        path = f"{name} {command}" if command else name
        sentence = f"{path}: {_reason(error)}; see `{path} --help`"
        raise Unreadable(command or "", sentence) from None
    return int(status)


def _reason(error: typer.TyperException) -> str:
    """Say what is wrong with the command line, with the value, and what was expected."""
    parameter = getattr(error, "param", None)
    if near := getattr(error, "possibilities", None):
        given = getattr(error, "option_name", "")
        return f"there is no option {given}{did_you_mean(given, near)}"
    if parameter is None:
        return error.message[:1].lower() + error.message[1:].rstrip(".")
    name = parameter.get_error_hint().replace("'", "")
    if not error.message:
        return f"{name} is required"
    kind = _NUMBERS.get(parameter.type_descriptor.annotation)
    errors = getattr(error.__cause__, "errors", None)  # where Typer's converters keep the value
    if kind is None or errors is None:
        return f"{name}: {error.message}"
    least = "" if parameter.min is None else f" of at least {parameter.min}"
    most = "" if parameter.max is None else f" and at most {parameter.max}"
    return f"expected {name} to be {kind}{least}{most}, but got {errors()[0]['input']!r}"


class _OwnHelp:
    """A command whose help fits a terminal, with an option that unfolds it."""

    _all: Any = None

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)  # type: ignore[misc]
        if self._all is None:  # made once, because the parser compares objects
            self._all = copy.copy(super().get_help_option(ctx))  # type: ignore[misc]
            self._all.name, self._all.opts = "help_all", [ALL]
            self._all.help, self._all.callback = "Show every option.", self._show_all
        return [*parameters, self._all]

    def _show_all(self, context: typer.Context, _option: object, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            print(help_of(self, context, whole=True))
            raise typer.Exit

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_of(self, ctx, whole=False))


class Command(_OwnHelp, TyperCommand):
    """The `cls` of a program's commands."""


class _Group(_OwnHelp, TyperGroup):
    """A program that suggests the nearest command for a misspelt one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {name!r}{did_you_mean(name, self.commands)}")
        return super().resolve_command(ctx, args)
