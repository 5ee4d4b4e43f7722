"""Controls one submission's process in the sandbox from the trusted side: runs cells and probes.

Long because every exchange with a process, measured or not, goes through this one class.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from autograder.base.limits import Allowance, Limits, MachineBusy, ProcessLost
from autograder.base.memory import Watch
from autograder.model.task import Answer, Budget
from autograder.sandbox.guest.wire import ConnectionClosed, send
from autograder.sandbox.host.backend import Enclosure
from autograder.sandbox.host.budget import Enforced, Footprint, footprint
from autograder.sandbox.host.call import Call
from autograder.sandbox.host.cgroup import Cgroup, enclosed
from autograder.sandbox.host.conversation import Conversation, Replies, meet_process
from autograder.sandbox.host.in_process import Ask
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.overseer import Overseer, measuring
from autograder.sandbox.host.owned import stopped
from autograder.sandbox.host.raised import explained, three_texts
from autograder.sandbox.host.rank_gate import Baseline, Gate, RankBudget

__all__ = ["NO_BUDGETS", "SandboxStudent"]

_END = 30.0  # seconds allowed for killing
_TRIAL_BYTES = 16 * 2**20
_KERNEL_BYTES = 256 * 2**20  # a control group's share for memory that no process maps


class SandboxStudent:
    """A student whose code runs in the sandbox. Everything it sends is a claim, not a fact.

    Its process may take a while to start. Call `meet()` first, which waits for it, or `leave()` to
    give up before it connects.
    """

    def __init__(self, enclosure: Enclosure, limits: Limits, *, measured: bool) -> None:
        self._overseer: Overseer | None = None
        self._enclosure = enclosure
        self._limits = limits
        self._measured = measured
        self._ranks = bool(enclosure.demands and enclosure.demands["ranks"])
        if enclosure.demands is not None:
            with contextlib.suppress(ConnectionClosed):  # `meet` reports it
                send(enclosure.connection, enclosure.demands)

    def meet(self) -> None:
        """Wait for the process, and start watching it. Raises OSError if it doesn't connect."""
        enclosure = self._enclosure
        met = meet_process(enclosure.connection)
        self._pid = met.pid
        self._handle = os.pidfd_open(self._pid)
        watch = enclosure.meet(self._pid, self._handle)
        if met.listener is not None:
            self._overseer = Overseer(met.listener, enclosure.kill)
        self._cgroup = self._enclosed(watch)
        self._conversation = Conversation(
            enclosure.connection,
            pid=self._pid,
            handle=self._handle,
            limits=self._limits,
            watch=watch,
            cgroup=self._cgroup,
            kill=enclosure.kill,
        )
        self._budgets_hold = self._measured and self._tries_a_budget()

    def _enclosed(self, watch: Watch) -> Cgroup | None:
        """A control group around the process, with room for all that the other limits allow."""
        if self._enclosure.demands is None:
            return None
        limits = self._limits
        room = watch.start_bytes + limits.tmp_bytes + limits.shm_bytes + _KERNEL_BYTES
        return enclosed(self._pid, limits.memory_bytes + room, limits.processes)

    def _tries_a_budget(self) -> bool:
        """Whether the kernel enforces a budget on this process, tried before student code runs."""
        if self._enclosure.demands is not None and self._overseer is None:
            return False
        try:
            if self._ranks:
                self._prepared_rank = self._ranks_alone()
            self._settle(shut=True)
            self._prepared = footprint(self._pid)
            enforced = Enforced(self._pid, Budget(_TRIAL_BYTES), self._prepared)
            reply = self._settle(2 * _TRIAL_BYTES, shut=True)
            enforced.lift()
            self._settle(shut=False)
        except (OSError, ProcessLost):
            return False
        return reply.get("had") is False

    def _ranks_alone(self) -> Footprint:
        """The footprint of an idle rank. Raises ProcessLost if no rank can be started."""
        baseline = Baseline(self._pid)
        call = Call(
            probe="peakmem.probes.ranks:idle",
            inputs={"world": 2},
            ask=None,
            seconds=self._limits.cell_seconds,
            state="",
        )
        self._request(call.request(), call.seconds, Replies(baseline.reply))
        if baseline.footprint is None:
            raise ProcessLost("no rank could be started")
        return baseline.footprint

    def leave(self) -> None:
        """Give up on the process before it connects; it ends by itself once its socket closes."""
        self._enclosure.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def is_lost(self) -> bool:
        """Whether the process has ended or was abandoned."""
        return self._conversation.lost is not None

    @property
    def budgets_hold(self) -> bool:
        """Whether the kernel enforced a memory budget on this process when it was tried."""
        return self._budgets_hold

    def share(self, left: Allowance) -> None:
        """Draw from the allowance `left` instead of an allowance of this process's own."""
        self._conversation.left = left

    def place(self, files: Mapping[str, bytes]) -> None:
        """Write files, by relative path, into the working directory, before any code runs.

        Existing files aren't replaced. Raises IsolationError if the files can't be written.
        """
        for path, data in files.items():
            try:
                self._request({"file": path, "data": data})
            except ProcessLost as error:  # no student code has run yet
                raise IsolationError(f"{path} couldn't be written: {error}") from None

    def run_cell(
        self,
        source: str,
        keep: Mapping[str, Sequence[str]] | None = None,
        *,
        watched: bool = False,
    ) -> list[dict[str, Any]]:
        """Run one cell and return its outputs as sent. Raises ProcessLost if the process is lost.

        `keep` maps names of states to variables. Each state keeps its variables as they are after
        this cell, unless an earlier cell has set them in it. A `watched` cell is compiled so that
        its conversions can be refused.
        """
        reply = self._request({"cell": source, "keep": dict(keep or {}), "watched": watched})
        outputs = reply.get("outputs")
        return outputs if isinstance(outputs, list) else []

    def run(
        self,
        probe: str,
        inputs: Mapping[str, Any],
        ask: Ask | None = None,
        *,
        seconds: float | None = None,
        budget: Budget | None = None,
        state: str = "",
        ranks: int = 0,
    ) -> Answer:
        """Run a probe and return its answer; if the process is lost, the answer is lost.

        With a `budget` the kernel refuses the call memory beyond it. A refused call is then
        repeated, metered and without a budget, so that the judge can name the mistake. `state` is
        the kept state that provides the notebook's names. If the probe starts `ranks`, each of them
        is under the budget, and their traffic is counted.
        """
        call = Call(
            probe=probe,
            inputs=inputs,
            ask=ask,
            seconds=seconds or self._limits.cell_seconds,
            state=state,
            ranks=ranks,
        )
        if budget is None:
            return self._run(call)[0]
        if not self._budgets_hold:
            answer, _ = self._run(call)
            return replace(answer, doubt=answer.doubt or NO_BUDGETS)
        answer, refused, doubt = self._run_within(budget, call)
        if refused:
            metered, _ = self._run(call)
            return replace(metered, memory="refused")
        if answer.lost is not None:
            return answer  # neither is visible in it
        raised = answer.raised and explained(*answer.raised)
        return replace(answer, raised=raised, memory="within", doubt=doubt)

    def _run_within(self, budget: Budget, call: Call) -> tuple[Answer, bool, str]:
        """Run a probe under a budget; return the answer, whether memory was refused, any doubt."""
        try:
            self._settle(shut=True)
            bare = replace(call, inputs={**call.inputs, "metered": False})
            run = self._run_ranks_under if call.ranks else self._run_under
            answer, refused, doubt = run(budget, bare)
            if not self.is_lost:
                # Any other message sent meanwhile doesn't match this request, and loses the
                # process.
                self._settle(shut=False)
            return answer, refused, doubt
        except ProcessLost as error:
            return Answer(lost=str(error), busy=isinstance(error, MachineBusy)), False, ""
        except OSError:
            return Answer(lost=str(self._conversation.give_up(ProcessLost(_GONE)))), False, ""

    def _run_under(self, budget: Budget, call: Call) -> tuple[Answer, bool, str]:
        with measuring(self._overseer):
            with stopped([self._pid]):
                enforced = Enforced(self._pid, budget, self._prepared, self._enclosure.places())
            answer, refused = self._run(call)
            if not self.is_lost:
                enforced.lift()
        return answer, refused, enforced.doubt

    def _run_ranks_under(self, budget: Budget, call: Call) -> tuple[Answer, bool, str]:
        places = self._enclosure.places()
        held = RankBudget(budget, self._prepared, self._prepared_rank, places)
        with measuring(self._overseer, 1 + call.ranks):
            answer, refused = self._run(call, held)
        return answer, refused, answer.doubt

    def _settle(self, try_bytes: int = 0, *, shut: bool) -> dict[str, Any]:
        """Make the process prepare for a budget, or continue without one if `shut` is false."""
        return self._request({"settle": try_bytes, "shut": shut})

    def _request(
        self,
        request: dict[str, Any],
        seconds: float | None = None,
        replies: Replies | None = None,
    ) -> dict[str, Any]:
        return self._conversation.request(request, seconds or self._limits.cell_seconds, replies)

    def _run(self, call: Call, budget: RankBudget | None = None) -> tuple[Answer, bool]:
        """Run a probe; return its answer, and whether the kernel refused it memory."""
        if not call.ranks:
            return self._ask_for(call, Replies(call.ask))
        gate = Gate(self._pid, call.ranks, budget)
        answer, refused = self._ask_for(call, Replies(gate.reply))
        if not self.is_lost:
            gate.close()
        answer = replace(
            answer,
            asked=(),
            doubt=gate.doubt,
            traffic_bytes=gate.traffic_bytes,
            rank_sent_bytes=gate.rank_sent_bytes,
            rank_held_bytes=gate.rank_held_bytes,
        )
        return answer, refused

    def _ask_for(self, call: Call, replies: Replies) -> tuple[Answer, bool]:
        try:
            reply = self._request(call.request(), call.seconds, replies)
            if not self._enclosure.is_same():  # so its peak memory isn't that of the call
                raise ProcessLost(_ANOTHER)
        except ProcessLost as error:
            lost = str(self._conversation.give_up(error))
            busy = isinstance(error, MachineBusy)
            return Answer(lost=lost, asked=tuple(replies.asked), busy=busy), False
        raised = reply.get("raised")
        if raised is not None:
            answer = Answer(raised=three_texts(raised), asked=tuple(replies.asked))
            return answer, reply.get("refused") is True
        return Answer(reply.get("value"), asked=tuple(replies.asked)), False

    def kill(self) -> None:
        """Kill the process and everything that it started."""
        self._enclosure.kill()

    def close(self) -> None:
        """Kill the process and everything that it started, and wait for their end.

        Raises IsolationError if something of it remains.
        """
        self.kill()
        # Process 1 of a namespace ends after all others in it, which takes a while for a fork bomb.
        select.select([self._handle], [], [], _END)
        os.close(self._handle)
        if self._overseer is not None:
            self._overseer.close()
        if self._cgroup is not None:
            self._cgroup.remove()
        self._enclosure.close()


NO_BUDGETS = (
    "This machine doesn't hold a process to a memory budget, so the meter's figures from inside it "
    "can't be confirmed. An instructor will look at this."
)
_GONE = "Your code ended its own process."
_ANOTHER = "Your code ended its own process, or put another in its place."
