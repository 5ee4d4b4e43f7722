"""Stages of a pipeline: the layers and parameters of each, and its micro-batches in their order.

The order is 1F1B (PipeDream-Flush; Narayanan et al. 2021, Megatron-LM, figure 4, at the top): a
stage runs forward until as many micro-batches are in flight as there are stages from it to the
last, then backward and forward in turn. A stage frees its output once it has sent it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peakmem.specs.models import ModelShape, ParameterTensor, parameter_tensors
from peakmem.specs.recipes import Parallelism

if TYPE_CHECKING:
    from peakmem.predict.layers import Layers
    from peakmem.predict.simulated_autograd import Tape, Value

__all__ = ["PipelineStage", "play_stage", "stage_of", "stage_tensors"]


@dataclass(frozen=True)
class PipelineStage:
    """A part of a model's layers, on one device."""

    #: The layers' numbers.
    layers: range
    #: Whether it has the embeddings too.
    is_first: bool
    #: Whether it has the head and the loss too.
    is_last: bool
    #: The most micro-batches in flight at once.
    in_flight: int = 1


def stage_of(model: ModelShape, parallelism: Parallelism, index: int = 0) -> PipelineStage:
    """Return a stage of equal layers, counted from 0; ValueError where there is no such stage.

    >>> from peakmem.specs.models import model
    >>> stage_of(model("gpt2"), Parallelism(pipeline=4), 1)
    PipelineStage(layers=range(3, 6), is_first=False, is_last=False, in_flight=3)
    """
    stages = parallelism.pipeline
    if model.n_layers % stages:
        raise ValueError(
            f"{model.name}: {model.n_layers} layers cannot be cut into {stages} equal stages; "
            "choose a pipeline that divides them"
        )
    if not 0 <= index < stages:
        raise ValueError(f"expected a stage from 0 to {stages - 1}, but got {index!r}")
    each = model.n_layers // stages
    layers = range(index * each, (index + 1) * each)
    return PipelineStage(layers, index == 0, index == stages - 1, in_flight=stages - index)


def stage_tensors(model: ModelShape, stage: PipelineStage) -> Iterator[ParameterTensor]:
    """Yield the parameters of a stage; first and last both have a tied embedding."""
    layers = {f"blocks.{layer}" for layer in stage.layers}
    first, last = {"token_embedding", "position_embedding"}, {"final_norm", "head"}
    if model.tied:
        last.add("token_embedding")
    outside = (first if stage.is_first else set()) | (last if stage.is_last else set())
    for tensor in parameter_tensors(model):
        if tensor.layer in layers or (not tensor.layer and tensor.component in outside):
            yield tensor


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
