"""A real training step, run and measured on this side: the truth behind predict_training."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import torch
from torch.nn import functional as F
from torch.optim.adamw import adamw

from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT, training_step

__all__ = ["measured_training"]


def measured_training(shape: Mapping[str, int], batch: int, seq: int) -> dict[str, int]:
    """Return the bytes that a real model's step takes once the optimizer's state exists."""
    model = GPT(SimpleNamespace(**shape))
    optimizer = _AdamW(model)
    tokens, targets = (torch.zeros(batch, seq, dtype=torch.long) for _ in range(2))
    logits, saved = _kept_by_forward(model, tokens, targets)
    meter = MemoryMeter("cpu").track(model, optimizer.states, tokens, targets)
    with meter:
        training_step(model, optimizer, [(tokens, targets)])  # type: ignore[arg-type]
    return {
        "parameters": sum(p.nbytes for p in model.parameters()),
        "gradients": sum(p.grad.nbytes for p in model.parameters() if p.grad is not None),
        "optimizer": sum(state.nbytes for state in optimizer.states),
        "saved_activations": saved,
        "logits": logits,
        "peak": meter.peak_bytes,
    }


def _kept_by_forward(model: GPT, tokens: torch.Tensor, targets: torch.Tensor) -> tuple[int, int]:
    """Return the saved bytes, without parameters: those of logits-sized tensors, and the rest."""
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage  # held, so that its address isn't reused
        return tensor.detach()  # an output saved by its own node would never be freed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = model(tokens)
        # Identified by address: only the loss saves tensors as large as the logits.
        before = set(kept)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    large = [kept[at].nbytes() for at in kept.keys() - before if kept[at].nbytes() == logits.nbytes]
    total = sum(kept[at].nbytes() for at in kept.keys() - own)
    del loss
    return sum(large), total - sum(large)


class _AdamW:
    """AdamW(foreach=False) after its first steps, run by torch's own function.

    torch.optim's classes are left out: the first one imports torch._dynamo, which takes seconds.
    """

    def __init__(self, model: GPT) -> None:
        self.parameters: list[torch.Tensor] = list(model.parameters())
        self.firsts, self.seconds = (
            [torch.zeros_like(parameter) for parameter in self.parameters] for _ in range(2)
        )
        self.counters = [torch.tensor(2.0) for _ in self.parameters]

    @property
    def states(self) -> list[torch.Tensor]:
        return [*self.firsts, *self.seconds, *self.counters]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        adamw(
            self.parameters,
            [parameter.grad for parameter in self.parameters if parameter.grad is not None],
            self.firsts,
            self.seconds,
            [],
            self.counters,
            foreach=False,
            fused=False,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=1e-3,
            weight_decay=0.01,
            eps=1e-8,
            maximize=False,
        )
