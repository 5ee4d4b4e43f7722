"""Charges a student's processes for their time, unaffected by how busy the machine is.

Wall time depends on the machine's load. So processes are charged for the time in which they compute
or sleep, and for the grader's computing on their messages. Waiting for a processor or a disk is
free. A request that the machine delays for too long is abandoned too, but isn't judged.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from autograder.base.limits import Allowance, MachineBusy, ProcessLost
from autograder.base.proc import proc_text, stat_fields

__all__ = ["GRACE", "Processes", "Stopwatch", "Turn", "grader", "look_at"]

GRACE = 2.0  # seconds from the soft time limit (an exception inside) to the kill from outside
_PATIENCE = 10  # wall seconds for each second that a request may be charged
_TICK = 0.05  # seconds between checks of the processes
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_NANOSECONDS = 1e9
_TELLS = Path("/proc/self/schedstat").exists()  # whether the kernel reports time spent waiting


@dataclass(frozen=True)
class Processes:
    """The state of a process and all its descendants at one moment."""

    #: CPU seconds by process, ended threads included.
    computed: Mapping[int, float] = field(default_factory=dict)
    #: CPU seconds of children that have been waited for.
    reaped: float = 0.0
    #: By thread, the seconds in which it was ready to run but had no processor; None if the kernel
    #: doesn't report them.
    waited: Mapping[int, float] | None = field(default_factory=dict)
    #: Whether every thread sleeps voluntarily.
    asleep: bool = True
    #: Whether a thread waits for a disk.
    on_disk: bool = False


def look_at(pid: int) -> Processes:
    """Return the state of the process `pid` and its descendants; empty if it is gone.

    Without /proc/PID/schedstat (CONFIG_SCHED_INFO) the system doesn't report waiting times.
    """
    computed: dict[int, float] = {}
    waited: dict[int, float] = {}
    reaped, states = 0.0, ""
    unseen = [pid]
    while unseen:
        process = unseen.pop()
        with suppress(OSError):  # it has just ended
            ticks = stat_fields(f"/proc/{process}")[11:15]
            times = [int(count) / _TICKS_A_SECOND for count in ticks]
            computed[process] = times[0] + times[1]
            reaped += times[2] + times[3]
            with os.scandir(f"/proc/{process}/task") as threads:
                homes = {int(thread.name): thread.path for thread in threads}
            for thread, home in homes.items():
                with suppress(OSError):
                    children = proc_text(f"{home}/children").split()
                    unseen += map(int, children)
                    states += _state(home, has_children=bool(children))
                    if _TELLS:
                        waited[thread] = _waited(home)
    asleep = not set(states) & {"R", "D"}
    return Processes(computed, reaped, waited if _TELLS else None, asleep, "D" in states)


def grader() -> tuple[float, float]:
    """Return this thread's CPU seconds and the seconds that it waited for a processor."""
    return time.thread_time(), _waited("/proc/thread-self") if _TELLS else 0.0


class Stopwatch:
    """Measures the seconds charged to a process and its descendants since its creation.

    `charged` is the greater of two sums: the CPU seconds of all processes and the grader, and the
    wall time minus the time in which any of them waited for the machine. The caller adds the
    grader's CPU seconds that aren't charged to `at_our_cost`.
    """

    def __init__(
        self,
        pid: int,
        look: Callable[[int], Processes] = look_at,
        now: Callable[[], float] = time.monotonic,
        grader: Callable[[], tuple[float, float]] = grader,
    ) -> None:
        self._pid, self._look, self._now, self._grader = pid, look, now, grader
        self._begun, self._grader_begun = now(), grader()
        self._seen, self._seen_at = look(pid), self._begun
        self._computed = self._excused = 0.0
        self.charged = self.at_our_cost = 0.0

    @property
    def by_the_clock(self) -> float:
        """Wall seconds since this stopwatch was created."""
        return self._now() - self._begun

    def read(self) -> float:
        """Return the seconds charged so far."""
        before, after = self._seen, self._look(self._pid)
        now, (computed, waited) = self._now(), self._grader()
        elapsed = now - self._seen_at
        self._seen, self._seen_at = after, now
        self._computed += _computed_between(before, after)
        if after.waited is None or before.waited is None or before.on_disk or after.on_disk:
            self._excused += elapsed
        else:
            self._excused += _risen(before.waited, after.waited)
        computed += self._computed - self._grader_begun[0] - self.at_our_cost
        waited += self._excused - self._grader_begun[1]
        # The kernel doesn't report how long a currently waiting thread has waited.
        not_waited = now - self._begun - waited if after.asleep else 0.0
        self.charged = max(self.charged, computed, not_waited)
        return self.charged


class Turn:
    """The time of one request, of which `seconds` may be charged; `left` is the submission's time.

    When they are used up, the process gets SIGALRM, which the guest turns into an exception. A
    process that ignores the signal is lost. `handle` is a pidfd of the process.
    """

    def __init__(
        self, pid: int, handle: int, seconds: float, left: Allowance, watch: Stopwatch | None = None
    ) -> None:
        self._watch = watch or Stopwatch(pid)
        self._handle = handle
        self._seconds = seconds
        self._left = left
        self._next = _TICK
        self._told = False

    def look(self) -> None:
        """Check the clock, at most once a tick. Raises ProcessLost if the time is over."""
        waited = self._watch.by_the_clock
        if waited < self._next:
            return
        self._next = waited + _TICK
        self._charge()
        charged = self._watch.charged
        over = f"Your code ran for over {self._seconds:g} s and was stopped."
        if charged >= self._seconds + GRACE:
            raise ProcessLost(over)
        if charged >= self._seconds and not self._told:
            self._told = True
            with suppress(ProcessLookupError, PermissionError):  # as root without CAP_KILL
                signal.pidfd_send_signal(self._handle, signal.SIGALRM)
        if waited >= _PATIENCE * (self._seconds + GRACE):
            if self._told:
                raise ProcessLost(over)
            raise MachineBusy(
                f"The machine was too busy to judge this: in {waited:.0f} s your code got to run "
                f"for {charged:.1f} of its {self._seconds:g} s."
            )

    @contextmanager
    def at_our_cost(self) -> Iterator[None]:
        """Don't charge the grader's computing in this block; it depends on how often it checks."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self._watch.at_our_cost += time.thread_time() - begun

    def end(self) -> None:
        """Charge the time since the last check."""
        if self._next == _TICK:  # the request was too short for a check
            self._left.use(min(self._watch.by_the_clock, _TICK))
        else:
            self._charge()

    def _charge(self) -> None:
        before = self._watch.charged
        self._left.use(self._watch.read() - before)


def _computed_between(before: Processes, after: Processes) -> float:
    """CPU seconds between two states, as the better of two lower bounds.

    A comparison process by process misses the CPU time of a child that ended meanwhile. A
    comparison of totals includes it once the parent has waited for the child, but a child that
    nobody waits for takes its earlier seconds away.
    """
    total = sum(after.computed.values()) + after.reaped
    total -= sum(before.computed.values()) + before.reaped
    return max(_risen(before.computed, after.computed), total)


def _risen(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    return sum(max(0.0, now - before.get(name, 0.0)) for name, now in after.items())


def _state(home: str, *, has_children: bool) -> str:
    """A thread's state as proc(5) lists it; one that waits for a child of its own sleeps (S).

    vfork leaves a parent in the disk-wait state (D) until its child ends, which student code can
    delay forever.
    """
    state = stat_fields(home)[0]
    return "S" if state == "D" and has_children else state


def _waited(home: str) -> float:
    return int(proc_text(f"{home}/schedstat").split()[1]) / _NANOSECONDS
