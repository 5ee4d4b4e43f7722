"""Describes a damaged file of the results folder in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.base.errors import AutograderError

__all__ = ["Damaged", "is_there", "read_json"]


class Damaged(AutograderError, ValueError):
    """A file that the grader wrote is missing, cut off or replaced.

    `path` is where the file belongs. The command line adds the remedy, because only it knows the
    results folder's name as the user typed it.
    """

    def __init__(self, path: Path, why: str, expected: str) -> None:
        super().__init__(f"{path} {why}; expected {expected}")
        self.path = path


def is_there(path: Path) -> bool:
    """Tell whether anything exists at this path, including a folder or a dangling link."""
    return path.is_symlink() or path.exists()


def read_json(path: Path, is_valid: Callable[[Any], bool], expected: str) -> Any:
    """Return the JSON of a file that the grader wrote.

    Raises Damaged if the file can't be read, isn't JSON, or fails `is_valid`.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise Damaged(path, f"can't be read ({error.strerror})", expected) from error
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"is cut off or garbled ({error})", expected) from error
    if not is_valid(data):
        raise Damaged(path, "holds something else, or is of another version", expected)
    return data
