"""Exercise: a training loop in low precision, judged by its weights, losses and bytes.

What trust means here: the losses and the weights speak for themselves, since the judge works the
loss out again from the weights. That forward and backward ran in 16 bits is told by the meter, in
the student's process. A step is too small to be seen from outside, and code that bends the meter
would have to bend two measurements of it, one of them plain float32's.

The weights' spread, the number of micro-batches and the learning rates are no typical ones. They
were chosen so that each mistake shows within 60 steps of a tiny model: at an ordinary batch and a
learning rate of 0.1, float16 without scaling or masters follows float32 to the percent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autograder.task import Answer, Case, Finding, Task
from autograder.tasks.lab07.master_weights import NO_AMP
from peakmem.probes.lab07 import TokenModel

__all__ = ["train"]

_PARTS = {"float32": "float32", "float16": "float16 keeps up", "bfloat16": "bfloat16"}
_VOCAB, _WIDTH, _TOKENS, _STEPS = 16, 32, 64, 60
_MICRO_BATCHES = 2**22  # logits' gradients are below 2^-27: in float16 they are 0, and weights' too
# Small enough that an update is mostly below half a gap of 16-bit weights.
_LR = {"float32": 0.01, "float16": 0.001, "bfloat16": 0.01}
# What of float32's way down has to be covered: a scaler may skip some steps while it searches.
_WAY = {"float32": 0.999, "float16": 0.75, "bfloat16": 0.95}
_BYTES = 0.8  # of float32's: right answers take 0.64, as the loss and what it keeps stay in float32


def _cases(rng: np.random.Generator) -> list[Case]:
    # The 16-bit arms begin from weights that float16 does not hold exactly: masters have to.
    tokens = rng.integers(_VOCAB, size=_TOKENS)
    targets = rng.permutation(_VOCAB)[tokens]
    shapes = ((_VOCAB, _WIDTH), (_WIDTH, _WIDTH), (_WIDTH, _VOCAB))
    weights = [(0.3 * rng.standard_normal(s)).astype(np.float32) for s in shapes]
    inputs = {
        "weights": weights,
        "parts": _MICRO_BATCHES,
        "batches": [[tokens, targets]] * _STEPS,
    }
    return [
        Case((part,), {**inputs, "precision": name, "lr": _LR[name] * _MICRO_BATCHES})
        for name, part in _PARTS.items()
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    (part,) = case.parts
    return {part: _finding(case, answer.value)}


def _finding(case: Case, value: Any) -> Finding:
    inputs = case.inputs
    precision = inputs["precision"]
    if not _readable(case, value):
        return Finding(
            False, f"Expected one finite loss for each of the {_STEPS} batches, as a list."
        )
    if not value["in_place"]:
        said = "Expected the model's own float32 parameters to be updated in place."
        return Finding(False, said, ("replaces_parameters",))
    right, end = _float32_losses(inputs)
    found = value["losses"]
    reached = _loss(value["weights"], inputs)
    way = (right[0] - reached) / (right[0] - end)
    scale = f"In {precision} {way:.0%} of float32's way down was covered; {_WAY[precision]:.1%} "
    if way < _WAY[precision]:
        return Finding(False, f"{scale}is expected.", _why(way, found, inputs))
    if not _near_losses(found, right, precision):
        return Finding(
            False,
            f"Your losses begin with {found[0]:.3g} and end with {found[-1]:.3g}; in float32 they "
            f"go from {right[0]:.3g} to {right[-1]:.3g}.",
            _scaled_losses(found, right),
        )
    if precision != "float32" and value["rise_bytes"] > _BYTES * value["float32_rise_bytes"]:
        share = value["rise_bytes"] / value["float32_rise_bytes"]
        said = f"A step in {precision} took {share:.0%} of float32's bytes; expected about 64%."
        return Finding(False, said, ("runs_in_float32",))
    return Finding(True)


def _why(way: float, losses: Sequence[float], inputs: Mapping[str, Any]) -> tuple[str, ...]:
    if way < -0.01:
        return ("does_not_learn",)
    if inputs["precision"] == "float16" and way < 0.3:
        return ("gradients_flushed",)
    return ("updates_lost",) if inputs["precision"] != "float32" and way < 0.9 else ()


def _near_losses(found: Sequence[float], right: Sequence[float], precision: str) -> bool:
    """Each loss lies on float32's curve, which a scaler's skipped steps may only delay."""
    if precision == "float32":
        return bool(np.allclose(found, right, rtol=1e-3))
    first, last = right[0], right[-1]
    slack = 0.02 * first
    late = last + (1 - _WAY[precision]) * (first - last) + slack
    return abs(found[0] - first) <= slack and last - slack <= found[-1] <= late


def _scaled_losses(found: Sequence[float], right: Sequence[float]) -> tuple[str, ...]:
    return ("returns_scaled_loss",) if found[0] > 2 * right[0] else ()


def _model(weights: Sequence[npt.NDArray[Any]], inputs: Mapping[str, Any]) -> TokenModel:
    return TokenModel(weights, inputs["parts"])


def _batch(inputs: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    tokens, targets = inputs["batches"][0]
    return torch.tensor(tokens), torch.tensor(targets)


def _loss(weights: Sequence[npt.NDArray[Any]], inputs: Mapping[str, Any]) -> float:
    with torch.no_grad():
        return float(_model(weights, inputs)(*_batch(inputs)))


def _float32_losses(inputs: Mapping[str, Any]) -> tuple[list[float], float]:
    """The loss before each step of plain float32 SGD, and after the last one."""
    model = _model(inputs["weights"], inputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=inputs["lr"], foreach=False)
    losses = []
    for _ in inputs["batches"]:
        optimizer.zero_grad()
        loss = model(*_batch(inputs))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, float(model(*_batch(inputs)).detach())


def _readable(case: Case, value: Any) -> bool:
    names = {"losses", "weights", "in_place", "rise_bytes", "float32_rise_bytes"}
    if not (isinstance(value, dict) and value.keys() == names):
        return False
    losses, weights = value["losses"], value["weights"]
    return (
        isinstance(losses, list)
        and len(losses) == len(case.inputs["batches"])
        and all(type(loss) is float and math.isfinite(loss) for loss in losses)
        and isinstance(weights, list)
        and all(isinstance(w, np.ndarray) and w.dtype == np.float32 for w in weights)
        and [w.shape for w in weights] == [w.shape for w in case.inputs["weights"]]
        and type(value["rise_bytes"]) is int
        and type(value["float32_rise_bytes"]) is int
        and value["float32_rise_bytes"] > 0
    )


train = Task(
    id="lab07-train",
    parts={"float32": 1, "float16 keeps up": 2, "bfloat16": 1},
    defines=("train",),
    probe="train",
    cases=_cases,
    judge=_judge,
    ban=NO_AMP,
    trust="measured",
    mistakes={
        "gradients_flushed": "In float16 your training hardly moves: the gradients are 0. Scale "
        "the loss before backward. Divide in float32, since dividing in float16 makes them 0 "
        "again.",
        "updates_lost": "Your training goes the right way but falls behind float32. Keep the "
        "model's float32 parameters as masters, and round them afresh before each forward.",
        "does_not_learn": "Your loss rises. Divide the gradients by the scale, once, and step "
        "against them.",
        "runs_in_float32": "Your results are right, but the bytes are float32's. Forward and "
        "backward have to run on 16-bit copies of the parameters.",
        "replaces_parameters": "Your model's parameters are no longer the same float32 tensors. "
        "They are the masters: cast copies of them, and update them in place.",
        "returns_scaled_loss": "Your list holds scaled losses. Return the loss itself.",
    },
)
