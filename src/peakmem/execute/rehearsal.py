"""Swap schedules run for real: real compute, real copies to a host, and a real clock.

The rules are the simulator's (`peakmem.plan.player`); only the clock differs. A step or copy ends
when its work is done, not after a time that a chain states.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import torch

from peakmem.core.errors import Infeasible
from peakmem.execute.host_memory import Handle, HostTier
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.plan import Copy, Step
from peakmem.plan.player import Player, Stuck
from peakmem.plan.simulator import Simulation
from peakmem.plan.swapping import Run, plan_of, run_of, why_stuck

__all__ = ["Work", "rehearse"]


@dataclass(frozen=True)
class Work:
    """A stage to run: forward returns what it saves, and backward gets it."""

    #: Computes the tensor that backward needs.
    forward: Callable[[], torch.Tensor]
    #: Takes that tensor.
    backward: Callable[[torch.Tensor], object]
    #: Bytes of what `forward` returns.
    saved_bytes: int


def rehearse(
    work: Sequence[Work],
    budget_bytes: int,
    schedule: Iterable[tuple[str, int, int]],
    host: HostTier,
) -> Run:
    """Run the stages under a schedule that swaps what they save to the host and back.

    Times are seconds from the start. Raises Infeasible if compute and link wait for each other, and
    ValueError if the schedule is invalid. Exceptions of the work itself pass through.

    >>> stage = Work(lambda: torch.ones(4), torch.sum, 16)
    >>> [step.kind for step in rehearse([stage], 16, [], HostTier()).steps]
    ['forward', 'backward']
    """
    chain = Chain(tuple(Stage(0, 0, stage.saved_bytes) for stage in work))
    # A plan with copies needs a link speed, but the real clock ignores it.
    plan = plan_of(len(work), budget_bytes, 1.0, schedule)
    clock = RealClock(work, host)
    player = Player(chain, plan, clock)
    try:
        player.play()
        found = Simulation(player.clock.now, player.peak_bytes, tuple(player.events))
    except Stuck as stuck:
        raise Infeasible(why_stuck(stuck.player)) from None
    finally:
        clock.close()
    return run_of(found)


class RealClock:
    """Runs steps and copies in one thread each, and waits until one of them is done."""

    def __init__(self, work: Sequence[Work], host: HostTier) -> None:
        self.work, self.host = work, host
        self.on_device: dict[int, torch.Tensor] = {}
        self.on_host: dict[int, Handle] = {}
        self.compute, self.link = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        # A stream is a queue: on compute's stream, copies would wait for compute.
        self.stream = torch.cuda.Stream() if torch.cuda.is_available() else None  # type: ignore[no-untyped-call]
        self.step: Future[None] | None = None
        self.copy: Future[None] | None = None
        self.began = time.perf_counter()

    @property
    def now(self) -> float:
        """Seconds since the work began."""
        return time.perf_counter() - self.began

    def begin_step(self, step: Step) -> None:
        self.step = self.compute.submit(self._run_step, step)

    def begin_copy(self, copy: Copy) -> None:
        self.copy = self.link.submit(self._make_copy, copy)

    def wait(self) -> tuple[bool, bool]:
        """Wait until the step or the copy is done, and return which; re-raises their errors."""
        under_way = [future for future in (self.step, self.copy) if future is not None]
        done = wait(under_way, return_when=FIRST_COMPLETED).done
        for future in done:
            future.result()
        ended = self.step in done, self.copy in done
        self.step = None if ended[0] else self.step
        self.copy = None if ended[1] else self.copy
        return ended

    def close(self) -> None:
        """Wait for running work, and free everything on the host."""
        self.compute.shutdown()
        self.link.shutdown()
        for handle in self.on_host.values():
            self.host.free(handle)

    def _run_step(self, step: Step) -> None:
        if step.kind == "keep":
            saved = self.on_device[step.stage] = self.work[step.stage].forward()
        else:
            saved = self.on_device.pop(step.stage)
            self.work[step.stage].backward(saved)
        _synchronize(saved)

    def _make_copy(self, copy: Copy) -> None:
        with torch.cuda.stream(self.stream):  # does nothing without a GPU
            self._copy(copy)

    def _copy(self, copy: Copy) -> None:
        if copy.kind == "out":
            self.on_host[copy.stage] = self.host.put(self.on_device.pop(copy.stage))
            return
        handle = self.on_host.pop(copy.stage)
        saved = self.on_device[copy.stage] = self.host.get(handle)
        _synchronize(saved)
        self.host.free(handle)


def _synchronize(tensor: Any) -> None:
    if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()
