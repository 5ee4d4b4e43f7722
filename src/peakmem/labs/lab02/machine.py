"""What this machine and torch report about memory, without allocating any."""

from __future__ import annotations

import os
from types import SimpleNamespace

import torch

from peakmem.core.units import GB
from peakmem.measure.reference_models import GPT

__all__ = ["machine_bytes", "parameters_by_torch"]


def machine_bytes() -> int:
    """Return the GPU's memory, or the computer's if there is no GPU; 16 GB if unknown."""
    if torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 16 * GB  # Windows doesn't say


def parameters_by_torch(n_layers: int, d_model: int, n_heads: int) -> int:
    """Return the parameters of a GPT with GPT-3's vocabulary and context, counted by torch.

    >>> parameters_by_torch(12, 768, 12)
    125226240
    """
    shape = SimpleNamespace(
        n_layers=n_layers, d_model=d_model, n_heads=n_heads, vocab=50257, context=2048
    )
    with torch.device("meta"):  # tensors with a shape and no memory
        return sum(parameter.numel() for parameter in GPT(shape).parameters())
