"""A swap schedule played for real: real compute, real copies to a host, a real clock.

It keeps the rules of `peakmem.swapping.simulate`: one thread computes, another is the link. What
differs is that nobody says how long anything takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from peakmem.errors import Infeasible
from peakmem.swapping import Run, Span, step_name
from peakmem.tiers import Handle, HostTier

__all__ = ["Work", "rehearse"]


@dataclass(frozen=True)
class Work:
    """A stage to be run: forward makes what is saved, backward takes it."""

    forward: Callable[[], torch.Tensor]
    backward: Callable[[torch.Tensor], object]
    saved_bytes: int


def rehearse(
    work: Sequence[Work],
    budget_bytes: int,
    schedule: Iterable[tuple[str, int, int]],
    host: HostTier,
) -> Run:
    """Run the stages under a schedule, with what they save on the device or on the host.

    Times are seconds from the start. Raises Infeasible where compute and link wait for each other,
    and whatever the work raises.

    >>> stage = Work(lambda: torch.ones(4), torch.sum, 16)
    >>> [step.kind for step in rehearse([stage], 16, [], HostTier()).steps]
    ['forward', 'backward']
    """
    stage = _Rehearsal(work, budget_bytes, host)
    link = threading.Thread(target=stage.run_link, args=(list(schedule),), daemon=True)
    link.start()
    try:
        stage.run_steps()
    finally:
        stage.end()
        link.join()
        stage.free_all()
    if stage.error is not None:
        raise stage.error
    return Run(stage.steps[-1].end, stage.peak_bytes, tuple(stage.steps), tuple(stage.copies))


class _Rehearsal:
    def __init__(self, work: Sequence[Work], budget_bytes: int, host: HostTier) -> None:
        self.work, self.budget_bytes, self.host = work, budget_bytes, host
        self.on_device: dict[int, torch.Tensor] = {}  # not in use
        self.taken: dict[int, torch.Tensor] = {}  # by a step or a copy that begins
        self.on_host: dict[int, Handle] = {}
        self.used_bytes = self.peak_bytes = self.steps_done = 0
        self.steps: list[Span] = []
        self.copies: list[Span] = []
        self.error: BaseException | None = None
        self.began = time.perf_counter()
        self.changed = threading.Condition()
        self.link_waits = self.link_ended = self.over = False

    def run_steps(self) -> None:
        n = len(self.work)
        for step in range(2 * n):
            kind, i = ("forward", step) if step < n else ("backward", 2 * n - 1 - step)
            name = step_name(step, n)
            if kind == "forward":
                self._wait("compute", name, lambda i=i: self._takes(i))  # type: ignore[misc]
                start = self._now()
                saved = self.work[i].forward()
            else:
                self._wait("compute", name, lambda i=i: self._fetches(i))  # type: ignore[misc]
                saved = self.taken.pop(i)
                start = self._now()
                self.work[i].backward(saved)
            self._synchronize(saved)
            self.steps.append(Span(kind, i, start, self._now()))
            with self.changed:
                if kind == "forward":
                    self.on_device[i] = saved
                else:
                    self.used_bytes -= self.work[i].saved_bytes
                del saved
                self._tell(done=1)

    def run_link(self, schedule: list[tuple[str, int, int]]) -> None:
        try:
            for kind, i, after in schedule:
                self._wait("link", kind, lambda k=kind, i=i, a=after: self._may(k, i, a))  # type: ignore[misc]
                if self.over:
                    return
                start = self._now()
                if kind == "out":
                    self.on_host[i] = self.host.put(self.taken.pop(i))
                else:
                    handle = self.on_host.pop(i)
                    saved = self.host.get(handle)
                    self._synchronize(saved)
                    self.host.free(handle)
                self.copies.append(Span(kind, i, start, self._now()))
                with self.changed:
                    if kind == "out":
                        self.used_bytes -= self.work[i].saved_bytes
                    else:
                        self.on_device[i] = saved
                        del saved
                    self._tell()
        except BaseException as error:
            self.error = error
        finally:
            with self.changed:
                self.link_ended = True
                self.changed.notify_all()

    def end(self) -> None:
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def free_all(self) -> None:
        for handle in self.on_host.values():
            self.host.free(handle)

    def _wait(self, who: str, name: str, ready: Callable[[], bool]) -> None:
        """Wait until `ready`, which takes what it found free; Infeasible if it can never be."""
        with self.changed:
            while not (self.over and who == "link") and not ready():
                if self.error is not None:
                    raise self.error
                if who == "link":
                    self.link_waits = True
                elif self.link_waits or self.link_ended:
                    raise Infeasible(
                        f"{name} waits for ever: the link has nothing that it could do. Let "
                        "simulate() play this schedule, it says what is missing"
                    )
                self.changed.notify_all()
                self.changed.wait()
            if who == "link":
                self.link_waits = False

    def _tell(self, done: int = 0) -> None:
        """Let whoever waits look again; the lock is held."""
        self.steps_done += done
        self.link_waits = False
        self.changed.notify_all()

    def _takes(self, i: int) -> bool:
        if self.used_bytes + self.work[i].saved_bytes > self.budget_bytes:
            return False
        self.used_bytes += self.work[i].saved_bytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return True

    def _fetches(self, i: int) -> bool:
        """Take what a stage saved, so that the other thread does not; the lock is held."""
        if i not in self.on_device:
            return False
        self.taken[i] = self.on_device.pop(i)
        return True

    def _may(self, kind: str, i: int, after: int) -> bool:
        if self.steps_done <= after:
            return False
        if kind == "out":
            return self._fetches(i)
        return i in self.on_host and self._takes(i)

    def _now(self) -> float:
        return time.perf_counter() - self.began

    def _synchronize(self, tensor: Any) -> None:
        if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
            torch.cuda.current_stream(tensor.device).synchronize()
