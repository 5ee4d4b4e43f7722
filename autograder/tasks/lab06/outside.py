"""What the measured tasks of lab 6 have in common: the look from outside, and what hides from it.

Each probe runs everything once before it is watched. malloc does not fill the holes that aligned
tensors leave, so a first run of honest code takes as much resident memory as one that keeps all:
25 to 33 MiB were seen for 4 MiB live. After a first run up to 13 MiB more than the meter's were
seen. So the look from outside catches only what is large and new in the second run. To hide from
the meter in both, code has to switch torch's dispatch modes off or to allocate beside torch, and a
solution that names what does that is refused.
"""

from __future__ import annotations

from autograder.ban import Ban

__all__ = ["NOISE_BYTES", "NO_HIDING", "OUTSIDE"]

NOISE_BYTES = 24 * 2**20

OUTSIDE = (
    "Seen from outside, your process took clearly more memory than the meter counted within it. "
    "A person has to look at where it went."
)

_SWITCHES = {
    *("_disable_current_modes", "_pop_mode", "_pop_mode_temporarily", "_push_mode"),
    *("_DisableTorchDispatch", "_DisablePythonDispatcher", "_pop_torch_dispatch_stack"),
    *("_ExcludeDispatchKeyGuard", "_open_meters", "_operators", "_memory"),
}

NO_HIDING = Ban(
    names=frozenset(_SWITCHES),
    modules=frozenset({"ctypes", "mmap", "torch.utils._python_dispatch", "peakmem.allocations"}),
    reason="Bytes are measured in this exercise: leave the meter as it is.",
)
