"""Strips a student's tensor of overridden methods, so that probes can trust what it reports.

A subclass can decide what `torch.equal` returns for it, and any tensor may have attributes that
replace torch's methods.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["plain_tensor"]


def plain_tensor(value: Any) -> Tensor:
    """Return a tensor or array with the same memory, and nothing else from the student.

    >>> given = torch.ones(2)
    >>> given.untyped_storage = lambda: None
    >>> plain_tensor(given).untyped_storage().nbytes()
    8

    Raises TypeError if the object's class is the student's own.
    """
    tensor = torch.as_tensor(value)
    if type(tensor) not in (Tensor, nn.Parameter):
        raise TypeError(f"expected a torch.Tensor, but got a {type(tensor).__name__}")
    return Tensor.detach(tensor)
