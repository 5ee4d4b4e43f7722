"""find_the_leak: losses that keep every batch's graph alive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.content.leaks import Leak, leak_task
from peakmem.probes.lab02 import LEAK_LAYERS, evaluate_batches, losses_bound, scatter_offset

__all__ = ["evaluate", "find_the_leak", "report_of_losses"]

_APART = 1e-3  # between two losses; the judge's tolerance is far smaller

if TYPE_CHECKING:
    from torch import Tensor, nn  # torch loads late: judging a correct answer doesn't need it

    _Batches = Iterable[tuple[Tensor, Tensor]]


def evaluate(model: nn.Module, batches: _Batches) -> list[float]:
    """Return the loss of each batch as a number."""
    import torch
    from torch.nn import functional as F

    with torch.no_grad():
        return [F.cross_entropy(model(x), targets).item() for x, targets in batches]


def report_of_losses(*, count: int, rows: int, width: int, seed: int) -> dict[str, Any]:
    """Return what `evaluate_batches` reports on `evaluate`, computed without torch."""

    def scattered(shape: tuple[int, ...], number: int) -> Any:
        turns = np.arange(np.prod(shape)) * 251 + scatter_offset(seed, number)
        return (turns % 4093 / 2**11 - 1).astype(np.float32).reshape(shape)

    scale = np.float32((3 / width) ** 0.5)
    layers = [
        (scattered((width, width), -1 - 2 * i) * scale, scattered((width,), -2 - 2 * i) * scale)
        for i in range(LEAK_LAYERS)
    ]
    losses = []
    for number in range(count):
        x = scattered((rows, width), number)
        for weight, bias in layers:
            x = np.tanh(x @ weight.T + bias)
        targets = (np.arange(rows) * 7 + seed + number) % width
        losses.append(float(np.mean(np.log(np.exp(x).sum(1)) - x[np.arange(rows), targets])))
    return {
        "losses": losses,
        "gradients": 0,
        "trainable": True,
        "training": True,
        "unchanged": True,
        "grad_enabled": True,
        "again": losses[:1],
        "evaluation": True,
        "frozen": True,
    }


def _mean_only(model: nn.Module, batches: _Batches) -> list[float]:
    return [float(np.mean(evaluate(model, batches)))]


def _sums(model: nn.Module, batches: _Batches) -> list[float]:
    return [float(total) for total in np.cumsum(evaluate(model, batches))]


def _frozen(model: nn.Module, batches: _Batches) -> list[float]:
    model.requires_grad_(False)
    return evaluate(model, batches)


def _thawed(model: nn.Module, batches: _Batches) -> list[float]:
    losses = evaluate(model, batches)
    model.requires_grad_(True)
    return losses


def _left_off(model: nn.Module, batches: _Batches) -> list[float]:
    import torch

    losses = evaluate(model, batches)
    torch.set_grad_enabled(False)
    return losses


def _left_in_eval(model: nn.Module, batches: _Batches) -> list[float]:
    model.eval()
    return evaluate(model, batches)


def _left_in_training(model: nn.Module, batches: _Batches) -> list[float]:
    losses = evaluate(model, batches)
    model.train()
    return losses


def _sizes(rng: np.random.Generator, count: int, rows: int, width: int) -> dict[str, int]:
    return {"count": count, "rows": rows, "width": width, "seed": int(rng.integers(2**31))}


def _small(rng: np.random.Generator) -> dict[str, int]:
    """Return sizes of batches whose losses differ by far more than the judge tolerates."""
    while True:
        count, rows, width = rng.integers(2, 6), rng.integers(3, 9), rng.integers(5, 12)
        sizes = _sizes(rng, int(count), int(rows), int(width))
        if np.diff(sorted(report_of_losses(**sizes)["losses"])).min() > _APART:
            return sizes


def _batches(number: float) -> Callable[[Mapping[str, int]], int]:
    """The bytes of `number` tensors of a batch's size for each batch."""
    return lambda sizes: int(4 * number * sizes["count"] * sizes["rows"] * sizes["width"])


find_the_leak = leak_task(
    Leak(
        lab="lab02",
        function="evaluate",
        work=evaluate_batches,
        reference=evaluate,
        results=report_of_losses,
        small=_small,
        # Enough batches that their inputs alone exceed the bound.
        large=lambda rng: _sizes(rng, int(rng.integers(28, 32)), 512, 128),
        most_bytes=losses_bound,
        mistakes={
            "graphs_stay": "Each loss still has its graph, which holds its batch's saved tensors. "
            "Take the number with `.item()`, or evaluate under `torch.no_grad()`.",
            "batches_stay": "You keep whole batches or outputs, or the graphs of some losses. "
            "Release a batch once its loss is a number.",
            "frozen": "Your function leaves the parameters with requires_grad=False, so the "
            "caller can no longer train them. Evaluate under `torch.no_grad()` instead.",
            "thawed": "After your function runs, a frozen parameter is trainable. Evaluate under "
            "`torch.no_grad()` instead, which changes no parameter.",
            "gradients_left_off": "After your function runs, torch no longer records gradients. "
            "Use `with torch.no_grad():`, which lasts for its block only.",
            "left_in_eval": "After your function runs, the model is in evaluation mode. Leave its "
            "mode alone, or restore it at the end.",
            "left_in_training": "After your function runs, the model is in training mode, even if "
            "it was in evaluation mode before. Leave its mode alone, or restore it at the end.",
            "mean_only": "You return one mean loss. Return the loss of each batch.",
            "running_sum": "You return running sums. Return the loss of each batch.",
        },
        mutants={
            "mean_only": _mean_only,
            "running_sum": _sums,
            "frozen": _frozen,
            "thawed": _thawed,
            "left_in_eval": _left_in_eval,
            "left_in_training": _left_in_training,
            "gradients_left_off": _left_off,
        },
        leaks={"graphs_stay": _batches(5), "batches_stay": _batches(0)},
    ),
    results_points=0,
    peak_points=2,
    stretch=True,
)
