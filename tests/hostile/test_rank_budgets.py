"""Attacks on measurements of ranks: hidden memory and hidden traffic."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from autograder.base import memory
from autograder.base.limits import Limits
from autograder.model.task import Answer, Budget
from autograder.sandbox.host import budget as budgets
from autograder.sandbox.host import rank_gate
from autograder.sandbox.host.sandbox import Sandbox

pytestmark = pytest.mark.sandbox

MIB = 2**20
LIMITS = Limits(cell_seconds=30, submission_seconds=600)
BUDGET = Budget(8 * MIB)
PRELUDE = """
import mmap, os, socket, sys, threading, time, types
import torch, torch.distributed as dist
import peakmem.probes.ranks as marks
from peakmem.probes.ranks import run_ranks

GREEDY = 32 * 2**20
before_ready = lambda: None
barrier = dist.barrier
def at_the_barrier(*arguments):
    before_ready()
    return barrier(*arguments)
dist.barrier = at_the_barrier

def probe(student, ask, metered=True):
    return run_ranks(work, 2, ask=ask)
trial = sys.modules["trial"] = types.ModuleType("trial")
trial.probe = probe
"""


@dataclass(frozen=True)
class Attack:
    """`work()` takes 32 MiB in each rank or hides its traffic; only `guard` stops it.

    `says` is a pattern for the doubt; empty if memory is refused.
    """

    name: str
    source: str
    guard: str
    says: str = ""


ATTACKS = [
    Attack(
        "allocates",
        "def work(): return len(bytearray(GREEDY)) == GREEDY",
        "budget",
    ),
    Attack(
        "has other processes hold it",
        """
def work():
    for _ in range(8):  # each has a budget of its own, which is its parent's
        if not os.fork():
            held = bytearray(GREEDY // 8)
            time.sleep(60)
    return True
""",
        "processes",
        "raised",
    ),
    Attack(
        "holds it before it is ready",
        """
held = []
def before_ready(): held.append(bytearray(GREEDY))
def work(): return len(held[0]) == GREEDY
""",
        "held",
        r"held 3\d MiB of its own",
    ),
    Attack(
        "has its launcher hold it",
        """
ours, theirs = socket.socketpair()
launcher = os.getpid()
def hold():
    theirs.recv(1)
    try: answer = b"%d" % len(bytearray(GREEDY))
    except MemoryError: answer = b"0"
    theirs.send(answer)
threading.Thread(target=hold, daemon=True).start()
def work():
    if dist.get_rank() == 0:
        ours.send(b"1")
        if ours.recv(20) == b"0": raise MemoryError
    return True
""",
        "launcher",
    ),
    Attack(
        "never holds still",
        """
def run_ranks(work, world, *, ask):
    from peakmem.ranks import launch
    return launch(work, world)
def work(): return len(bytearray(GREEDY)) == GREEDY
""",
        "done",
        "from its beginning to its end",
    ),
    Attack(
        "sends past torch",
        """
def work():
    if dist.get_rank():
        with socket.create_server(("127.0.0.1", 0)) as server:
            dist.send(torch.tensor(server.getsockname()[1]), 0)
            came, _ = server.accept()
            while came.recv(65536): pass
    else:
        port = torch.tensor(0)
        dist.recv(port, 1)
        with socket.create_connection(("127.0.0.1", int(port))) as out:
            out.sendall(bytes(2**21))
    return True
""",
        "written",
        "more than torch.distributed wrote",
    ),
    Attack(
        "sends when it is done",
        """
ran = marks.launch_watched
def launch_watched(function, world, *, before, after, timeout):
    before(); after()
    return ran(function, world, timeout=timeout)
def run_ranks(work, world, *, ask):
    def begin_and_end():
        ask({"ranks": "ready"}); ask({"ranks": "done"})
    return ran(work, world, before=begin_and_end)
def work():
    dist.all_reduce(torch.ones(2**20))
    return True
""",
        "later",
        "went on sending",
    ),
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=LIMITS, ranks=True) as prepared:
        yield prepared


def answer(sandbox: Sandbox, source: str) -> Answer:
    with sandbox.open() as student:
        assert student.budgets_hold
        outputs = student.run_cell(PRELUDE + source)
        assert not any(output["output_type"] == "error" for output in outputs), outputs
        return student.run("trial:probe", {}, budget=BUDGET, ranks=2)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_proves_nothing(sandbox: Sandbox, attack: Attack) -> None:
    came = answer(sandbox, attack.source)
    if attack.says == "raised":
        assert came.raised is not None
        assert "can't start a thread or process" in came.raised[1]
    elif attack.says:
        assert re.search(attack.says, came.doubt), came
    else:
        assert came.memory == "refused", came


def test_honest_ranks_stay_within(sandbox: Sandbox) -> None:
    came = answer(
        sandbox,
        """
def work():
    x = torch.ones(2**20)
    dist.all_reduce(x)
    return x[0].item()
""",
    )
    assert (came.value, came.memory, came.doubt) == ([2.0, 2.0], "within", "")
    assert came.rank_sent_bytes == (pytest.approx(4 * MIB, rel=0.01),) * 2
    assert came.traffic_bytes == pytest.approx(8 * MIB, rel=0.01)


@pytest.mark.parametrize(("keeps", "mib"), [("held.append(x)", 4), ("pass", 0)])
def test_what_a_rank_holds_in_the_end_is_read_and_not_what_it_has_let_go(
    sandbox: Sandbox, keeps: str, mib: int
) -> None:
    came = answer(
        sandbox,
        f"""
held = []
def work():
    x = torch.ones(2**20)
    {keeps}
    return True
""",
    )
    assert (came.value, came.memory, came.doubt) == ([True, True], "within", "")
    assert came.rank_held_bytes == (pytest.approx(mib * MIB, abs=MIB / 2),) * 2


# The controls: without its guard each attack looks honest.


def with_more_processes(patch: pytest.MonkeyPatch) -> None:
    """Let ranks start processes, and don't check for these at the end."""
    set_limits, look = budgets._set, memory.descendants
    left = resource.RLIMIT_NPROC
    patch.setattr(
        budgets,
        "_set",
        lambda pid, limits: set_limits(pid, {k: v for k, v in limits.items() if k != left}),
    )
    patch.setattr(memory, "descendants", lambda pid: look(pid)[:2])


def without_budget(patch: pytest.MonkeyPatch) -> None:
    begin = rank_gate.RankBudget.__init__
    patch.setattr(
        rank_gate.RankBudget,
        "__init__",
        lambda self, budget, *more: begin(self, replace(budget, bytes=2**30), *more),
    )


GUARDS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "budget": without_budget,
    "processes": with_more_processes,
    "held": lambda patch: patch.setattr(budgets, "HELD_BYTES", 2**40),
    "launcher": lambda patch: patch.setattr(rank_gate, "_LAUNCHER", Budget(2**30)),
    "done": lambda patch: patch.setattr(rank_gate, "_OTHERS", ""),
    "written": lambda patch: patch.setattr(rank_gate, "_MESSAGES", 2**40),
    "later": lambda patch: patch.setattr(rank_gate, "_AFTERWARDS", 2**40),
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_without_its_guard_it_looks_honest(
    sandbox: Sandbox, attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    GUARDS[attack.guard](monkeypatch)
    came = answer(sandbox, attack.source)
    assert (came.value, came.memory, came.doubt) == ([True, True], "within", ""), came
