"""Runs submissions without isolation: for `--insecure`, and to test what isolation prevents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.base.limits import Limits
from autograder.sandbox.host.backend import PROGRAM, Files, Fork, Launch, Place
from autograder.sandbox.host.enclosure import ProcessEnclosure
from autograder.sandbox.host.isolation import lay_out, plain_command

__all__ = ["Unprotected"]


@dataclass(frozen=True)
class Unprotected:
    """Submissions run as the grader itself, and may do whatever it may."""

    way: Literal["nothing"] = "nothing"
    notes: tuple[str, ...] = ()
    ends_first: bool = False

    def launch(self, hides: Sequence[str], files: Files | None, place: Place) -> Launch:
        shown = None if files is None else str(lay_out(files, place.scratch))
        return Launch(*plain_command(PROGRAM), shown)

    def enclose(
        self, fork: Fork, limits: Limits, place: Place, *, gpu: bool, ranks: bool
    ) -> ProcessEnclosure:
        return ProcessEnclosure(fork(), limits, None)
