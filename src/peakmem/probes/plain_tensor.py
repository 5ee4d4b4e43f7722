"""Takes a student's tensor for what it is, so that a probe's own questions get true answers.

A subclass decides what `torch.equal` says of it, and any tensor may have attributes of its own in
place of torch's methods.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["plain_tensor"]


def plain_tensor(value: Any) -> Tensor:
    """Return a tensor with the same memory, and nothing else of the student's; arrays too.

    >>> given = torch.ones(2)
    >>> given.untyped_storage = lambda: None
    >>> plain_tensor(given).untyped_storage().nbytes()
    8

    Raises TypeError for an object of a student's own class.
    """
    tensor = torch.as_tensor(value)
    if type(tensor) not in (Tensor, nn.Parameter):
        raise TypeError(f"expected a torch.Tensor, but got a {type(tensor).__name__}")
    return Tensor.detach(tensor)
