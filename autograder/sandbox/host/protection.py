"""Reports which kernel bounds hold on this machine, for `autograder doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.sandbox.host import cgroup
from autograder.sandbox.host.sandbox import Sandbox

__all__ = ["Protection", "protection"]


@dataclass(frozen=True)
class Protection:
    """The kernel bounds that hold on this machine."""

    #: What bounds the kernel's own memory: "cgroup" or "filter".
    kernel_memory: str
    #: Whether the kernel enforces memory budgets.
    budgets_hold: bool

    @property
    def lines(self) -> list[str]:
        """A sentence for each bound, with the remedy if there is a better bound."""
        return [_KERNEL_MEMORY[self.kernel_memory], _BUDGETS[self.budgets_hold]]


def protection() -> Protection:
    """Try the sandbox on a process that runs no student code."""
    with Sandbox() as sandbox, sandbox.open() as student:
        budgets_hold = student.budgets_hold
    kernel_memory = "filter" if cgroup.parent() is None else "cgroup"
    return Protection(kernel_memory, budgets_hold)


_KERNEL_MEMORY = {
    "cgroup": "Kernel memory: a control group bounds all memory of a submission.",
    "filter": (
        "Kernel memory: only the system call filter bounds it, so a submission can take about "
        "1.5 GiB on top of its limit. For a control group around each submission, "
        f"{cgroup.REMEDY}."
    ),
}
_BUDGETS = {
    True: "Memory budgets: the kernel enforces them.",
    False: (
        "Memory budgets: the kernel doesn't enforce them here, so correct answers to exercises "
        "with a budget can't be judged. Grade on a real Linux kernel of 4.7 or later, not on an "
        "emulated one such as gVisor's."
    ),
}
