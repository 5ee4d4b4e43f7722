"""A command's report as data, and the one place that prints it as text or JSON.

With `--json`, standard output has exactly one JSON object. Every command's object has `command`,
`schema`, `status`, `problems`, `remarks` and `paths`; docs/instructors.md lists the other keys.
Remarks and problems always go to standard error, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.base.terminal import say, say_json, shown
from peakmem.show.cli.terminal import BAD, tell

__all__ = ["OK", "PROBLEM", "SCHEMA", "STATUSES", "STOPPED", "USAGE", "Report", "found", "show"]

OK, PROBLEM, USAGE, STOPPED = 0, 1, 2, 130
SCHEMA = 2  # rises when a key changes meaning or disappears; new keys may appear at any time
_PROBLEMS = 12  # printed without --verbose, so that what comes before them stays on the screen
STATUSES = "Exit status: 0 all is well, 1 a problem (see stderr), 2 not done, 130 Ctrl-C."


@dataclass(frozen=True)
class Report:
    """The outcome of a command."""

    #: The exit status.
    status: int = OK
    #: The printed text.
    text: str = ""
    #: The same and more as plain data, for programs.
    data: Mapping[str, Any] = field(default_factory=dict)
    #: Sentences that don't affect the status.
    remarks: Sequence[str] = ()
    #: Sentences that make the status 1 or higher.
    problems: Sequence[str] = ()
    #: Files and folders that the command wrote, by name.
    paths: Mapping[str, Path] = field(default_factory=dict)


def found(problems: Sequence[str], **rest: Any) -> Report:
    """Return the report of a completed command; its status depends on the problems."""
    return Report(PROBLEM if problems else OK, problems=problems, **rest)


def show(
    report: Report, command: str, *, as_json: bool, quiet: bool = False, verbose: bool = False
) -> int:
    """Print the report, without its text if `quiet`; return its exit status.

    Of many problems the first are printed, unless `verbose`.
    """
    try:
        if as_json or not quiet:
            _print(report, command, as_json=as_json)
    except BrokenPipeError:  # its reader, such as `head`, has stopped
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    say(*report.remarks, to=sys.stderr)
    problems = list(report.problems)
    if not verbose and len(problems) > _PROBLEMS:
        problems[_PROBLEMS:] = [f"... and {len(problems) - _PROBLEMS} more; --verbose shows all"]
    for problem in problems:
        tell(shown(problem), style=BAD, to=sys.stderr)
    return report.status


def _print(report: Report, command: str, *, as_json: bool) -> None:
    if as_json:
        data = {
            "command": command,
            "schema": SCHEMA,
            "status": report.status,
            "problems": list(report.problems),
            "remarks": list(report.remarks),
            "paths": {name: str(path) for name, path in report.paths.items()},
            **report.data,
        }
        say_json(data)
    elif report.text:
        say(report.text)
