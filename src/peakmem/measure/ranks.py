"""Launches real processes, joined by torch.distributed on this machine, and returns their results.

Ranks communicate through gloo on the loopback interface. On Linux, they are forks of a process that
has already imported torch. On Windows and macOS, each rank starts Python and imports torch itself.
"""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Self

from peakmem.core.errors import RankError, RanksTimeout, require_whole
from peakmem.measure import rank_process
from peakmem.measure.rank_handle import Rank
from peakmem.measure.rank_process import Failed, Returned, Work
from peakmem.measure.stillness import Stillness

__all__ = ["RankError", "RanksTimeout", "fork_from_here", "launch", "launch_watched"]

Start = Literal["fork", "forkserver", "spawn"]

_MOST = 64  # ranks; more processes on one machine are a mistake
_JOIN = 120.0  # seconds for all ranks to start
_TICK = 0.2  # seconds between checks for dead ranks
_FOLLOWS = 1.0  # seconds to look for a dead rank after a lost connection
_STILL = 5.0  # seconds without any activity after which ranks count as deadlocked

_start: Start = "forkserver" if sys.platform == "linux" else "spawn"


def fork_from_here() -> None:
    """Make ranks forks of this process from now on.

    The process must have imported torch and run no threads of its own, as the grader's does.
    """
    global _start
    _start = "fork"


def launch(
    function: Callable[..., Any], world_size: int, *args: Any, timeout: float = 60.0
) -> list[Any]:
    """Call `function(*args)` in `world_size` processes at once; return their results by rank.

    torch.distributed is initialized in each process: `dist.get_rank()` is its rank. Arguments and
    results are copies. The function may be defined in a notebook or a script; ranks don't run these
    again.

        def mine(x):
            dist.all_reduce(x)
            return x

        launch(mine, 4, torch.ones(3))

    If one rank fails, all ranks end. Raises RankError for the first rank that raises an exception
    or dies. Raises RanksTimeout, which says where each rank waits, if the ranks haven't returned
    `timeout` seconds after all have joined, or, on Linux, if none of them does anything for 5
    seconds, as when one rank skips a collective. Raises ValueError if `function` isn't callable, or
    if `world_size` isn't from 1 to 64.
    """
    return launch_watched(function, world_size, *args, timeout=timeout)


def launch_watched(
    function: Callable[..., Any],
    world_size: int,
    *args: Any,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
    timeout: float = 60.0,
) -> list[Any]:
    """Launch ranks as `launch` does, with callbacks to inspect them from outside.

    Calls `before()` in this process when all ranks have joined and before any of them calls the
    function, and `after()` when the function has returned in all ranks and before any of them ends.
    Raises what `launch` raises.
    """
    if not callable(function):
        raise ValueError(f"expected a function that each rank calls, but got {function!r}")
    require_whole("world_size", world_size)
    if world_size > _MOST:
        raise ValueError(f"expected world_size from 1 to {_MOST} processes, but got {world_size}")
    with (
        tempfile.TemporaryDirectory(prefix="peakmem-ranks-") as folder,
        _Team(function, args, world_size, timeout, Path(folder)) as team,
    ):
        team.join()
        if before is not None:
            before()
        results = team.results()
        if after is not None:
            after()
        return results


class _Team:
    """All ranks of one launch; the end of the block kills them."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        world_size: int,
        timeout: float,
        folder: Path,
    ) -> None:
        self._timeout = timeout
        self._folder = folder
        self._ranks: list[Rank] = []
        work = Work(function, args) if _start == "fork" else Work.packed(function, args)
        try:
            for number in range(world_size):
                self._begin(number, world_size, work)
        except BaseException:
            self._end_all()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._end_all()

    def _begin(self, number: int, world_size: int, work: Work) -> None:
        context: Any = multiprocessing.get_context(_start)
        if _start == "forkserver":
            context.set_forkserver_preload([rank_process.__name__])
        ours, theirs = context.Pipe()
        others = [ours, *(rank.connection for rank in self._ranks)] if _start == "fork" else []
        process = context.Process(
            target=rank_process.run_rank,
            args=(work, number, world_size, self._folder, theirs, others),
        )
        with theirs, _main_set_aside():
            process.start()
        self._ranks.append(Rank(number, process, ours))

    def _end_all(self) -> None:
        while self._ranks:
            self._ranks.pop().kill()

    def join(self) -> None:
        """Wait until all ranks have joined."""
        deadline = time.monotonic() + _JOIN
        while late := [rank.number for rank in self._ranks if not rank.has_joined]:
            left = deadline - time.monotonic()
            if left <= 0:
                raise RanksTimeout(
                    f"{_ranks(late)} did not join the others within {_JOIN:g} s; is the machine "
                    "busy?",
                    where=dict.fromkeys(late, "starting"),
                )
            self._listen(min(left, _TICK))

    def results(self) -> list[Any]:
        """Let the ranks call the function, and return their results by rank."""
        for rank in self._ranks:
            with suppress(OSError):  # the loop below finds dead ranks
                rank.connection.send_bytes(rank_process.GO)
        still = Stillness()
        deadline = time.monotonic() + self._timeout
        while late := [rank for rank in self._ranks if rank.said is None]:
            if still.seconds([rank.pid for rank in late]) >= _STILL:
                raise self._stuck(late, f"wait{'s' * (len(late) == 1)} forever:")
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._stuck(late, f"did not return within {self._timeout:g} s:")
            self._listen(min(left, _TICK))
        said = [rank.said for rank in self._ranks]
        return [pickle.loads(one.pickled) for one in said if isinstance(one, Returned)]

    def _listen(self, seconds: float) -> None:
        """Receive the ranks' messages. Raises RankError as soon as one rank has failed."""
        talking = [rank.connection for rank in self._ranks if rank.said is None]
        wait([*talking, *(rank.process.sentinel for rank in self._ranks)], seconds)
        for rank in self._ranks:
            rank.listen()
        failed = {r.number: r.said for r in self._ranks if isinstance(r.said, Failed)}
        if not failed:
            return
        # A rank that raised keeps its connections, so no other rank fails because of it. A rank
        # that died lost them.
        first = min(failed, key=lambda number: failed[number].may_follow)
        if failed[first].may_follow:
            self._look_for_the_dead()
        raise _error_of(first, failed[first])

    def _look_for_the_dead(self) -> None:
        """Raise RankError if a rank died; other ranks may notice before the system reports it."""
        deadline = time.monotonic() + _FOLLOWS
        while time.monotonic() < deadline:
            wait([rank.process.sentinel for rank in self._ranks], _TICK)
            for rank in self._ranks:
                rank.listen()

    def _stuck(self, late: Sequence[Rank], how: str) -> RanksTimeout:
        """Return an error that says where each rank that hasn't returned is."""
        where = {rank.number: rank.place() for rank in late}
        lines = [f"{_ranks(list(where))} {how}"]
        for rank in self._ranks:
            said = f"is at {where[rank.number]}" if rank in late else "returned"
            lines.append(f"  rank {rank.number} {said}")
        return RanksTimeout("\n".join(lines), where=where)


@contextmanager
def _main_set_aside() -> Iterator[None]:
    """Keep a new process from running the script again; its work has everything it needs."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _error_of(number: int, failed: Failed) -> RankError:
    # Formatted here, because only the launcher has the source text of a notebook's cells.
    stack = traceback.StackSummary.from_list([(*place, None) for place in failed.stack])
    text = f"rank {number} raised {failed.kind}: {failed.message}"
    lines = "".join(stack.format()).rstrip()
    function = failed.stack[-1][2] if failed.stack else ""
    said = f"{text}\n{lines}" if lines else text
    return RankError(said, rank=number, kind=failed.kind, function=function)


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
