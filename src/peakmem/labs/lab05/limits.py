"""What a student's function has to keep to in each self-check: sizes, and recording left on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["Function", "check_size", "recording_left_on"]

Function = Callable[..., Any]


def recording_left_on() -> bool:
    """Return whether a call left the recording of gradients on; it is on for the next try."""
    recording = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return recording


def check_size(batch: Tensor, most: int) -> None:
    """Raise ValueError if a model gets more samples at a time than `micro_batch`."""
    if len(batch) > most:
        raise ValueError(f"micro_batch is {most}, but {len(batch)} samples came at once")
