"""Plans run on a real device: saved tensors move to the host and back."""

from peakmem.core.lazy import loader

_PLACES = {
    "HostTier": "host_memory",
    "run": "executor",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
