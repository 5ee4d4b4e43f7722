"""A measured call may send only its reply. Anything else loses the process and the points."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.model.task import Answer, Budget
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent

pytestmark = pytest.mark.sandbox

# A probe that a cell injects into the process. It finds the grader's socket in its callers' frames.
PROBE = """
import os, sys, types
from peakmem.core import serialization as plain
module = sys.modules["trial"] = types.ModuleType("trial")
def tell(message):
    data = plain.encode(message)
    os.write(connection.fileno(), len(data).to_bytes(8, "big") + data)
def probe(student, ask, metered=True):
    global connection
    frame = sys._getframe()
    while "connection" not in frame.f_locals: frame = frame.f_back
    connection, number = frame.f_locals["connection"], frame.f_locals["request"]["id"]
    {work}
    return "done"
module.probe = probe
"""
SENT = {
    "a question": "ask('watch')",
    "a question that nobody waits for": "tell({'id': number, 'ask': 'watch'})",
    "the same reply twice": "tell({'id': number, 'value': 'done'})",
    "another reply before": "tell({'id': number, 'value': 'better'})",
    "a reply without a value": "tell({'id': number})",
    "an exception": "tell({'id': number, 'raised': ('E', 'e', '')})",
    "a refusal": "tell({'id': number, 'raised': ('MemoryError', '', ''), 'refused': True})",
    "a reply to settling": "tell({'id': number + 1, 'had': False})",
    "a reply to settling after the call": "tell({'id': number, 'value': 'done'}); "
    "tell({'id': number + 1, 'had': True})",
    "a reply to the last request": "tell({'id': number - 1, 'value': 'done'})",
    "a reply of another type": "tell({'id': True, 'value': 'done'})",
    "a request": "tell({'id': number, 'settle': 0}); tell({'probe': 'trial:probe'})",
    "a budget": "tell({'id': number, 'budget': 2**40})",
    "a list": "tell([number])",
    "nothing": "tell(None)",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as prepared:
        yield prepared


def run(student: SandboxStudent, work: str) -> Answer:
    student.run_cell(PROBE.replace("{work}", work))
    return student.run("trial:probe", {}, budget=Budget(2**20))


@pytest.mark.parametrize("what", SENT)
def test_what_is_sent_beside_the_reply_loses_the_process(sandbox: Sandbox, what: str) -> None:
    with sandbox.open() as student:
        answer = run(student, SENT[what])
        assert answer.lost is not None
        assert answer.value is None
        assert student.is_lost
        assert student.run("trial:probe", {}).lost


def test_the_reply_alone_is_taken(sandbox: Sandbox) -> None:
    with sandbox.open() as student:
        assert run(student, "pass") == Answer("done", memory="within")
        assert run(student, "pass") == Answer("done", memory="within")
