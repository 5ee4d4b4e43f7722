"""A folder's public face whose modules are loaded when their names are first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

__all__ = ["loader"]


def loader(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package that offers each name from its module in `places`.

    A face that imported its modules would load all of a folder for one of them, and could not be
    imported at all in a lab that hides one.

    >>> loader("peakmem.core", {"both": "units"})("both")(512)
    '512 B'
    """

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{places[name]}"), name)

    return load
