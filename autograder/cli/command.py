"""What all commands share: --json, -q and -v, short names of labs, one-sentence errors."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from autograder.base.course import Course
from autograder.base.damage import Damaged
from autograder.base.terminal import say
from autograder.cli.report import STATUSES, STOPPED, USAGE, Report, show
from peakmem.show.cli.parameters import flat, options_of, taking
from peakmem.show.cli.program import Command

__all__ = ["Output", "add_command", "prepare"]

_OUT_OF_PLACE = (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Output")


@dataclass(frozen=True)
class Output:
    """How much a command prints, and in which form."""

    json: Annotated[bool, _option("Print one JSON object instead of text.", "--json")] = False
    quiet: Annotated[bool, _option("Print only problems and remarks.", "--quiet", "-q")] = False
    verbose: Annotated[
        bool, _option("Print full lists, each submission, and tracebacks.", "--verbose", "-v")
    ] = False


def add_command(
    app: typer.Typer, panel: str, function: Callable[..., Report], **settings: Any
) -> None:
    """Add a command: the function's name, its docstring as help, its parameters as options.

    The parameters `course` and `output`, if the function has them, come from the command line. An
    exception becomes one sentence.
    """
    name, plain = function.__name__, flat(function, "course", "output")
    wanted = {"course", "output"} & set(signature(function).parameters)

    @wraps(plain)
    def told(**given: Any) -> int:
        course: Course = given.pop("context").obj
        output = Output(**{option.name: given.pop(option.name) for option in options_of(Output)})
        own = {"course": course, "output": output}

        def work() -> Report:
            _name_labs(given, course)
            _require_places(given)
            return plain(**given, **{key: own[key] for key in wanted})

        prepare()
        # Messages printed on the way must not mix with the JSON object.
        with contextlib.redirect_stdout(sys.stderr if output.json else sys.stdout):
            report = _report(work, name, course, given, verbose=output.verbose)
        return show(report, name, as_json=output.json, quiet=output.quiet, verbose=output.verbose)

    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    command = taking(told, [context, *signature(plain).parameters.values(), *options_of(Output)])
    add = app.command(
        name,
        cls=settings.pop("cls", Command),
        epilog=STATUSES,
        rich_help_panel=panel,
        **settings,
    )
    add(command)


def prepare() -> None:
    """Set up what child processes inherit, before any starts."""
    if sys.platform == "linux":
        from autograder.sandbox.host import cgroup, temporary, ulimits

        ulimits.raise_limits()
        temporary.shorten()
        cgroup.claim()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many graders run at once


def _name_labs(given: dict[str, Any], course: Course) -> None:
    """Replace short names of labs, such as `lab01`, with full names.

    Raises ValueError, which lists all labs, if a name is unknown or ambiguous.
    """
    one, several = given.get("lab"), given.get("labs")
    if one is None and not several:
        return
    from autograder.grading.registry import lab_named

    if one is not None:
        given["lab"] = lab_named(one, course)
    if several:
        given["labs"] = [lab_named(name, course) for name in several]


def _require_places(given: dict[str, Any]) -> None:
    """Raise ValueError, before minutes of work, if what a command makes can't be written."""
    from autograder.cli.checks import require_writable

    folder, file = given.get("to"), given.get("zip_file")
    if folder is not None:
        require_writable(folder, "DIR")
    if file is not None:
        require_writable(file.parent, "ZIP")
        if file.is_dir():
            raise ValueError(f"{file} is a folder; give the name of a file, such as {file}/lab.zip")


def _report(
    work: Callable[[], Report], name: str, course: Course, given: dict[str, Any], *, verbose: bool
) -> Report:
    try:
        if not course.root.is_dir():
            raise NotADirectoryError(
                f"--course {course} is not a folder; expected a folder with solutions/ and labs/"
            )
        return work()
    except (ValueError, OSError, RuntimeError) as error:
        if isinstance(error, typer.Exit | typer.Abort):
            raise
        if verbose:
            say(traceback.format_exc(), to=sys.stderr)
        said = f"{error}{_remedy(given.get('out'), course, error)}"
        return Report(USAGE, problems=(f"autograder {name}: {said}",))
    except Exception as error:
        from sqlalchemy.exc import OperationalError  # here, because the import is slow

        said = "this is a bug in the grader. Written results are kept; run the same command again"
        if isinstance(error, OperationalError):
            said = f"the gradebook can't be read or written: {error.orig}"
            said += next((f". {r}" for what, r in _OF_DATABASES.items() if what in said), "")
        else:
            say(traceback.format_exc(), to=sys.stderr)
        return Report(USAGE, problems=(f"autograder {name}: {said}",))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not cut off the message
        return Report(STOPPED, problems=("\nStopped. Run the same command again to continue.",))


_AGAIN = "run the same command again: it continues where it stopped"
_NO_SPACE = f"Free some space on the disk, and {_AGAIN}"
_NOT_OURS = f"Let this user read and write it, or use the user who made it, and {_AGAIN}"
_OF_ERRORS = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EROFS: f"Mount its disk so that it can be written, and {_AGAIN}",
}
_OF_DATABASES = {  # SQLite's words
    "disk is full": _NO_SPACE,
    "readonly database": _NOT_OURS,
}


def _remedy(out: object, course: Course, error: Exception) -> str:
    """The remedy for an error of the disk, or for a damaged or replaced file; empty for others."""
    from autograder.store.out_folder import OutFolder

    if isinstance(error, OSError) and error.errno in _OF_ERRORS:
        return f". {_OF_ERRORS[error.errno]}"
    path = None
    if isinstance(error, Damaged):
        path = error.path
    elif isinstance(error, _OUT_OF_PLACE) and isinstance(error.filename, str | os.PathLike):
        path = Path(error.filename)
    if (
        not isinstance(out, OutFolder)
        or path is None
        or out.resolve().path not in path.absolute().parents
    ):
        return f". {_NOT_OURS}" if isinstance(error, PermissionError) else ""
    command = shlex.join(["autograder", *course.command_options, "repair", str(out)])
    return f". `{command}` moves it aside and rebuilds it from the journal"
