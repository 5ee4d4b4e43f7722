"""Number formats to the bit: what they hold, and how values fall when rounded to them."""

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
