"""Plays the micro-batches of a pipeline's stage in their order, up to the optimizer's step.

The order is 1F1B (PipeDream-Flush; Narayanan et al. 2021, Megatron-LM, figure 4, at the top): a
stage runs forward until as many micro-batches are in flight as there are stages from it to the
last, then backward and forward in turn. A stage frees its output once it has sent it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from peakmem.predict.layers import Layers
from peakmem.predict.simulated_autograd import Tape, Value

__all__ = ["play_last_stage", "play_stage"]


def play_last_stage(tape: Tape, model: Layers, batches: list[dict[str, Value]]) -> list[Value]:
    """Play `peakmem.nn.training_step` up to the optimizer's step; return the last loss.

    A pipeline's last stage does the same with its inputs from the stage before.
    """
    held: list[Value] = []  # the previous micro-batch's loss, until the variable is rebound
    for batch in batches:
        tape.phase = "forward"
        start = batch["tokens"] if model.stage.is_first else model.received()
        loss = model.loss(start, batch["targets"])
        tape.touch(held)
        held = [loss]
        part = model.part_of_mean(loss)
        tape.phase = "backward"
        tape.event("start of backward", [part])
        seed = tape.make("gradient of the loss", (), part.dtype)
        with tape.holding(loss, part, seed, start):
            gradients = tape.backward(part, seed)
            if not model.stage.is_first:
                tape.event("send to the stage before", [gradients[start]])
    tape.phase = "optimizer"
    return held


def play_stage(tape: Tape, model: Layers, batches: list[dict[str, Value]]) -> list[Value]:
    """Play all micro-batches of a stage that isn't the last, up to the optimizer's step.

    Returns an empty list: nothing lives on into that step.
    """
    stage = model.stage
    under_way: deque[tuple[list[Any], Value, Value]] = deque()

    def forward(batch: dict[str, Value]) -> None:
        tape.phase = "forward"
        nodes: list[Any] = []
        with tape.graph(nodes):
            start = batch["tokens"] if stage.is_first else model.received()
            output = model.hidden(start)
            tape.event("send to the next stage", [output])
        under_way.append((nodes, start, output))

    def backward() -> None:
        tape.phase = "backward"
        nodes, start, output = under_way.popleft()
        tape.event("receive from the next stage")
        seed = tape.make("gradient of what was sent", output.shape, output.dtype, "communication")
        with tape.graph(nodes), tape.holding(start):
            gradients = tape.backward(output, seed)
            if not stage.is_first:
                tape.event("send to the stage before", [gradients[start]])

    for batch in batches:
        forward(batch)
        if len(under_way) == stage.in_flight:
            backward()
    while under_way:
        backward()
    tape.phase = "optimizer"
    return []
