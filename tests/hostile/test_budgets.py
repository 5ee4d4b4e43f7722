"""Attacks on measured exercises, graded for real: none of them earns the points for the memory."""

from __future__ import annotations

import importlib
import re
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from autograder.base import memory
from autograder.base.limits import Limits
from autograder.content import find_lab
from autograder.grading import grade as grading
from autograder.grading.grade import grade
from autograder.model.task import Budget, Lab, Verdict
from autograder.sandbox.host import budget as budgets
from autograder.sandbox.host import overseer
from autograder.sandbox.host.enclosure import ProcessEnclosure
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent
from autograder.sandbox.host.unprotected import Unprotected
from tests.hostile.measured import (
    LEAN,
    MEASURED_ATTACKS,
    OFFLOADED,
    STREAM,
    Exercise,
    MeasuredAttack,
)

pytestmark = pytest.mark.sandbox
ATTACKS = {attack.name: attack for attack in MEASURED_ATTACKS}
LIMITS = Limits(cell_seconds=20)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=LIMITS) as prepared:
        yield prepared


@pytest.fixture(scope="module")
def bare() -> Iterator[Sandbox]:
    with Sandbox(limits=LIMITS, backend=Unprotected()) as prepared:
        yield prepared


@pytest.fixture(autouse=True)
def _behind_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let solutions use every name, so that attacks meet the kernel's limits."""
    monkeypatch.setattr(grading, "banned_uses", lambda *_: [])
    monkeypatch.setattr(grading, "uses_beside", lambda *_: [])


def graded(attack: MeasuredAttack, sandbox: Sandbox) -> tuple[Verdict, Verdict]:
    """The verdicts on an attack, and on an honest answer to another exercise beside it."""
    exercise = attack.exercise
    lab = find_lab(exercise.lab)
    tasks = {task.id: task for task in lab.tasks}
    both = Lab(lab.name, (tasks[exercise.task], tasks[exercise.neighbour]))
    result = grade(both, attack.submission(), sandbox, b"a course's secret").result
    own, neighbour = result.verdicts
    return own, neighbour


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_does_not_earn_the_points_for_the_memory(sandbox: Sandbox, name: str) -> None:
    attack = ATTACKS[name]
    verdict, neighbour = graded(attack, sandbox)
    assert verdict.earned[attack.exercise.part] == 0, verdict.message
    assert verdict.status in {"wrong", "partly", "could_not_judge"}
    assert re.search(attack.says, verdict.message), verdict.message
    assert neighbour.status == "right"


@pytest.mark.parametrize("exercise", [LEAN, STREAM, OFFLOADED], ids=lambda e: e.task)
def test_the_honest_solution_earns_them(sandbox: Sandbox, exercise: Exercise) -> None:
    honest = MeasuredAttack(
        "honest", "def work(call, greedy): return call()", (), exercise=exercise
    )
    verdict, _ = graded(honest, sandbox)
    assert verdict.status == "right", verdict.message


# The controls: without the guards that stop it, each attack earns the points.


def without_budget(patch: pytest.MonkeyPatch) -> None:
    begin = budgets.Enforced.__init__

    def with_more(self: Any, pid: int, budget: Budget, *more: Any) -> None:
        # The trial before the first cell keeps its limits, or the machine seems to lack budgets.
        begin(self, pid, replace(budget, bytes=2**30) if more[1:] else budget, *more)

    patch.setattr(budgets.Enforced, "__init__", with_more)


def without_limit(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Leave one limit as it is."""
    left = getattr(resource, f"RLIMIT_{name}")

    def leave(patch: pytest.MonkeyPatch) -> None:
        set_limits = budgets._set

        def set_others(pid: int, limits: Any) -> None:
            set_limits(pid, {kind: pair for kind, pair in limits.items() if kind != left})

        patch.setattr(budgets, "_set", set_others)

    return leave


def without_a_look_at_the_program(patch: pytest.MonkeyPatch) -> None:
    """Take another program's reply, and send it no further requests: it wouldn't understand."""
    request, same = SandboxStudent._request, ProcessEnclosure.is_same

    def unless_another(self: Any, message: Any, *more: Any) -> Any:
        return request(self, message, *more) if same(self._enclosure) else {}

    patch.setattr(ProcessEnclosure, "is_same", lambda self: True)
    patch.setattr(SandboxStudent, "_request", unless_another)


def with_idle_memory(patch: pytest.MonkeyPatch) -> None:
    settle = SandboxStudent._settle
    patch.setattr(
        SandboxStudent,
        "_settle",
        lambda self, try_bytes=0, shut=False: settle(self, try_bytes, shut=False),
    )


def with_sockets(patch: pytest.MonkeyPatch) -> None:
    bound = overseer.Overseer.bound
    patch.setattr(overseer.Overseer, "bound", lambda self, most, sockets=True: bound(self, most))


def without_sums(patch: pytest.MonkeyPatch) -> None:
    # The package's attribute with that name is the Task.
    module = importlib.import_module("autograder.content.lab03.lean_adam_step")
    patch.setattr(module, "_has_sums", lambda *_: True)


GUARDS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "budget": without_budget,
    **{name: without_limit(name) for name in ("AS", "NPROC", "FSIZE", "NOFILE", "STACK")},
    "held": lambda patch: patch.setattr(budgets, "HELD_BYTES", 2**40),
    "deleted": lambda patch: patch.setattr(budgets, "_DELETED", ""),
    "left open": lambda patch: patch.setattr(budgets, "_MORE_LEFT_OPEN", 2**40),
    "let go": lambda patch: patch.setattr(budgets, "_LET_GO_BYTES", 2**40),
    "idle": with_idle_memory,
    "children": lambda patch: patch.setattr(memory, "descendants", lambda pid: []),
    "shut": lambda patch: patch.setattr(overseer, "SHUT_BYTES", 2**40),
    "sockets": with_sockets,
    "sums": without_sums,
    "same program": without_a_look_at_the_program,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_without_its_guards_it_would(
    sandbox: Sandbox, bare: Sandbox, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = ATTACKS[name]
    verdict = graded_without(attack.off, attack, sandbox, bare, monkeypatch)
    assert verdict.earned[attack.exercise.part] > 0, verdict.message


@pytest.mark.parametrize(
    ("name", "guard"),
    [(attack.name, guard) for attack in MEASURED_ATTACKS if attack.off[1:] for guard in attack.off],
)
def test_where_there_are_several_each_is_enough(
    sandbox: Sandbox, bare: Sandbox, name: str, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = ATTACKS[name]
    others = [other for other in attack.off if other != guard]
    verdict = graded_without(others, attack, sandbox, bare, monkeypatch)
    assert verdict.earned[attack.exercise.part] == 0


def graded_without(
    guards: Sequence[str],
    attack: MeasuredAttack,
    sandbox: Sandbox,
    bare: Sandbox,
    patch: pytest.MonkeyPatch,
) -> Verdict:
    for guard in guards:
        if guard != "filter":  # which a process without isolation lacks
            GUARDS[guard](patch)
    return graded(attack, bare if "filter" in guards else sandbox)[0]


def test_each_guard_stops_some_attack() -> None:
    assert {guard for attack in MEASURED_ATTACKS for guard in attack.off} == {*GUARDS, "filter"}
