"""Fused attention on a tape, of one device or of several that share a sequence's tokens.

Each device has the queries, keys and values of its own tokens. They share in one of two ways:

- "ring" (Liu et al. 2023, Ring Attention with Blockwise Transformers, section 3): blocks of keys
  and values travel from device to device. Besides its own, a device has the block that it attends
  to and the one that arrives meanwhile; sums over blocks are in fp32. In backward the gradients of
  keys and values travel too, in fp32.
- "ulysses" (Jacobs et al. 2023, DeepSpeed Ulysses, section 3.1): an all-to-all gives each device
  all tokens of some heads, and another one undoes it. Where there are fewer heads of keys and
  values than devices, several devices have the same ones.

Shapes at line ends: B micro-batch, T tokens of a sequence on this device, W width of all heads.
"""

from __future__ import annotations

from peakmem.predict.autograd_rules import Profile, Rule
from peakmem.predict.simulated_autograd import Side, Tape, Value
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Parallelism

__all__ = ["SharedAttention"]

_EXCHANGE = Rule(backward=(("all-to-all", ("x",)),))


class SharedAttention:
    """The fused attention of a model; `shape` is this device's share of it."""

    def __init__(self, tape: Tape, profile: Profile, shape: ModelShape, many: Parallelism) -> None:
        self._tape, self._rule = tape, profile.rules["flash attention"]
        self._shape, self._many, self._counts_exchange = shape, many, profile.eager

    def __call__(self, prefix: str, q: Value, k: Value, v: Value) -> Value:
        """Run it, (B, T, W) each -> (B, T, W)."""
        name, n = f"{prefix}flash attention", self._many.context
        if n == 1 or not self._counts_exchange:
            return self._attend(name, q, k, v, self._shape.n_heads)
        if self._many.context_method == "ring":
            return self._ring(name, q, k, v)
        return self._ulysses(name, q, k, v)

    def _attend(
        self,
        name: str,
        q: Value,
        k: Value,
        v: Value,
        heads: int,
        scratch: tuple[Side, ...] = (),
    ) -> Value:
        statistics = Side("logsumexp", (q.shape[0], heads, q.shape[1]), "fp32")
        operands = {"q": q, "k": k, "v": v}
        return self._tape.apply(name, self._rule, operands, q.shape, q.dtype, [statistics], scratch)

    def _ring(self, name: str, q: Value, k: Value, v: Value) -> Value:
        tape = self._tape
        blocks = 2 * min(self._many.context - 1, 2)  # keys and values, attended to and arriving
        travelling = tuple(Side(f"travelling block {n}", k.shape, k.dtype) for n in range(blocks))
        gradients = tuple(Side(f"travelling gradient {n}", k.shape, "fp32") for n in range(4))
        sums = Side("sum over blocks", q.shape, "fp32")
        tape.event(f"{name}: ring", [q, k, v])
        there = [
            tape.make(f"{name}: {side.name}", side.shape, side.dtype, "communication")
            for side in (*travelling, sums)
        ]
        with tape.holding(*there):
            scratch = (*travelling, *gradients, sums)
            return self._attend(name, q, k, v, self._shape.n_heads, scratch)

    def _ulysses(self, name: str, q: Value, k: Value, v: Value) -> Value:
        tape, n = self._tape, self._many.context
        heads = {"q": self._shape.n_heads}
        heads |= dict.fromkeys("kv", self._shape.key_value_heads)
        exchanged = {}
        with tape.holding() as names:
            for key, x in {"q": q, "k": k, "v": v}.items():
                width = x.shape[2] // heads[key] * -(-heads[key] // n)
                size = (x.shape[0], x.shape[1] * n, width)
                exchanged[key] = tape.apply(
                    f"{name}: all-to-all of {key}", _EXCHANGE, {"x": x}, size, x.dtype
                )
                names.append(exchanged[key])
            q_heads, k_heads, v_heads = (exchanged[key] for key in "qkv")
            y = self._attend(name, q_heads, k_heads, v_heads, heads["q"] // n)
            names.append(y)
            return tape.apply(f"{name}: all-to-all back", _EXCHANGE, {"x": y}, q.shape, y.dtype)
