"""What all commands share: --json, -q and -v, short names of labs, and errors in one sentence."""

from __future__ import annotations

import contextlib
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
    return typer.Option(*names, help=text, rich_help_panel="What is printed")


@dataclass(frozen=True)
class Output:
    """How much a command prints, and for whom."""

    json: Annotated[bool, _option("One JSON object instead of text.", "--json")] = False
    quiet: Annotated[bool, _option("Problems and remarks only.", "--quiet", "-q")] = False
    verbose: Annotated[
        bool, _option("Whole lists, each submission, tracebacks.", "--verbose", "-v")
    ] = False


def add_command(
    app: typer.Typer, panel: str, function: Callable[..., Report], **settings: Any
) -> None:
    """Add a command with its function's name, its docstring as help, its parameters as options.

    A function that has the parameters `course` or `output` gets those of the command line. What it
    raises is told in one sentence.
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
            return plain(**given, **{key: own[key] for key in wanted})

        prepare()
        # What is printed on the way is no part of the object that a program reads.
        with contextlib.redirect_stdout(sys.stderr if output.json else sys.stdout):
            report = _report(work, name, course, given, verbose=output.verbose)
        return show(report, name, as_json=output.json, quiet=output.quiet)

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
    """Get what this process's children inherit ready, before it starts any."""
    if sys.platform == "linux":
        from autograder.sandbox.host import cgroup, temporary, ulimits

        ulimits.raise_limits()
        temporary.shorten()
        cgroup.claim()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many graders run at once


def _name_labs(given: dict[str, Any], course: Course) -> None:
    """Put the full names of labs in the place of what the command line has, such as `lab01`.

    Raises ValueError, with the labs there are, if one is unknown or may be several.
    """
    one, several = given.get("lab"), given.get("labs")
    if one is None and not several:
        return
    from autograder.grading.registry import lab_named

    if one is not None:
        given["lab"] = lab_named(one, course)
    if several:
        given["labs"] = [lab_named(name, course) for name in several]


def _report(
    work: Callable[[], Report], name: str, course: Course, given: dict[str, Any], *, verbose: bool
) -> Report:
    try:
        if not course.root.is_dir():
            raise NotADirectoryError(
                f"--course {course} is not a folder; expected one with solutions/ and labs/"
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
        from sqlalchemy.exc import OperationalError  # that takes too long where all goes well

        said = "this is a bug in the grader; what is written is kept. Run the same command again"
        if isinstance(error, OperationalError):
            said = f"the gradebook cannot be read or written: {error.orig}"
        else:
            say(traceback.format_exc(), to=sys.stderr)
        return Report(USAGE, problems=(f"autograder {name}: {said}",))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not cut off what is said
        return Report(STOPPED, problems=("\nStopped. The same command goes on from here.",))


def _remedy(out: object, course: Course, error: Exception) -> str:
    """What mends a damaged file of a results folder, or one with something else in its place."""
    from autograder.store.out_folder import OutFolder

    path = None
    if isinstance(error, Damaged):
        path = error.path
    elif isinstance(error, _OUT_OF_PLACE) and isinstance(error.filename, str | os.PathLike):
        path = Path(error.filename)
    if not isinstance(out, OutFolder) or path is None:
        return ""
    if out.resolve().path not in path.absolute().parents:
        return ""
    command = shlex.join(["autograder", *course.command_options, "repair", str(out)])
    return f". `{command}` moves it away and rebuilds what the journal has"
