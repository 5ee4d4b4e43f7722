"""The doctor's report on this machine's bounds, with and without each."""

from __future__ import annotations

import pytest

from autograder.sandbox.host import cgroup
from autograder.sandbox.host.protection import Protection, protection
from autograder.sandbox.host.student import SandboxStudent

pytestmark = pytest.mark.sandbox


def test_it_is_what_the_sandbox_finds() -> None:
    found = protection()
    assert found.budgets_hold
    assert found.kernel_memory == ("filter" if cgroup.parent() is None else "cgroup")
    assert found.lines[1] == "Memory budgets: the kernel enforces them."


def test_without_a_group_and_without_budgets_it_says_so_with_the_remedies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cgroup, "parent", lambda: None)
    monkeypatch.setattr(SandboxStudent, "_tries_a_budget", lambda _: False)
    found = protection()
    assert found == Protection("filter", budgets_hold=False)
    kernel, budgets = found.lines
    assert "`systemd-run --user --scope -p Delegate=yes autograder ...`" in kernel
    assert "Linux kernel of 4.7 or later" in budgets
