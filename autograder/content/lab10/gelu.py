"""Exercise: a GELU that keeps only a few bits per value for backward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.content.lab10.tiled import are_close
from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab10 import LAYERS, run_gelu, upstream_of, values_of

__all__ = ["few_bit_gelu"]

_MIB = 2**20
#: The least possible errors are 0.290, 0.133 and 0.036 (found by dynamic programming).
MOST_ERROR = {1: 0.31, 2: 0.16, 4: 0.05}
_KEPT_SHAPE, _MANY_SHAPE = [64, 1024], [128, 1024]
_SLACK_BYTES = 4 * 1024
_X_BYTES = 4 * 128 * 1024
_MANY_BITS = 2
# As the notebook says: 16 times x, plus what the layers keep. Correct answers may take 15 times x
# when the meter sees 8: to multiply float32 by float64, an operator converts a copy of its input,
# and kept codes, which are too small to be mapped separately, leave gaps in the heap.
_MOST_BYTES = 16 * _X_BYTES + LAYERS * (_X_BYTES * _MANY_BITS // 32 + _SLACK_BYTES)


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(kind: str, shape: list[int], bits: int, budget: Budget | None = None) -> Case:
        inputs = {"kind": kind, "shape": shape, "bits": bits, "seed": int(rng.integers(2**31))}
        return Case(("value",), inputs, budget=budget)

    odd = 2 * int(rng.integers(11, 16)) + 1  # codes that don't fill whole bytes
    shapes = [odd * 201], [odd, 201], [odd, 3, 67]
    budget = Budget(_X_BYTES + _MOST_BYTES + _MIB)
    return [
        # First, because memory that the heap keeps from other cases would count as the notebook's.
        case("many", _MANY_SHAPE, _MANY_BITS, budget),
        *(case("values", shape, bits) for shape, bits in zip(shapes, MOST_ERROR, strict=True)),
        *(case("kept", _KEPT_SHAPE, bits) for bits in MOST_ERROR),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    kind = case.inputs["kind"]
    if kind == "values":
        finding = _values(case.inputs, answer.value)
    elif kind == "kept":
        finding = _kept(case.inputs, answer.value)
    else:
        finding = _many(case.inputs["seed"], answer)
    return dict.fromkeys(case.parts, finding)


def _exact(x: Tensor, bits: int) -> Tensor:
    return F.gelu(x)


def _values(inputs: Mapping[str, Any], value: Any) -> Finding:
    bits, names = inputs["bits"], ("output", "derivative", "gradient")
    if not isinstance(value, dict) or not all(_is_array(value.get(name)) for name in names):
        return Finding(False, "The answers came back garbled.")
    x = values_of(inputs["shape"], inputs["seed"]).double().requires_grad_()
    output = F.gelu(x)
    (right,) = torch.autograd.grad(output.sum(), x)
    if not are_close(value["output"], output.detach().numpy(), 1e-5):
        return Finding(False, "The output differs from F.gelu's.", ("another_output",))
    derivative = value["derivative"]
    if any(value[name].shape != x.shape for name in names):
        return Finding(False, "The gradient's shape differs from x's.")
    levels = len(np.unique(derivative))
    if levels > 2**bits:
        said = f"With {bits} bits the derivative has {levels} values, expected {2**bits} at most."
        return Finding(False, said, ("more_values",))
    error = float(np.linalg.norm(derivative - right.numpy()) / np.linalg.norm(right.numpy()))
    if not error <= MOST_ERROR[bits]:
        said = f"With {bits} bits the error is {error:.3f}, expected {MOST_ERROR[bits]} at most."
        return Finding(False, said, (*["fewer_values"] * (levels < 2**bits), "far_off"))
    return _incoming(inputs, value)


def _incoming(inputs: Mapping[str, Any], value: Mapping[str, Any]) -> Finding:
    """The gradient for another incoming gradient is that gradient times the derivative."""
    upstream = upstream_of(inputs["shape"], inputs["seed"]).numpy()
    if are_close(value["gradient"], upstream * value["derivative"], 1e-5):
        return Finding(True)
    said = "With another incoming gradient, your gradient isn't that gradient times the derivative."
    return Finding(False, said, ("incoming_gradient",))


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _kept(inputs: Mapping[str, Any], value: Any) -> Finding:
    if not isinstance(value, dict) or type(value.get("kept_bytes")) is not int:
        return Finding(False, "The answers came back garbled.")
    n, bits, kept = int(np.prod(inputs["shape"])), inputs["bits"], value["kept_bytes"]
    right = _exactly("kept", inputs["seed"])
    if not are_close(value.get("sums"), right["sums"], 1e-4):
        return Finding(False, "In the memory measurement, the output differs.", ("another_output",))
    if not _are_near(value.get("gradient_sums"), right["gradient_sums"], 2 * MOST_ERROR[bits]):
        said = "In the memory measurement, the gradient differs."
        return Finding(False, said, ("far_off", "fewer_values", "incoming_gradient"))
    if kept > n * bits // 8 + _SLACK_BYTES:
        said = f"With {bits} bits, {n} values keep {kept:,} bytes; expected {n * bits // 8:,}."
        return Finding(False, said, _keeps(n, bits, kept))
    if kept < n * bits // 8:
        return Finding(False, doubt=f"The meter saw {kept:,} bytes, fewer than the codes take.")
    return Finding(True)


def _keeps(n: int, bits: int, kept: int) -> tuple[str, ...]:
    if kept >= 4 * n:
        return ("keeps_x",)
    return ("not_packed",) * (kept >= n) + ("more_values", "keeps_more")


def _many(seed: int, answer: Answer) -> Finding:
    value = answer.value if isinstance(answer.value, dict) else {}
    rise = answer.metered("rise_bytes")
    if answer.breaks_budget(rise, _MOST_BYTES):
        took = "" if rise is None else f" Your code takes {rise / _MIB:.1f} MiB."
        said = f"{LAYERS} GELUs of {_MANY_BITS} bits may take {_MOST_BYTES / _MIB:.1f} MiB.{took}"
        return Finding(False, said, ("keeps_x", "not_packed", "more_values", "keeps_more"))
    sums = value.get("sums")
    if isinstance(sums, list) and len(sums) == 4:
        right = _exactly("many", seed)["sums"]
        # The gradient comes from rounded derivatives, so it may be off by as much as they are.
        if are_close(sums[:2], right[:2], 1e-4) and are_close(sums[2:], right[2:], 0.3):
            return Finding(True)
    said = f"With {LAYERS} GELUs the output or the gradient differs."
    known = ("another_output", "fewer_values", "far_off", "incoming_gradient")
    return Finding(False, said, known, follows=True)  # sums don't tell which of them it is


@lru_cache(maxsize=32)
def _exactly(kind: str, seed: int) -> dict[str, Any]:
    shape = _KEPT_SHAPE if kind == "kept" else _MANY_SHAPE
    return run_gelu(_exact, kind, False, shape, _MANY_BITS, seed)


def _are_near(got: Any, expected: list[Any], tolerance: float) -> bool:
    """Tell whether lists of arrays agree up to a share of their norm.

    Sums of derivatives vary less than derivatives do, so rounding errors weigh 1.5 times as much.
    """
    if not are_close(got, expected, math.inf):
        return False
    errors = np.concatenate(got) - np.concatenate(expected)
    return bool(np.linalg.norm(errors) <= tolerance * np.linalg.norm(np.concatenate(expected)))


few_bit_gelu = Task(
    id="lab10-few_bit_gelu",
    parts={"value": 3},
    defines=("few_bit_gelu",),
    probe="few_bit_gelu",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "another_output": "The output must be exact: F.gelu(x). Round only its derivative.",
        "keeps_x": "You still save x for backward. Save only the numbers of its intervals.",
        "not_packed": "You don't pack the codes: a uint8 takes 8 bits. Put 8 / bits codes into "
        "each byte.",
        "keeps_more": "You save more than `bits` bits per value.",
        "more_values": "Your derivative has more values than `bits` bits can distinguish.",
        "fewer_values": "Your derivative has fewer values than the bits allow, and is too far off.",
        "far_off": "Your derivative is too far off. Give each interval the mean derivative of the "
        "normally distributed values in it, and choose intervals where they are.",
        "incoming_gradient": "Multiply by the incoming gradient in backward.",
    },
    ban=NO_METER_TAMPERING,
    trust="measured",
)
