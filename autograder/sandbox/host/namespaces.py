"""Isolates submissions with bubblewrap, each in its own namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.base.limits import Limits
from autograder.sandbox.host.backend import PROGRAM, Files, Fork, Launch, Place
from autograder.sandbox.host.binds import FILES
from autograder.sandbox.host.enclosure import ProcessEnclosure, demands
from autograder.sandbox.host.isolation import command, lay_out

__all__ = ["Namespaces"]


@dataclass(frozen=True)
class Namespaces:
    """Each submission has its own file system, processes and network, and sees no others."""

    way: Literal["namespaces"] = "namespaces"
    notes: tuple[str, ...] = ()
    #: Killing process 1 of a namespace kills all others in it, so there is no need to wait for it.
    ends_first: bool = False

    def launch(self, hides: Sequence[str], files: Files | None, place: Place) -> Launch:
        if files is not None:
            lay_out(files, place.scratch)
        arguments, environment = command(PROGRAM, hides, place.slot, place.scratch)
        return Launch(arguments, environment, None if files is None else FILES)

    def enclose(
        self, fork: Fork, limits: Limits, place: Place, *, gpu: bool, ranks: bool
    ) -> ProcessEnclosure:
        return ProcessEnclosure(fork(), limits, demands(limits, gpu=gpu, ranks=ranks))
