"""What to keep, recompute or swap: chains of stages, planners, and the simulator of plans."""

from peakmem.core.lazy import loader

_PLACES = {
    "Chain": "chain",
    "Plan": "plan",
    "Stage": "chain",
    "Step": "plan",
    "best_kept_set": "segments",
    "every_k": "segments",
    "joint": "offload",
    "keep_all": "segments",
    "kept_set": "segments",
    "kept_set_optimal": "segments",
    "optimal": "rotor",
    "simulate": "simulator",
    "with_offload": "offload",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
