"""Refuses torch's own version of what an exercise builds, while student code runs.

A solution's source text shows most uses of such a tool. A tool reached by a name from data shows
only here, because the same operator runs under any name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from peakmem.measure.dispatch import Operators

__all__ = ["refuse_calls_from", "refusing_operators", "refusing_optimizers"]

_DOES_THE_EXERCISE = "does this exercise for you: write it yourself"


def refuse_calls_from(module: ModuleType) -> None:
    """Raise RuntimeError if a function of this module or package is among the callers."""
    file = str(module.__file__).removesuffix("__init__.py")
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_filename.startswith(file):
            raise _does_the_exercise(module.__name__)


@contextmanager
def refusing_operators(*parts: str, because: str = _DOES_THE_EXERCISE) -> Iterator[None]:
    """Make operators whose names contain one of the parts raise RuntimeError, and say why.

    This applies to CPU operators called by this thread.

    >>> from torch import zeros
    >>> with refusing_operators("cumsum"):
    ...     zeros(3).cumsum(0)
    Traceback (most recent call last):
    RuntimeError: aten::cumsum does this exercise for you: write it yourself
    """

    def listener(operator: str, *_: Any) -> Exception | None:
        refused = any(part in operator for part in parts)
        return RuntimeError(f"{operator} {because}") if refused else None

    with Operators("cpu", listener):
        yield


@contextmanager
def refusing_optimizers() -> Iterator[None]:
    """Make optimizers' fused operators, and operators that torch.optim calls, raise RuntimeError.

    This applies to this thread.
    """

    def listener(operator: str, *_: Any) -> Exception | None:
        refuse_calls_from(torch.optim)
        return _does_the_exercise(operator) if "::_fused_" in operator else None

    with Operators("cpu", listener):
        yield


def _does_the_exercise(name: str) -> RuntimeError:
    return RuntimeError(f"{name} {_DOES_THE_EXERCISE}")
