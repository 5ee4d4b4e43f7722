"""Probe of lab 5's epoch: many updates, whose optimizer and scheduler log their calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from peakmem.probes import Namespace
from peakmem.probes.arrays import gradient_arrays
from peakmem.probes.lab05.forwards import note_forwards
from peakmem.probes.lab05.models import Regression

__all__ = ["train_epoch"]

Array = np.ndarray[Any, np.dtype[Any]]


def train_epoch(
    student: Namespace,
    weights: Sequence[Array],
    batches: Sequence[Sequence[Array]],
    accumulation_steps: int,
    lr: float,
    max_norm: float | None,
    lr_factor: float | None,
    begins_anew: bool = False,
) -> dict[str, Any]:
    """Call `train_epoch` with an optimizer and a scheduler that log their calls.

    The scheduler multiplies lr by `lr_factor` at each of its steps; None means no scheduler.
    Arguments that are None keep the student's defaults. The optimizer has one group per parameter.
    Returns `value`, `events` ("update" and "schedule", in order), the `gradients` at each update,
    whether gradients were `clean` at the end, `waiting` as in `accumulate_gradients`, and the
    number of `forwards`. The loader is a generator; with `begins_anew`, it restarts in each loop
    like a DataLoader. It has no length.
    """
    model = Regression(weights)
    loader = _Loader(batches)
    forwards = note_forwards(model)
    optimizer, noted, events = _noting_sgd(model, lr)
    options: dict[str, Any] = {} if max_norm is None else {"max_norm": max_norm}
    if lr_factor is not None:
        options["scheduler"] = _scheduler(optimizer, lr_factor, events)
    value = student.train_epoch(
        model, optimizer, loader if begins_anew else iter(loader), accumulation_steps, **options
    )
    sizes, waiting = forwards()
    left = [gradient for gradient in gradient_arrays(model.parameters()) if gradient is not None]
    return {
        "value": value,
        "events": events,
        "gradients": noted,
        "clean": not any(gradient.any() for gradient in left),
        "waiting": waiting,
        "forwards": len(sizes),
    }


class _Loader:
    """Yields all batches in each of two loops over it; a third loop gets none, so that it ends."""

    def __init__(self, batches: Sequence[Sequence[Array]]) -> None:
        self._batches, self._loops = batches, 0

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        self._loops += 1
        for batch in self._batches if self._loops < 3 else []:
            yield tuple(torch.tensor(array) for array in batch)


def _noting_sgd(
    model: nn.Module, lr: float
) -> tuple[torch.optim.Optimizer, list[list[Array | None]], list[str]]:
    """Return torch's SGD, the gradients at each of its steps, and a list of its steps.

    The lists aren't attributes of the optimizer.
    """
    noted: list[list[Array | None]] = []
    events: list[str] = []

    class NotingSGD(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            if closure is not None:
                closure()  # computes the gradients
            events.append("update")
            noted.append(gradient_arrays(model.parameters()))
            return super().step()

    groups = [{"params": [parameter]} for parameter in model.parameters()]
    return NotingSGD(groups, lr=lr), noted, events


def _scheduler(optimizer: torch.optim.Optimizer, factor: float, events: list[str]) -> Any:
    """Return a learning-rate scheduler whose logged steps multiply lr by a factor."""

    class Scheduler:
        def step(self) -> None:
            events.append("schedule")
            for group in optimizer.param_groups:
                group["lr"] *= factor

    return Scheduler()
