"""Lets a calculator run in a lab that hides the modules it is made of."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from peakmem.labs.session import refusals_lifted

__all__ = ["with_hidden_modules"]


@contextmanager
def with_hidden_modules() -> Iterator[None]:
    """Let a calculator import what `peakmem.lab` hides, and hide it again afterwards."""
    with refusals_lifted() as refusals:
        try:
            yield
        finally:
            _forget([name for refusal in refusals for name in refusal.modules])


def _forget(modules: Iterable[str]) -> None:
    """Unload modules, so that they can be refused again."""
    for name in modules:
        package, _, module = name.rpartition(".")
        if sys.modules.pop(name, None) is not None:
            delattr(sys.modules[package], module)
