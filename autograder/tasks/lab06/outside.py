"""What the measured tasks of lab 6 have in common: the look from outside, and what hides from it.

A short first run takes what libraries keep, and the sandbox's malloc gives large blocks back to the
system at once. So an honest second run is seen from outside almost as the meter counts it: within
0.5 MiB where autograd's tensors are swapped, and with up to 4 MiB more where tensors come back from
a file, whose mapped pages are resident too while they are copied. What a cheat would hide is 14 MiB
and more: all that forward saves, all moments, all layers.

Writing to files is what the host is for, so it is counted apart: as much as the exercise takes,
even if clumsily done, is no matter. More is doubted, for a file in memory hides bytes as well.
"""

from __future__ import annotations

from autograder.ban import Ban
from autograder.task import Answer

__all__ = ["NOISE_BYTES", "NO_HIDING", "OUTSIDE", "hides"]

NOISE_BYTES = 6 * 2**20

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
    modules=frozenset(
        {"ctypes", "mmap", "torch.utils._python_dispatch"}
        | {"peakmem.allocations", "peakmem.operators", "peakmem.timeline"}
    ),
    reason="Bytes are measured in this exercise: leave the meter as it is.",
)


def hides(answer: Answer, rise_bytes: int, written_bytes: int) -> bool:
    """Tell whether the process took clearly more than `rise_bytes` of memory, as the meter counted.

    Or whether it wrote clearly more to files than `written_bytes`, the most that the host is given.
    """
    if answer.resident_bytes is None:
        return False
    held_bytes = answer.resident_bytes - answer.written_bytes
    return (
        held_bytes > rise_bytes + NOISE_BYTES or answer.written_bytes > written_bytes + NOISE_BYTES
    )
