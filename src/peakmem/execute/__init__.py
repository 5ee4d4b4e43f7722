"""Plans carried out on a device: saved tensors that leave it, wait on the host and return."""

from peakmem.core.lazy import loader

_PLACES = {
    "HostTier": "host_memory",
    "run": "executor",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
