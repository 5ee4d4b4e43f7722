"""Exercises whose processes talk to each other, if the sandbox can't isolate these."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.content import find_lab
from autograder.grading.grade import _decided
from autograder.notebooks.intake import take_in
from autograder.sandbox.host.namespaces import Namespaces
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.uid_isolation import UserIds
from autograder.sandbox.host.unprotected import Unprotected
from tests.grading import LAB05, released, solved


@pytest.mark.parametrize("apart", [True, False])
def test_they_wait_for_an_instructor_and_all_others_are_graded(apart: bool) -> None:
    lab = find_lab(LAB05)
    first, *others = lab.tasks
    changed = replace(lab, tasks=(replace(first, ranks=True), *others))
    raw = json.dumps(solved()).encode()
    submission = take_in("ada", LAB05, raw, released())
    sandbox: Any = SimpleNamespace(has_gpu=True, keeps_ranks_apart=apart)
    verdicts, waiting, _ = _decided(changed, submission, sandbox, b"secret" * 6, {})
    assert (first.id in waiting) is apart
    assert all(task.id in waiting for task in others)
    if not apart:
        assert verdicts[first.id].status == "needs_isolation"
        assert "namespaces" in verdicts[first.id].message


def test_a_lab_has_ranks_if_a_task_has() -> None:
    lab = find_lab(LAB05)
    first, *others = lab.tasks
    assert not lab.ranks
    assert replace(lab, tasks=(*others, replace(first, ranks=True))).ranks


def test_a_user_id_of_its_own_keeps_no_connections_apart() -> None:
    """The property alone: a Sandbox starts a process, which this does without."""
    for backend, apart in ((Namespaces(), True), (UserIds(), False), (Unprotected(), True)):
        bare: Any = SimpleNamespace(_backend=backend)
        assert Sandbox.keeps_ranks_apart.fget(bare) is apart  # type: ignore[attr-defined]
