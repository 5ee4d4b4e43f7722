"""The command `autograder`: build the labs, grade a class, check that nobody was lost."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.commands import building, grading, reviewing, trying
from autograder.commands.common import USAGE
from autograder.questions import COURSE

__all__ = ["main"]

_COMMANDS = (
    building.add_build,
    grading.add_grade,
    grading.add_regrade,
    reviewing.add_rejudge,
    reviewing.add_explain,
    reviewing.add_export,
    reviewing.add_audit,
    trying.add_bank,
    trying.add_sample,
    trying.add_demo,
    building.add_release,
    trying.add_doctor,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 where it found a problem, or 2 for what it cannot take."""
    options = parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many graders run at once
    try:
        status: int = options.run(options)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"autograder {options.command}: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130
    return status


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; `run` is what a command does with its options."""
    whole = argparse.ArgumentParser(prog="autograder", description=__doc__)
    whole.add_argument(
        "--course",
        type=Path,
        default=COURSE,
        metavar="DIR",
        help="the course's folder, with solutions/ and labs/ in it (default: this one)",
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in _COMMANDS:
        add(commands)
    return whole
