"""A GPT frozen in 4 bits with a student's adapters, and the metered peak of its training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

    from peakmem.measure.reference_models import GPT
    from peakmem.specs.models import ModelShape

__all__ = ["metered_qlora_step", "qlora_gpt"]


def qlora_gpt(
    shape: ModelShape,
    rank: int,
    lora: Callable[[Any, int, float], nn.Module],
    encode: Callable[[Tensor], tuple[Tensor, Tensor]],
    decode: Callable[[Tensor, Tensor, int], Tensor],
) -> GPT:
    """Return a frozen GPT whose blocks' matrices are in NF4, each with an adapter beside it.

    `lora(layer, rank, alpha)` is exercise 9.10's, `encode` and `decode` are 9.5's.
    """
    from peakmem.labs.lab09.frozen_linear import FrozenLinear
    from peakmem.measure.reference_models import GPT

    model = GPT(shape).requires_grad_(False)
    for block in model.blocks:
        for owner, names in (("attention", ("qkv", "out")), ("mlp", ("up", "down"))):
            module = block.get_submodule(owner)
            for name in names:
                linear: Any = module.get_submodule(name)
                frozen = FrozenLinear(linear, encode, decode)
                setattr(module, name, lora(frozen, rank, 2.0 * rank))
    return model


def metered_qlora_step(model: GPT, batch: int, seq: int) -> int:
    """Return the peak bytes of a training step, the model's own included; the second is metered."""
    import torch

    from peakmem.measure.meter import MemoryMeter
    from peakmem.measure.reference_models import training_step

    tokens = torch.zeros(batch, seq, dtype=torch.long)
    batches = [(tokens, tokens.clone())]
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], foreach=False)
    training_step(model, optimizer, batches)
    with MemoryMeter("cpu").track(model, optimizer, *batches[0]) as meter:
        training_step(model, optimizer, batches)
    return meter.peak_bytes
