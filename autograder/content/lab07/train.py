"""Exercise: training in low precision that keeps up with float32, and takes fewer bytes.

The loss is a mean over 4 million micro-batches, and each step is small. So in naive float16
training the gradients are 0, and updates of 16-bit weights are lost; students have to fix both. A
larger model would need far more steps to show this: there, even float16 without scaling or masters
follows float32 to within a percent.

In float16 two batches overflow at any useful scale, the first one and one in the middle, and only
in the second of the three parameters, so a loop that updates one weight after another notices too
late. The correct reaction is to skip the whole batch, once. So the losses and weights are compared
with those of float32 without these two steps.

How far the figures can be trusted: the meter in the student's process counts the bytes of the same
training run whose losses and weights are judged; float32's bytes are measured on the trusted side.
Fewer bytes than any 16-bit step takes are implausible, and then the exercise isn't judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from autograder.content.lab07.master_weights import NO_AMP
from autograder.content.lab07.plain_training import (
    DEFAULT_LR,
    Training,
    Weights,
    mean_loss,
    rise_bytes_of,
    trained_in_float32,
)
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab07 import TokenModel

__all__ = ["train"]

_PARTS = {"float32": "float32", "float16": "float16 keeps up", "bfloat16": "bfloat16"}
_VOCAB, _WIDTH, _TOKENS, _STEPS = 16, 32, 512, 40
_SHAPES = ((_VOCAB + 1, _WIDTH), (_WIDTH, _WIDTH), (_WIDTH, _VOCAB))  # + 1 for the rare token
_MICRO_BATCHES = 2**22  # logits' gradients are below 2^-30, so all gradients are 0 in float16
_LR = {"float32": 0.01, "float16": 0.001, "bfloat16": 0.01}
# The required share of float32's fall: a scaler may skip steps while it finds its scale.
_WAY = {"float32": 0.999, "float16": 0.75, "bfloat16": 0.95}
# How far the weights may be from float32's, as a share of the distance moved. In bfloat16 a unit's
# ReLU may be off when float32's is on, so that its weights lag behind: by up to 0.064 in 60 draws.
_OFF = {"float32": 0.01, "float16": 0.3, "bfloat16": 0.2}
_AT_MOST = 0.8  # of float32's bytes: correct answers take 0.63, as the loss stays in float32
_OF_ONE_STEP = 1.3  # of these: more than a step takes in any precision
_AT_LEAST = 0.45  # of these: the saved tensors of forward and loss alone take 0.5


def _cases(rng: np.random.Generator) -> list[Case]:
    follower = rng.permutation(_VOCAB)
    usual = [rng.integers(_VOCAB, size=_TOKENS) for _ in range(4)]
    rare = rng.integers(_VOCAB, size=_TOKENS)
    pool = [[tokens, follower[tokens]] for tokens in (*usual, rare)]
    rare[rng.integers(_TOKENS)] = TokenModel.RARE  # the target stays the same
    pool = [[array.astype(np.uint8) for array in batch] for batch in pool]
    order = [int(index) for index in rng.integers(len(usual), size=_STEPS)]
    bursts = (0, int(rng.integers(_STEPS // 3, _STEPS // 2)))
    overflowing = [len(usual) if step in bursts else order[step] for step in range(_STEPS)]
    # The 16-bit runs start from weights that only float32 masters hold exactly.
    weights = [(0.3 * rng.standard_normal(s)).astype(np.float32) for s in _SHAPES]
    inputs = {"weights": weights, "pool": pool}
    return [
        Case(
            (part,),
            {
                **inputs,
                "order": overflowing if name == "float16" else order,
                "precision": name,
                **_step_size(name),
            },
        )
        for name, part in _PARTS.items()
    ]


def _step_size(precision: str) -> dict[str, Any]:
    """In float32 the learning rate keeps its default, and `parts` compensates."""
    if precision == "float32":
        return {"parts": round(DEFAULT_LR / _LR[precision]), "lr": None}
    return {"parts": _MICRO_BATCHES, "lr": _LR[precision] * _MICRO_BATCHES}


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    (part,) = case.parts
    return {part: _finding(case.inputs, answer.value)}


def _finding(inputs: Mapping[str, Any], value: Any) -> Finding:
    if not _readable(inputs, value):
        return Finding(False, f"Expected a list with one loss for each of the {_STEPS} batches.")
    if not value["in_place"]:
        said = "Expected the model's own float32 parameters to be updated in place."
        return Finding(False, said, ("replaces_parameters",))
    right = trained_in_float32(inputs)
    return (
        _weights_finding(inputs, right, value)
        or _losses_finding(inputs["precision"], right, value["losses"])
        or _bytes_finding(inputs["precision"], value["rise_bytes"])
        or _forwards_finding(inputs["precision"], value["forwards"])
        or Finding(True)
    )


def _weights_finding(
    inputs: Mapping[str, Any], right: Training, value: Mapping[str, Any]
) -> Finding | None:
    precision, weights = inputs["precision"], value["weights"]
    if not all(np.isfinite(w).all() for w in weights):
        said = f"Trained in {precision}, the weights hold inf or NaN."
        return Finding(False, said, ("never_skips",) if precision == "float16" else ())
    far = [float(np.abs(w - r).max()) for w, r in zip(weights, right.weights, strict=True)]
    if precision == "float16" and max(far) > 1:
        said = f"Trained in float16, a weight is {max(far):.2g} away from where float32 leads: it "
        said += "was moved by gradients that had overflowed, or were still scaled."
        return Finding(False, said, _why_far(far, value["rise_bytes"]))
    way = (right.first - mean_loss(weights, inputs)) / (right.first - right.last)
    if not way >= _WAY[precision]:
        said = f"In {precision} the loss fell by {way:.0%} of float32's fall; expected at least "
        said += f"{_WAY[precision]:.1%}."
        return Finding(False, said, _why(way, value["losses"], precision))
    off = _distance(weights, right.weights) / _distance(right.weights, inputs["weights"])
    allowed = _OFF[precision]
    if not off <= allowed:
        said = f"Trained in {precision}, your weights miss float32's by {off:.0%} of the distance "
        return Finding(False, f"{said}that those moved. Expected at most {allowed:.0%}.")
    return None


def _distance(weights: Weights, others: Weights) -> float:
    pairs = zip(weights, others, strict=True)
    return math.sqrt(sum(float(np.square(one - other).sum()) for one, other in pairs))


def _why_far(far: Sequence[float], rise_bytes: int) -> tuple[str, ...]:
    """Why a batch that overflows float16 in the second of three weights moved the weights."""
    if rise_bytes > _AT_MOST * _float32_rise_bytes():
        return ("runs_in_float32",)
    return ("skips_by_weight",) if far[1] <= 1 else ()


def _why(way: float, losses: Sequence[float], precision: str) -> tuple[str, ...]:
    if way < -0.01:
        return ("does_not_learn",)
    if precision == "float16" and way < 0.15:
        return ("gradients_flushed",)
    return ("updates_lost",) if precision != "float32" and way < 0.9 else ()


def _losses_finding(precision: str, right: Training, found: Sequence[float]) -> Finding | None:
    """Each loss must be on float32's curve, which skipped steps may only delay."""
    if precision != "float32" and _is_rounded(precision, found):
        return Finding(False, f"All your losses are numbers of {precision}.", ("rounds_losses",))
    off = [step for step, loss in enumerate(found) if not _near(precision, right, step, loss)]
    fell = _share_of_fall(right, found)
    if not off and fell > 0.5:
        return None
    if abs(fell) < 0.1:
        said = f"In {precision} your weights move, but the losses in your list don't fall."
        return Finding(False, said, ("copies_not_refreshed",))
    step = off[0] if off else _STEPS - 1
    expected = right.losses[step]
    said = f"Your loss number {step + 1} is {found[step]:.4g}; float32's is {expected:.4g}."
    if found[1] > 2 * right.losses[1]:
        return Finding(False, said, ("returns_scaled_loss",))
    # The first loss belongs to the given weights, whatever the training does later.
    early = precision == "float32" and 0.5 * right.losses[0] < found[0] < right.losses[0]
    return Finding(False, said, ("loss_after_the_step",) if early and step == 0 else ())


def _share_of_fall(right: Training, found: Sequence[float]) -> float:
    """How far the last losses have fallen, as a share of float32's fall."""
    late = range(_STEPS * 3 // 4, _STEPS)
    falls = [sum(right.still[i] - losses[i] for i in late) for losses in (found, right.losses)]
    return falls[0] / falls[1]


def _is_rounded(precision: str, found: Sequence[float]) -> bool:
    exact = torch.tensor(found, dtype=torch.float64)
    return torch.equal(exact.to(getattr(torch, precision)).double(), exact)


def _near(precision: str, right: Training, step: int, loss: float) -> bool:
    expected, whole = right.losses[step], right.whole[step]
    if precision == "float32":
        return math.isclose(loss, expected, rel_tol=1e-3)
    # Batches differ by a few percent, so a delay looks slightly longer than it is.
    late = max(right.per_token[max(0, step - round((1 - _WAY[precision]) * _STEPS)) : step + 1])
    highest = 1.05 * late / whole if step > 1 else 1.02 * expected
    return 0.98 * expected <= loss <= highest


def _bytes_finding(precision: str, rise_bytes: int) -> Finding | None:
    share = rise_bytes / _float32_rise_bytes()
    if not share >= (0.9 if precision == "float32" else _AT_LEAST):
        doubt = f"A step in {precision} took {share:.0%} of float32's bytes, less than its weights "
        return Finding(False, doubt=f"{doubt}and activations need. An instructor has to look.")
    if precision != "float32" and not share <= _AT_MOST:
        said = f"Training in {precision} took {share:.0%} of the bytes of a float32 step; expected "
        mistake = "keeps_steps" if share > _OF_ONE_STEP else "runs_in_float32"
        return Finding(False, f"{said}about 63%.", (mistake,))
    return None


def _forwards_finding(precision: str, forwards: Mapping[str, Any]) -> Finding | None:
    enough = [name for name, count in forwards.items() if type(count) is int and count >= _STEPS]
    if precision in enough:
        return None
    if other := [name for name in ("float16", "bfloat16") if name in enough]:
        said = f"For precision {precision}, your model ran in {other[0]}."
        return Finding(False, said, ("another_dtype",))
    return Finding(False, doubt=_UNSEEN.format(precision=precision, steps=_STEPS))


_UNSEEN = (
    "Your losses and weights are correct, but the grader didn't see the model run in {precision} "
    "on each of the {steps} batches: call the model itself. An instructor will look at this."
)


@cache
def _float32_rise_bytes() -> int:
    """How far live bytes rise in a plain float32 step; all draws have the same shapes."""
    model = TokenModel([np.zeros(shape, np.float32) for shape in _SHAPES], _MICRO_BATCHES)
    return rise_bytes_of(model, _TOKENS)


def _readable(inputs: Mapping[str, Any], value: Any) -> bool:
    names = {"losses", "weights", "in_place", "rise_bytes", "forwards"}
    if not (isinstance(value, dict) and value.keys() == names):
        return False
    losses, weights = value["losses"], value["weights"]
    return (
        isinstance(losses, list)
        and len(losses) == len(inputs["order"])
        and all(type(loss) is float for loss in losses)
        and isinstance(weights, list)
        and all(isinstance(w, np.ndarray) and w.dtype == np.float32 for w in weights)
        and [w.shape for w in weights] == list(_SHAPES)
        and type(value["in_place"]) is bool
        and type(value["rise_bytes"]) is int
        and abs(value["rise_bytes"]) < 2**63
        and isinstance(value["forwards"], dict)
    )


train = Task(
    id="lab07-train",
    parts={"float32": 1, "float16 keeps up": 2, "bfloat16": 1},
    defines=("train",),
    probe="train",
    stretch=True,
    cases=_cases,
    judge=_judge,
    ban=NO_AMP,
    trust="measured",
    mistakes={
        "gradients_flushed": "In float16 your training hardly moves because the gradients are 0. "
        "Scale the loss before backward. Divide the gradients in float32, because dividing in "
        "float16 makes them 0 again. If they aren't 0, check whether one overflow makes you skip "
        "all later steps.",
        "updates_lost": "Your training goes in the right direction but falls behind float32. Keep "
        "the model's float32 parameters as masters, and round them again before each forward.",
        "does_not_learn": "Your loss rises. Divide the gradients by the scale, once, and step "
        "against them.",
        "runs_in_float32": "Your results are correct, but your step takes float32's bytes. Run "
        "forward and backward on 16-bit copies of the parameters.",
        "copies_not_refreshed": "Your model always runs on its first copies. Round the float32 "
        "parameters again before each forward.",
        "another_dtype": "Your model doesn't run in the given precision. Cast the copies to "
        "getattr(torch, precision).",
        "rounds_losses": "Your losses are rounded to 16 bits. The model's loss is in float32: "
        "record loss.item().",
        "keeps_steps": "Your results are correct, but the bytes grow with each step. A loss has a "
        "graph, which holds the step's copies and their gradients: record loss.item(), and keep "
        "no list of copies.",
        "never_skips": "In float16 your weights end up inf or NaN: a batch overflowed, and you "
        "stepped anyway or reran it until it didn't. Check all gradients before you step; skip a "
        "batch that overflows, and continue with the next one.",
        "skips_by_weight": "A batch overflowed in one parameter's gradient, and you stepped with "
        "the others. One inf or NaN anywhere spoils the whole step: skip it for all parameters.",
        "replaces_parameters": "Your model's parameters are no longer the same float32 tensors. "
        "They are the masters: cast copies of them, and update them in place.",
        "returns_scaled_loss": "Your list holds scaled losses. Return the loss itself.",
        "loss_after_the_step": "Your list holds each loss after the batch's step. Record the loss "
        "before the step, where backward needs it anyway.",
    },
)
