"""A small GPT trained with Adam: the peak of an update, and its time per sample."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT

__all__ = [
    "BATCH",
    "BUDGET",
    "MIB",
    "SHAPE",
    "all_at_once",
    "device",
    "mean_loss",
    "measured_peak",
    "milliseconds_a_sample",
    "new_training",
    "weight_bytes",
]

Backward = Callable[[nn.Module, Tensor, Tensor], object]

MIB = 2**20
BUDGET = 24 * MIB
BATCH = 32  # samples: the batch that we want
SHAPE = SimpleNamespace(n_layers=2, d_model=128, n_heads=4, vocab=256, context=64)


def device() -> str:
    """Return "cuda" where there is a GPU, else "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"


# A small GPT, trained with Adam.


def mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean loss over all tokens."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def new_training(samples: int) -> tuple[GPT, torch.optim.Optimizer, Tensor, Tensor]:
    """Return a model, an Adam that has made a step, and a batch of tokens and labels.

    The gradients exist, and are zero.
    """
    torch.manual_seed(0)
    model = GPT(SHAPE).to(device())
    # foreach=False: one parameter after the other, without temporary values for all of them at once
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    tokens, labels = torch.randint(SHAPE.vocab, (2, samples, SHAPE.context), device=device())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return model, optimizer, tokens, labels


def weight_bytes() -> int:
    """Return the bytes of the model's parameters."""
    return 4 * sum(parameter.numel() for parameter in GPT(SHAPE).parameters())


def all_at_once(model: nn.Module, tokens: Tensor, labels: Tensor) -> None:
    """Add the gradient of the batch to the existing gradients."""
    mean_loss(model(tokens), labels).backward()  # type: ignore[no-untyped-call]


def measured_peak(
    samples: int, backward: Backward = all_at_once, budget_bytes: float = math.inf
) -> int:
    """Return the peak of one update in bytes: weights, gradients and moments count.

    Raises OutOfMemory if it goes above the budget.
    """
    on_gpu = device() == "cuda"
    # Earlier cells may have left something on a GPU: it counts neither as peak nor as budget.
    others = torch.cuda.memory_stats()["requested_bytes.all.current"] if on_gpu else 0
    model, optimizer, tokens, labels = new_training(samples)
    most = None if math.isinf(budget_bytes) else int(others + budget_bytes)
    meter = MemoryMeter(device(), most)
    with meter.track(model, optimizer, tokens, labels):
        backward(model, tokens, labels)
        optimizer.step()
        optimizer.zero_grad()
    return int(meter.peak_bytes - others)


def milliseconds_a_sample(
    accumulate: Callable[..., Any], sizes: Sequence[int], length: int
) -> list[float]:
    """Return the time per sample of 16 samples of `length` tokens, for micro-batches of each size.

    It is the shortest of six rounds. All sizes take turns, so that other running programs
    slow down all of them equally.
    """
    model, _, tokens, labels = new_training(16)
    rounds = []
    for _ in range(7):  # the first warms up
        times = []
        for size in sizes:
            start = time.perf_counter()
            accumulate(model, mean_loss, tokens[:, :length], labels[:, :length], size)
            if device() == "cuda":
                torch.cuda.synchronize()
            times.append(1000 * (time.perf_counter() - start) / 16)
        rounds.append(times)
    return [min(column) for column in zip(*rounds[1:], strict=True)]
