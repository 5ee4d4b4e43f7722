"""The command `peakmem`: estimates training steps, traces scripts, and checks this machine."""

from peakmem.core.lazy import loader

_PLACES = {"main": "app"}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
