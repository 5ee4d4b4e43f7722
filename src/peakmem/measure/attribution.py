"""Owners of measured tensors, inferred from the operators and hooks that touch them.

Parameters are leaves of autograd's graph, or `nn.Parameter`s, among forward's operands. The
optimizer's hooks reveal gradients, optimizer state, and master weights, which the optimizer updates
but forward never uses. Logits are the input and the output of the loss's log softmax. Of the other
tensors, those that forward makes and backward still finds are activations, and so are those older
than the record, which are mostly batches. Everything else is temporary.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import torch
from torch.nn.modules.module import register_module_buffer_registration_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from peakmem.measure.storages import Row, Storages, tensors_in
from peakmem.specs.ledger import Event, Ledger, Owner, Phase, Tensor

__all__ = ["Owners", "StepPart", "ledger_of"]

_NAMES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
}


class StepPart(IntEnum):
    """The part of a step that runs: a phase of the ledger, or checkpointing's second forward."""

    FORWARD = 0
    BACKWARD = 1
    OPTIMIZER = 2
    AGAIN = 3

    @property
    def phase(self) -> Phase:
        """The phase of the ledger; checkpointing's second forward is a part of backward."""
        return ("forward", "backward", "optimizer", "backward")[self]


class Owners:
    """Marks the owners in a Storages' rows, as operators and optimizers reveal them."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._stepping = False
        self._handles: list[Any] = []

    def start(self) -> None:
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
            register_module_buffer_registration_hook(self._buffer),
        ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()

    def part(self) -> StepPart:
        """Return the part of the step that runs now."""
        if torch._C._current_graph_task_id() != -1:
            return StepPart.AGAIN if torch.is_grad_enabled() else StepPart.BACKWARD
        if self._stepping and not torch.is_grad_enabled():  # an error may have ended the step
            return StepPart.OPTIMIZER
        return StepPart.FORWARD

    def claim(self, things: Any) -> None:
        """Mark the tensors of modules and optimizers among the things given to the meter."""
        if isinstance(things, torch.nn.Module):
            self._mark([*things.parameters(), *things.buffers()], "parameter")
            self._mark([p.grad for p in things.parameters()], "gradient")
        elif isinstance(things, torch.optim.Optimizer):
            self._optimizer(things)
        elif isinstance(things, torch.nn.Parameter):
            self._mark([things], "parameter")
        elif isinstance(things, (list, tuple)):
            for thing in things:
                self.claim(thing)
        elif isinstance(things, dict):
            self.claim(list(things.values()))

    def took(self, tensors: Sequence[torch.Tensor]) -> None:
        """Mark parameters among the arguments of an operator of forward."""
        for tensor in tensors:
            if (tensor.requires_grad and _is_leaf(tensor)) or isinstance(
                tensor, torch.nn.Parameter
            ):
                row = self._storages.row(tensor)
                if row is not None:
                    row.used = True

    def ran(self, operator: str, arguments: Sequence[torch.Tensor], result: Any) -> None:
        """Mark tensors of an operator that reveals their purpose."""
        if operator == "aten::_log_softmax":
            self._mark([arguments[0], result], "logits")
        elif operator.startswith(("c10d::", "_c10d_functional::")):
            self._mark(result, "communication")

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._stepping = True
        self._optimizer(optimizer)

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._stepping = False
        self._optimizer(optimizer)

    def _optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        for tensor in tensors_in([group["params"] for group in optimizer.param_groups]):
            self._mark([tensor.grad], "gradient")
            row = self._storages.row(tensor)
            if row is not None:
                row.optimized = True
        self._mark(list(optimizer.state.values()), "optimizer_state")

    def _buffer(self, module: Any, name: str, buffer: Any) -> None:
        self._mark([buffer], "parameter")

    def _mark(self, things: Any, owner: Owner) -> None:
        for tensor in tensors_in(things):
            row = self._storages.row(tensor)
            if row is not None and row.owner is None:
                row.owner = owner


def ledger_of(rows: Sequence[Row], names: Sequence[str], parts: bytes, start: int) -> Ledger:
    """Return the ledger of the events from `start` on; `parts` has one byte for each event."""
    last = len(names) - 1
    backward = [i for i, part in enumerate(parts) if part == StepPart.BACKWARD]
    trains = any(row.used for row in rows)
    tensors = []
    for number, row in enumerate(rows):
        death = last if row.death is None else min(row.death, last)
        if death < max(row.birth, start) or not row.bytes:
            continue
        owner = _owner(row, death, parts, backward, start, trains)
        tensors.append(
            Tensor(
                name=f"{owner} {number} of {row.maker}",
                owner=owner,
                shape=row.shape,
                dtype=_NAMES.get(row.dtype, str(row.dtype).removeprefix("torch.")),
                bytes=row.bytes,
                birth=max(row.birth - start, 0),
                death=death - start,
                layer=row.layer,
                module=row.module,
            )
        )
    events = (
        Event(name, StepPart(part).phase)
        for name, part in zip(names[start:], parts[start:], strict=True)
    )
    return Ledger(tuple(tensors), tuple(events))


def _owner(
    row: Row, death: int, parts: bytes, backward: Sequence[int], start: int, trains: bool
) -> Owner:
    if row.used:
        return "parameter"
    if row.optimized:
        return "master" if trains else "parameter"
    if row.owner is not None:
        return row.owner
    if row.birth <= start:
        return "activation"
    if parts[row.birth] in (StepPart.FORWARD, StepPart.AGAIN):
        first = bisect_left(backward, row.birth)
        if first < len(backward) and backward[first] <= death:
            return "activation"
    return "temporary"


def _is_leaf(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a leaf of autograd's graph.

    torch can't say for a parameter's view that was written to, as optimizers that work on pieces
    do. Such a view isn't a leaf.
    """
    try:
        return tensor.is_leaf
    except RuntimeError:
        return False
