"""Bans ways around the meter and the budget, for tasks that measure memory."""

from __future__ import annotations

from autograder.model.restrictions import Ban

__all__ = ["NO_METER_TAMPERING"]

_SWITCHES = {
    "_disable_current_modes",
    "_pop_mode",
    "_pop_mode_temporarily",
    "_push_mode",
    "_DisableTorchDispatch",
    "_DisablePythonDispatcher",
    "_pop_torch_dispatch_stack",
    "_ExcludeDispatchKeyGuard",
    "_open_meters",
    "_operators",
    "_memory",
}

NO_METER_TAMPERING = Ban(
    names=frozenset(_SWITCHES),
    modules=frozenset(
        {"ctypes", "mmap", "torch.utils._python_dispatch"}
        | {"peakmem.measure.storages", "peakmem.measure.dispatch", "peakmem.measure.timeline"}
    ),
    reason="This exercise measures bytes: leave the meter alone.",
)
