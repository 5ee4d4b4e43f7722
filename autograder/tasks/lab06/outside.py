"""What the measured tasks of lab 6 have in common: the look from outside, and what hides from it.

A short first run takes what libraries keep, and the sandbox's malloc gives large blocks back to the
system at once. So an honest second run is seen from outside almost as the meter counts it: within
0.5 MiB where autograd's tensors are swapped, and with up to 4 MiB more where tensors come back from
a file, whose mapped pages are resident too while they are copied. What a cheat would hide is 14 MiB
and more: all that forward saves, all moments, all layers.
"""

from __future__ import annotations

from autograder.ban import Ban

__all__ = ["NOISE_BYTES", "NO_HIDING", "OUTSIDE"]

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
