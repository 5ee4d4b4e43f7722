"""Number formats to the bit: their values, their limits, and how they round."""

from peakmem.core.lazy import loader

_PLACES = {
    "FORMATS": "formats",
    "NumberFormat": "formats",
    "decode": "formats",
    "encode": "formats",
    "limits": "formats",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
