"""Lazy public faces: a package imports a module when one of its names is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

__all__ = ["loader"]


def loader(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for a package that takes each name from its module in `places`.

    Importing the modules eagerly would load the whole folder for one name, and would fail in a lab
    that hides one of them.

    >>> loader("peakmem.core", {"both": "units"})("both")(512)
    '512 B'
    """

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{places[name]}"), name)

    return load
