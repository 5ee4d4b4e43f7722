"""find_the_leak: a sum of losses that holds the graph of every micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from autograder.content.leaks import Leak, leak_task
from peakmem.probes.lab05.leak import most_bytes, validated

__all__ = ["find_the_leak", "validation_loss"]

LossFunction = Callable[[Tensor, Tensor], Tensor]


def validation_loss(
    model: nn.Module,
    loss_fn: LossFunction,
    inputs: Tensor,
    targets: Tensor,
    micro_batch: int,
    *,
    weight: Callable[[int, int, int], float] = lambda n, samples, count: n / samples,
    before: Callable[[nn.Module], object] = lambda model: None,
    after: Callable[[nn.Module], object] = lambda model: None,
    backward: bool = False,
) -> float:
    """Return the mean loss of all samples, with one micro-batch in memory at a time.

    Each option turns it into one of the mistakes.
    """
    before(model)
    total, count = 0.0, -(-len(inputs) // micro_batch)
    for x, y in zip(
        torch.split(inputs, micro_batch), torch.split(targets, micro_batch), strict=True
    ):
        with torch.set_grad_enabled(backward):
            loss = loss_fn(model(x), y)
        if backward:
            (loss * weight(len(x), len(inputs), count)).backward()  # type: ignore[no-untyped-call]
        total += loss.item() * weight(len(x), len(inputs), count)
    after(model)
    return total


def _with(**options: Any) -> Callable[..., float]:
    return lambda *given: validation_loss(*given, **options)


def _small(rng: np.random.Generator) -> dict[str, Any]:
    size = int(rng.integers(3, 6))
    sizes = {"samples": 3 * size + 1, "micro_batch": size, "length": 2, "width": 4, "n_layers": 2}
    return {**sizes, "seed": int(rng.integers(2**31)), "training": True}


def _large(rng: np.random.Generator) -> dict[str, Any]:
    sizes = {"samples": 32, "micro_batch": 2, "length": 512, "width": 32, "n_layers": 8}
    return {**sizes, "seed": int(rng.integers(2**31))}


def _all_graphs(sizes: Mapping[str, Any]) -> int:
    """The fewest bytes that are live if half of the micro-batches' graphs are."""
    whole = {**sizes, "micro_batch": sizes["samples"]}
    return (most_bytes(**sizes) + most_bytes(**whole) // 3) // 2


find_the_leak = leak_task(
    Leak(
        lab="lab05",
        function="validation_loss",
        work=validated,
        reference=validation_loss,
        small=_small,
        large=_large,
        most_bytes=lambda sizes: most_bytes(**sizes),
        mutants={
            "backward_to_free": _with(backward=True),
            "mode_changed": _with(before=lambda model: model.eval()),
            "evaluation_mode": _with(
                before=lambda model: model.eval(), after=lambda model: model.train()
            ),
            "gradients_off": _with(before=lambda model: model.requires_grad_(False)),
            "gradients_cleared": _with(before=lambda model: model.zero_grad()),
            "ragged_as_full": _with(weight=lambda n, samples, count: 1 / count),
            "not_divided": _with(weight=lambda n, samples, count: float(n)),
            "means_not_weighed": _with(weight=lambda n, samples, count: 1 / samples),
        },
        leaks={
            "graphs_stay": _all_graphs,
            "outputs_stay": lambda sizes: most_bytes(**sizes),
        },
        mistakes={
            "graphs_stay": "Every micro-batch's outputs are still live at the end: something "
            "holds them, usually a loss's graph. Run the model under torch.no_grad(), or keep "
            "only numbers, loss.item().",
            "outputs_stay": "Too much is live at once: too many micro-batches' outputs, or copies "
            "of the data. Run one micro-batch at a time, and release its outputs before the next "
            "one runs.",
            "backward_to_free": "Your backward() frees the graphs, but it also adds to the "
            "model's gradients, which validation must not do. Run the model under torch.no_grad().",
            "mode_changed": "Your function changes the model's mode. Leave train() and eval() to "
            "the caller; no_grad() isn't a mode of the model.",
            "evaluation_mode": "Your loss comes from evaluation mode. leaky_validation leaves the "
            "model's mode alone: don't call eval() here.",
            "gradients_off": "After your function runs, gradients stay switched off, so nothing "
            "can train. Use `with torch.no_grad():`, which lasts for its block only.",
            "gradients_cleared": "Your function clears the model's gradients. They belong to the "
            "caller: leave them alone.",
            "ragged_as_full": "Your short last micro-batch has the same weight as a full one. "
            "Weight each one by its samples, as the given code does.",
            "not_divided": "You don't divide the sum by the number of samples.",
            "means_not_weighed": "You divide the sum of the micro-batches' means by the number of "
            "samples. First multiply each mean by its micro-batch's number of samples.",
        },
    )
)
