"""Predictions of a training step's memory and time from its description alone."""

from peakmem.core.lazy import loader

_PLACES = {
    "Estimate": "estimate",
    "build_ledger": "step_ledger",
    "deepspeed_config": "deepspeed",
    "micro_batch_seconds": "roofline",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
