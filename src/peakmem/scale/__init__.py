"""Training on many devices: sharding, pipelines, and scaling laws."""

from peakmem.core.lazy import loader

_PLACES = {
    "activation_bytes_per_layer": "parallelism",
    "compute_optimal": "scaling_laws",
    "schedule": "pipelines",
    "training_flops": "scaling_laws",
    "zero_states": "parallelism",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
