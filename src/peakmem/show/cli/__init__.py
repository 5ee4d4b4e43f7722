"""The command `peakmem`: what a training step takes, and what this machine can run."""

from peakmem.core.lazy import loader

_PLACES = {"main": "app"}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
