"""What a command found, as data; the one place that prints it, as text or as JSON.

With `--json`, standard output has one JSON object and nothing else. All commands' have `command`,
`schema`, `status`, `problems`, `remarks` and `paths`; docs/instructors.md says what else each has.
Remarks and problems go to standard error either way.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.base.terminal import say, shown
from peakmem.show.cli.colour import BAD, paint

__all__ = ["OK", "PROBLEM", "SCHEMA", "STATUSES", "STOPPED", "USAGE", "Report", "found", "show"]

OK, PROBLEM, USAGE, STOPPED = 0, 1, 2, 130
SCHEMA = 2  # goes up when a key changes its meaning or goes; new keys may come at any time
STATUSES = """\
exit status:
  0    all is well
  1    done, but with a problem, which standard error names
  2    not done: the command line or what it names is wrong; stderr says why
  130  stopped by Ctrl-C; the same command goes on from there"""


@dataclass(frozen=True)
class Report:
    """What a command came to."""

    #: The exit status.
    status: int = OK
    #: What is printed for people.
    text: str = ""
    #: The same and more for a program, as plain data.
    data: Mapping[str, Any] = field(default_factory=dict)
    #: Sentences that change nothing about the status.
    remarks: Sequence[str] = ()
    #: Sentences that do.
    problems: Sequence[str] = ()
    #: What the command wrote, by name.
    paths: Mapping[str, Path] = field(default_factory=dict)


def found(problems: Sequence[str], **rest: Any) -> Report:
    """Return the report of a command that did its work and found these problems, or none."""
    return Report(PROBLEM if problems else OK, problems=problems, **rest)


def show(report: Report, command: str, *, as_json: bool, quiet: bool = False) -> int:
    """Print the report, without its text if `quiet`; return its exit status."""
    try:
        if as_json or not quiet:
            _print(report, command, as_json=as_json)
    except BrokenPipeError:  # who reads it, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    say(*report.remarks, to=sys.stderr)
    for problem in report.problems:
        paint(shown(problem), BAD, sys.stderr)
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
        say(json.dumps(data, indent=1, allow_nan=False))
    elif report.text:
        say(report.text)
