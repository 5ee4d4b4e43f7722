"""Stages of a pipeline: the layers and parameters of each, and its micro-batches in flight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peakmem.specs.models import ModelShape, ParameterTensor, parameter_tensors
from peakmem.specs.recipes import Parallelism

__all__ = ["PipelineStage", "stage_of", "stage_tensors"]


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
