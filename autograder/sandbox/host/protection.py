"""Which of the kernel's bounds hold on this machine, for `autograder doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.sandbox.host import cgroup
from autograder.sandbox.host.sandbox import Sandbox

__all__ = ["Protection", "protection"]


@dataclass(frozen=True)
class Protection:
    """What bounds the kernel's own memory, and whether memory budgets hold."""

    #: "cgroup" or "filter"
    kernel_memory: str
    budgets_hold: bool

    @property
    def lines(self) -> list[str]:
        """A sentence for each bound; the remedy with it if there is a better one."""
        return [_KERNEL_MEMORY[self.kernel_memory], _BUDGETS[self.budgets_hold]]


def protection() -> Protection:
    """Try the sandbox on a process that runs nothing of a student's."""
    with Sandbox() as sandbox, sandbox.open() as student:
        budgets_hold = student.budgets_hold
    kernel_memory = "filter" if cgroup.parent() is None else "cgroup"
    return Protection(kernel_memory, budgets_hold)


_KERNEL_MEMORY = {
    "cgroup": "Kernel memory: a control group bounds all memory of a submission.",
    "filter": (
        "Kernel memory: only the filter of system calls bounds it, so a submission can take about "
        "1.5 GiB beside its limit. For a control group around each submission, "
        f"{cgroup.REMEDY}."
    ),
}
_BUDGETS = {
    True: "Memory budgets: the kernel holds a process to them.",
    False: (
        "Memory budgets: the kernel does not hold a process to them here, so right answers to "
        "exercises with a budget cannot be judged. Grade on a Linux kernel of 4.7 or later, and "
        "not on one that another program imitates, as gVisor does."
    ),
}
