"""Measured memory of a step: one that really runs, or one traced on tensors without data."""

from peakmem.core.lazy import loader

_PLACES = {
    "MemoryMeter": "meter",
    "chain_of": "measure_chain",
    "measure": "meter",
    "storages_of": "storages",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
