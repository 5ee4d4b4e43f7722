"""The foundation of all other folders: units, errors, and the encoding of plain data."""

from peakmem.core.lazy import loader

_PLACES = {
    "Infeasible": "errors",
    "NotDefined": "errors",
    "OutOfMemory": "errors",
    "both": "units",
    "parse": "units",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
