"""Measures and bounds a probe's ranks while they pause: before they start, and at the end.

A probe reports when its ranks pause (`peakmem.probes.ranks`). Each rank is a separate process, so
the grader can set its budget, and count the bytes it has written, from outside. Reports from the
ranks decide nothing: a rank that starts too early, or never, leaves the call in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import sub
from typing import Any

from autograder.base import memory
from autograder.base.traffic import sent_bytes
from autograder.model.task import Budget
from autograder.sandbox.host.budget import Enforced, Footprint, footprint
from autograder.sandbox.host.owned import stopped
from peakmem.measure.traffic import written_bytes
from peakmem.probes import MARK, is_mark

__all__ = ["Baseline", "Gate", "RankBudget"]

_LAUNCHER = Budget(4 * 2**20)  # for the ranks' results, which the launcher holds
# Files that each rank opens in its launcher, and that each rank beyond two opens in the others:
# pipes and connections, including those that later forks inherit.
_FILES_IN_LAUNCHER, _FILES_IN_RANKS = 3, 4
_AFTERWARDS = 2**18  # bytes that closing connections may still send
_AROUND = 1.05  # bytes on the network per byte written, for headers and acknowledgements
_MESSAGES = 2**20  # bytes allowed in addition, for many small messages


class Baseline:
    """Takes the footprint of idle ranks before any student code has run."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.footprint: Footprint | None = None

    def reply(self, _question: Any) -> None:
        """Record the largest footprint of the ranks, which are nearly equal."""
        prints = [footprint(rank) for rank in memory.descendants(self._pid)]
        self.footprint = max(prints, key=lambda one: one.data_bytes)


class RankBudget:
    """A budget for each rank, with the launcher's and a rank's footprints before student code."""

    def __init__(
        self,
        budget: Budget,
        launcher: Footprint,
        rank: Footprint,
        places: Sequence[str],
    ) -> None:
        self._budget, self._launcher, self._rank, self._places = budget, launcher, rank, places

    def enforce(self, launcher: int, ranks: Sequence[int]) -> list[Enforced]:
        """Put all of them under budgets; the launcher's limits what it could hold for its ranks."""
        alone = _with_files(self._launcher, _FILES_IN_LAUNCHER * len(ranks))
        idle = _with_files(self._rank, _FILES_IN_RANKS * max(0, len(ranks) - 2))
        with stopped([launcher, *ranks]):
            held = [Enforced(launcher, _LAUNCHER, alone, self._places, has_ranks=True)]
            return held + [Enforced(rank, self._budget, idle, self._places) for rank in ranks]


def _with_files(prepared: Footprint, count: int) -> Footprint:
    """The footprint with additional open files, which don't count as the notebook's."""
    return replace(prepared, open_files=prepared.open_files + count)


class Gate:
    """Replies to a probe with `world` ranks, which are the children of process `pid`.

    Between the probe's two marks, `rank_sent_bytes` counts the bytes that each rank wrote to files,
    pipes and connections, `rank_held_bytes` the growth of each rank's memory, and `traffic_bytes`
    the bytes that all ranks sent over the submission's own network (None without one). `doubt` says
    why neither these figures nor a budget prove anything.
    """

    def __init__(self, pid: int, world: int, budget: RankBudget | None = None) -> None:
        self._pid, self._world, self._budget = pid, world, budget
        self._steps = iter((("ready", self._ready), ("done", self._done)))
        self._ranks: list[int] = []
        self._held: list[Enforced] = []
        self._written: list[int | None] = []
        self._data: list[int] = []
        self._begun: int | None = None
        self._ended: int | None = None
        self._is_done = False
        self.doubt = ""
        self.rank_sent_bytes: tuple[int, ...] = ()
        self.rank_held_bytes: tuple[int, ...] = ()
        self.traffic_bytes: int | None = None

    def reply(self, question: Any) -> None:
        """Act on a mark. Raises LookupError for any other question, or for too many marks."""
        expected, step = next(self._steps, ("", None))
        if step is None or not is_mark(question) or question[MARK] != expected:
            raise LookupError(f"expected the mark {expected!r} of a probe, but got {question!r}")
        step()

    def _ready(self) -> None:
        self._ranks = memory.descendants(self._pid)
        if len(self._ranks) != self._world:
            self.doubt = _OTHERS
        if self._budget is not None:
            self._held = self._budget.enforce(self._pid, self._ranks)
        self._begun = sent_bytes(self._pid)
        self._written = [written_bytes(rank) for rank in self._ranks]
        self._data = list(map(_data_bytes, self._ranks))

    def _done(self) -> None:
        self._ended = sent_bytes(self._pid)
        if memory.descendants(self._pid) != self._ranks:
            self.doubt = self.doubt or _OTHERS
            return
        written = zip(map(written_bytes, self._ranks), self._written, strict=True)
        sent = [_since(after, before) for after, before in written]
        self.rank_sent_bytes = tuple(each for each in sent if each is not None)
        self.rank_held_bytes = tuple(map(sub, map(_data_bytes, self._ranks), self._data))
        self.traffic_bytes = _since(self._ended, self._begun)
        self._is_done = True
        if (self.traffic_bytes or 0) > _AROUND * sum(self.rank_sent_bytes) + _MESSAGES:
            self.doubt = self.doubt or _UNWRITTEN

    def close(self) -> None:
        """Lift the launcher's budget, and doubt a call that kept sending after its end.

        Raises OSError if the process is gone.
        """
        if self._held:
            self._held[0].lift()  # the launcher's; the ranks have ended
        if not self._is_done:
            self.doubt = self.doubt or _OTHERS
        later = _since(sent_bytes(self._pid), self._ended)
        if later is not None and later > _AFTERWARDS:
            self.doubt = self.doubt or _LATER
        self.doubt = next((one.doubt for one in self._held if one.doubt), self.doubt)


def _data_bytes(pid: int) -> int:
    return memory.status_bytes(pid, "VmData")


def _since(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before


_OTHERS = (
    "This exercise's ranks, and no other processes of your notebook, must run from its beginning "
    "to its end. They didn't. An instructor will look at this."
)
_UNWRITTEN = (
    "Your ranks sent more than torch.distributed wrote for them. An instructor will look at this."
)
_LATER = "Your ranks went on sending after the exercise had ended. An instructor will look at this."
