"""A Llama's forward on a tape: the operators of Hugging Face's LlamaForCausalLM, in order.

Llama has RMS norms in fp32, rotary positions, key and value heads shared by groups of query heads,
a gated MLP, and no biases. Each product and each rotated half is a separate tensor, as in eager
torch.

Shapes at line ends: B micro-batch, T sequence, D d_model.
"""

from __future__ import annotations

from functools import partial

from peakmem.predict.grouped_attention import grouped_attention
from peakmem.predict.layers import Layers
from peakmem.predict.simulated_autograd import Value

__all__ = ["Llama"]


class Llama(Layers):
    """Llama's blocks, with torch's fused attention."""

    _cos: Value
    _sin: Value

    def _hidden(self, start: Value) -> Value:
        x = self._embedded(start) if self.stage.is_first else start
        with self.tape.holding() as names:
            self.tape.event("positions")
            names.append(self.tape.make("positions", (1, self.recipe.sequence), "int64"))
            self._cos, self._sin = (self._rotation(part) for part in ("cosine", "sine"))
            names += [self._cos, self._sin]
            return self._ended(self._stack(x))

    def _rotation(self, name: str) -> Value:
        width = self.shape.attention_width // self.shape.n_heads
        self.tape.event(name)
        table = self.tape.make(name, (1, self.recipe.sequence, width), self.high)
        table.requires_grad = False
        return table

    @property
    def _upcasts_logits(self) -> bool:
        return self.recipe.loss_chunks == 1

    def _norm(self, name: str, x: Value) -> Value:
        tape, rules = self.tape, self.profile.rules
        weight, row = self.parameters[f"{name}.weight"], (*x.shape[:2], 1)
        if not self.profile.eager:  # papers count one operator that saves its input
            operands = {"x": x, "weight": weight}
            return tape.apply(name, rules["layer norm"], operands, x.shape, x.dtype)
        with tape.holding(x) as names:
            wide = tape.cast(x, "fp32")
            squares = self._map(f"{name} squares", "power", wide)
            variance = tape.apply(f"{name} mean", rules["mean"], {"x": squares}, row, "fp32")
            names += [wide, variance]
            scale = self._map(f"{name} rsqrt", "rsqrt", self._map(f"{name} eps", "shift", variance))
            operands = {"a": wide, "b": scale}
            product = tape.apply(f"{name} scaled", rules["product"], operands, x.shape, "fp32")
            names.append(product)
            operands = {"weight": weight, "x": tape.cast(product, x.dtype)}
            return tape.apply(name, rules["weighted"], operands, x.shape, x.dtype)

    def _mlp(self, prefix: str, x: Value) -> Value:  # (B, T, D) -> (B, T, D)
        with self.tape.holding(x):
            gate = self._widen(f"{prefix}gate", x, self.shape.mlp_width)
            gate = self._map(f"{prefix}silu", "silu", gate)
            up = self._widen(f"{prefix}up", x, self.shape.mlp_width)
            operands, rule = {"a": gate, "b": up}, self.profile.rules["product"]
            inner = self.tape.apply(f"{prefix}gated", rule, operands, up.shape, up.dtype)
            return self._narrow(f"{prefix}down", inner)

    # Attention.

    def _attention(self, prefix: str, x: Value) -> Value:  # (B, T, D) -> (B, T, D)
        tape, shape = self.tape, self.shape
        undone, kept = (self.profile.rules[r] for r in ("view undone by copy", "view"))
        with tape.holding(x) as names:
            q = self._widen(f"{prefix}q", x, shape.attention_width)
            q = self._view(f"{prefix}q heads", q, undone if shape.n_heads > 1 else kept)
            k = self._widen(f"{prefix}k", x, shape.key_value_width)
            k = self._view(f"{prefix}k heads", k, undone if shape.key_value_heads > 1 else kept)
            v = self._widen(f"{prefix}v", x, shape.key_value_width)
            v_undone = shape.key_value_heads > 1 and not self._fuses_groups
            v = self._view(f"{prefix}v heads", v, undone if v_undone else kept)
            with tape.holding(q, k):
                q, k = self._rotated(f"{prefix}q", q), self._rotated(f"{prefix}k", k)
            names += [q, k, v]
            if self.recipe.checkpointing == "selective":
                y = tape.checkpoint(partial(self._attend, prefix, q, k, v), v, q, k)
            else:
                y = self._attend(prefix, q, k, v)
            names.append(y)
            return self._narrow(f"{prefix}out", y)

    def _rotated(self, prefix: str, x: Value) -> Value:
        """Return x cos + (x with its halves swapped and one negated) sin."""
        if not self.profile.eager:  # papers count it as a part of attention
            return x
        tape, rules = self.tape, self.profile.rules
        half = (*x.shape[:-1], x.shape[-1] // 2)
        operands = {"x": x, "constant": self._cos}
        straight = tape.apply(
            f"{prefix} times cos", rules["times constant"], operands, x.shape, self.high
        )
        with tape.holding(straight):
            (first,) = tape.views(f"{prefix} first half", x, [half], rules["slice"])
            (second,) = tape.views(f"{prefix} second half", x, [half], rules["slice"])
            operands = {"a": self._map(f"{prefix} negated", "neg", second), "b": first}
            turned = tape.apply(f"{prefix} turned", rules["cat"], operands, x.shape, x.dtype)
            operands = {"x": turned, "constant": self._sin}
            turned = tape.apply(
                f"{prefix} times sin", rules["times constant"], operands, x.shape, self.high
            )
            return self._add(f"{prefix} rotated", straight, turned)

    def _attend(self, prefix: str, q: Value, k: Value, v: Value) -> Value:
        q, k, v = (self.tape.cast(x, self.low) for x in (q, k, v))
        if self._fuses_groups:
            return self.fused_attention(prefix, q, k, v)
        return grouped_attention(self.tape, self.profile, prefix, q, k, v, self.shape.n_heads)

    @property
    def _fuses_groups(self) -> bool:
        """Whether a fused kernel can run this recipe's attention."""
        grouped = self.shape.n_heads > self.shape.key_value_heads
        return self.profile.fused_groups or not grouped or self.low != "fp32"
