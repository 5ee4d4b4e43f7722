"""find_the_leak: the first stage's optimizer stays in memory through the second stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.content.leaks import Leak, leak_task
from peakmem.probes.lab03.leak import parameter_bytes, staged_training

__all__ = ["find_the_leak", "train_in_two_stages"]

# P is 12 MiB. With more layers, gradients would be so small that a mistake hardly changes the
# results; with fewer, gradients that accumulate would come near the bound.
_WIDTH, _LAYERS, _BATCHES = 1024, 3, 9
_RATES = (0.1, 0.01)

Batches = Sequence[tuple[Tensor, Tensor]]


def train_in_two_stages(
    model: nn.Module,
    make_optimizer: Callable[[float], Any],
    batches: Batches,
    *,
    rates: tuple[float, float] = _RATES,
    clears: bool = True,
    first_stage: Callable[[int], int] = lambda n: n // 2,
    restarts: Callable[[int, int], bool] = lambda number, first: number in (0, first),
) -> list[float]:
    """Train with a new optimizer in each stage; return the losses.

    Each option turns it into one of the mistakes.
    """
    losses, optimizer, first = [], make_optimizer(rates[0]), first_stage(len(batches))
    for number, (x, y) in enumerate(batches):
        rate = rates[number >= first]
        if restarts(number, first):
            optimizer = make_optimizer(rate)
        optimizer.lr = rate
        loss = F.mse_loss(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if clears:
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def _with(**options: Any) -> Callable[..., list[float]]:
    return lambda *given: train_in_two_stages(*given, **options)


def _sizes(rng: np.random.Generator, width: int, n_layers: int, n_batches: int) -> dict[str, int]:
    seed = int(rng.integers(2**31))
    return {"width": width, "n_layers": n_layers, "n_batches": n_batches, "seed": seed}


def _parameters(times: float) -> Callable[[Mapping[str, Any]], int]:
    return lambda sizes: int(times * parameter_bytes(sizes["width"], sizes["n_layers"]))


find_the_leak = leak_task(
    Leak(
        lab="lab03",
        function="train_in_two_stages",
        work=staged_training,
        reference=train_in_two_stages,
        small=lambda rng: _sizes(rng, int(rng.integers(3, 9)), 2, 2 * int(rng.integers(3, 5)) + 1),
        large=lambda rng: _sizes(rng, _WIDTH, _LAYERS, _BATCHES),
        edges=[{"width": 5, "n_layers": 2, "n_batches": n, "seed": 0} for n in (6, 1)],
        most_bytes=_parameters(3.5),
        mutants={
            "velocity_carried_over": _with(restarts=lambda number, first: number == 0),
            "optimizer_each_batch": _with(restarts=lambda number, first: True),
            "one_rate": _with(rates=(0.1, 0.1)),
            "rates_swapped": _with(rates=(0.01, 0.1)),
            "gradients_add_up": _with(clears=False),
            "longer_first_stage": _with(first_stage=lambda n: n - n // 2),
        },
        leaks={"first_optimizer_stays": _parameters(3.9)},
        mistakes={
            "velocity_carried_over": "Your second stage continues with the first stage's "
            "velocity. That saves memory, but changes the results: start each stage with a new "
            "optimizer.",
            "optimizer_each_batch": "You keep no velocity from batch to batch, as if each batch "
            "had its own optimizer or none. Make one optimizer for each stage.",
            "one_rate": "Your second stage trains at the first stage's rate. Its rate is 0.01.",
            "rates_swapped": "Your stages' rates are swapped. The first trains at 0.1, the second "
            "at 0.01.",
            "gradients_add_up": "Your gradients are never cleared, so each step sees the sum of "
            "all earlier ones. Call zero_grad() after each step.",
            "longer_first_stage": "If the number of batches is odd, the first stage takes the "
            "smaller half: len(batches) // 2.",
            "first_optimizer_stays": "One P too many is live in the second stage, usually the "
            "first stage's velocity: a name, list or closure holds its optimizer. Drop that "
            "reference before the second stage's first step.",
        },
    )
)
