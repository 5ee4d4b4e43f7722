"""Attention with grouped heads, operator by operator, where no fused kernel runs it.

The operators are those of torch's fallback (`_scaled_dot_product_attention_math`), in order: keys
and values are repeated for each query head of a group, and the matrix of scores is saved.

Shapes at line ends: B micro-batch, T sequence, H query heads, W width of all query heads.
"""

from __future__ import annotations

from peakmem.predict.autograd_rules import Profile, Rule
from peakmem.predict.simulated_autograd import Tape, Value

__all__ = ["grouped_attention"]

_REPEATED = Rule(backward=(("sum over the group", ("x",)),))


def grouped_attention(
    tape: Tape, profile: Profile, prefix: str, q: Value, k: Value, v: Value, heads: int
) -> Value:
    """Run attention in fp32: q (B, T, W), k and v narrower -> (B, T, W)."""
    rules, length = profile.rules, q.shape[1]
    square = (q.shape[0], heads, length, length)

    def scaled(name: str, x: Value) -> Value:
        return tape.apply(f"{prefix}{name}", rules["scale"], {"x": x}, x.shape, x.dtype)

    def repeated(name: str, x: Value) -> Value:
        return tape.apply(f"{prefix}{name}", _REPEATED, {"x": x}, q.shape, x.dtype)

    with tape.holding(q, k, v) as names:
        scaled_q = scaled("scaled q", q)
        bias = _causal_bias(tape, prefix, length)
        every_k, every_v = repeated("repeated k", k), repeated("repeated v", v)
        names += [scaled_q, bias, every_k, every_v]
        operands = {"a": scaled_q, "b": scaled("scaled k", every_k)}
        products = tape.apply(f"{prefix}scores", rules["bmm"], operands, square, "fp32")
        operands = {"x": products, "bias": bias}
        masked = tape.apply(f"{prefix}masked", rules["add mask"], operands, square, "fp32")
        weights = tape.apply(f"{prefix}softmax", rules["softmax"], {"x": masked}, square, "fp32")
        operands = {"a": weights, "b": every_v}
        y = tape.apply(f"{prefix}weighted", rules["bmm"], operands, q.shape, "fp32")
    return tape.apply(f"{prefix}merged heads", rules["copy"], {"x": y}, q.shape, "fp32")


def _causal_bias(tape: Tape, prefix: str, length: int) -> Value:
    """Make the mask as numbers to add, (T, T)."""
    tape.event(f"{prefix}ones")
    ones = tape.make(f"{prefix}ones", (length, length), "bool")
    tape.event(f"{prefix}future", [ones])
    future = tape.make(f"{prefix}future", (length, length), "bool")
    tape.event(f"{prefix}mask as numbers", [future])
    bias = tape.make(f"{prefix}mask as numbers", (length, length), "fp32")
    bias.requires_grad = False
    return bias
