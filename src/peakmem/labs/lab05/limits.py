"""What a student's function has to keep to in each self-check: sizes, and recording left on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["Function", "beside_one", "check_size", "no_number", "recording_left_on"]

Function = Callable[..., Any]


def recording_left_on() -> bool:
    """Return whether a call left the recording of gradients on; it is on for the next try."""
    recording = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return recording


def no_number(found: object, what: str) -> str:
    """Return what came back instead of a number; empty if a number did."""
    if found is None:
        return f"no {what} came back"
    return "a tensor came back" if isinstance(found, Tensor) else ""


def beside_one(one_bytes: int, eight_bytes: int) -> str:
    """Return how the rise of eight micro-batches compares with that of one."""
    if eight_bytes <= 2 * one_bytes:
        return "as for one"
    return f"{eight_bytes / one_bytes:.1f} times as for one"


def check_size(batch: Tensor, most: int) -> None:
    """Raise ValueError if a model gets more samples at a time than `micro_batch`."""
    if len(batch) > most:
        raise ValueError(f"micro_batch is {most}, but {len(batch)} samples came at once")
