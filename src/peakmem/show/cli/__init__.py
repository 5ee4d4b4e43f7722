"""The command `peakmem`: predicts the memory of a training step, and checks this machine."""

from peakmem.core.lazy import loader

_PLACES = {"main": "app"}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
