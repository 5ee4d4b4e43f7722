"""A GPT's forward on a tape: the operators of `peakmem.nn.GPT`, one by one, in order.

The code follows the module line by line, so that you can compare them.

Shapes at line ends: B micro-batch, T sequence, D d_model, H heads, V vocab.
"""

from __future__ import annotations

from functools import partial

from peakmem.predict.layers import Layers
from peakmem.predict.simulated_autograd import Side, Value

__all__ = ["Transformer"]


class Transformer(Layers):
    """GPT's blocks: layer norms, biases, learned positions, an MLP with GELU."""

    def _hidden(self, start: Value) -> Value:
        if not self.stage.is_first:
            return self._ended(self._stack(start))
        tokens, tape, rules = start, self.tape, self.profile.rules
        residual = (tokens.shape[0], self.between, self.shape.d_model)
        table = self.parameters["position_embedding.weight"]
        with tape.holding() as names:
            if self.shape.hugging_face:
                embedded = self._embedded(tokens)
                positions = self._looked_up(table, (1, *residual[1:]))
                names += [embedded, positions]
            else:
                (positions,) = tape.views("positions", table, [residual[1:]], rules["slice"])
                embedded = self._embedded(tokens)
            if positions.shape == residual:
                x = self._add("add positions", embedded, positions)
            else:
                operands, rule = {"x": embedded, "positions": positions}, rules["add positions"]
                x = tape.apply("add positions", rule, operands, residual, self.high)
            x = self._dropout("embedding.", x)  # (B, T, D)
            return self._ended(self._stack(x))

    def _looked_up(self, table: Value, size: tuple[int, ...]) -> Value:  # (1, T, D)
        self.tape.event("numbers of positions")
        numbers = self.tape.make("numbers of positions", size[:2], "int64")
        operands = {"table": table, "indices": numbers}
        rule = self.profile.rules["embedding"]
        return self.tape.apply("positions", rule, operands, size, self.high)

    def _mlp(self, prefix: str, x: Value) -> Value:  # (B, T, D) -> (B, T, D)
        with self.tape.holding(x):
            wide = self._widen(f"{prefix}up", x, self.shape.mlp_width)
            return self._dropout(prefix, self._narrow(f"{prefix}down", self._gelu(prefix, wide)))

    def _gelu(self, prefix: str, x: Value) -> Value:
        """Run GELU by its tanh formula: one operator, or eight, some of which save a tensor."""
        if self.shape.activation == "gelu" or not self.profile.eager:  # papers count one operator
            return self._map(f"{prefix}gelu", "gelu", x)
        with self.tape.holding(x) as names:
            half = self._map(f"{prefix}gelu half", "scale", x)
            names.append(half)
            cube = self._map(f"{prefix}gelu cube", "power", x)
            cubic = self._map(f"{prefix}gelu cubic term", "scale", cube)
            sum_ = self._add(f"{prefix}gelu sum", x, cubic)
            inner = self._map(f"{prefix}gelu inner", "scale", sum_)
            tanh = self._map(f"{prefix}gelu tanh", "tanh", inner)
            operands = {"a": half, "b": self._map(f"{prefix}gelu plus one", "shift", tanh)}
            rule = self.profile.rules["product"]
            return self.tape.apply(f"{prefix}gelu", rule, operands, x.shape, x.dtype)

    # Attention.

    def _attention(self, prefix: str, x: Value) -> Value:  # (B, T, D) -> (B, T, D)
        tape, rules = self.tape, self.profile.rules
        part = (x.shape[0], self.recipe.sequence, self.shape.attention_width)
        fused = self.recipe.attention == "flash" and self._fuses_dropout
        with tape.holding(x) as names:
            qkv = self._widen(f"{prefix}qkv", x, 3 * self.shape.attention_width)
            names.append(qkv)
            q, k, v = tape.views(f"{prefix}split", qkv, [part] * 3, rules["split"])
            if not fused:
                q, k, v = self._heads(prefix, q, k, v)
            if self.recipe.checkpointing == "selective":
                y = tape.checkpoint(partial(self._core, prefix, q, k, v), kept=qkv)
            else:
                y = self._core(prefix, q, k, v)
            names.append(y)
            if self._has_heads and not fused:
                y = self._copy(f"{prefix}merged heads", y)
            return self._dropout(prefix, self._narrow(f"{prefix}out", y))

    def _core(self, prefix: str, q: Value, k: Value, v: Value) -> Value:
        """Run attention between its first and its last linear layer."""
        if self.recipe.attention == "standard":
            return self._standard(prefix, q, k, v)
        attend = self.fused_attention if self._fuses_dropout else self._math
        return attend(prefix, q, k, v)

    @property
    def _fuses_dropout(self) -> bool:
        """Whether a fused kernel can run this recipe's attention."""
        return self.profile.fused_dropout or not self.recipe.dropout

    def _standard(self, prefix: str, q: Value, k: Value, v: Value) -> Value:
        tape, rules = self.tape, self.profile.rules
        with tape.holding() as names:
            future = self._triangle(prefix, q.shape[1])
            products = self._bmm(f"{prefix}scores", q, k, self._square(q))
            scores = self._map(f"{prefix}scaled", "scale", products)  # (B, H, T, T)
            names += [future, scores]
            operands = {"x": scores, "future": future}
            masked = tape.apply(f"{prefix}masked", rules["mask"], operands, scores.shape, q.dtype)
            weights = self._softmax(prefix, masked)
            names.append(weights)
            dropped = tape.cast(self._dropout(f"{prefix}weights.", weights), v.dtype)
            return self._weighted(prefix, dropped, v)

    def _math(self, prefix: str, q: Value, k: Value, v: Value) -> Value:
        """Run scaled_dot_product_attention's fallback without fused dropout: operators in fp32."""
        tape, low = self.tape, q.dtype
        with tape.holding() as names:
            wide_q, wide_k, wide_v = (tape.cast(x, "fp32") for x in (q, k, v))
            scaled_q = self._map(f"{prefix}scaled q", "scale", wide_q)
            names += [wide_q, wide_k, wide_v, scaled_q]
            triangle = self._triangle(prefix, q.shape[1])
            tape.event(f"{prefix}mask as numbers", [triangle])
            bias = tape.make(f"{prefix}mask as numbers", triangle.shape, "fp32")
            tape.make(f"{prefix}0 and -inf", (2,), "fp32")  # what it is filled with
            names.append(bias)
            scaled_k = self._map(f"{prefix}scaled k", "scale", wide_k)
            products = self._bmm(f"{prefix}scores", scaled_q, scaled_k, self._square(q))
            operands, rule = {"x": products, "bias": bias}, self.profile.rules["add mask"]
            masked = tape.apply(f"{prefix}masked", rule, operands, products.shape, "fp32")
            weights = self._dropout(f"{prefix}weights.", self._softmax(prefix, masked))
            names += [weights, tape.cast(weights, low)]  # torch's fallback returns this copy too
            return tape.cast(self._weighted(prefix, weights, wide_v), low)

    def _weighted(self, prefix: str, weights: Value, v: Value) -> Value:
        """Sum values by their weights; backward has to copy gradients in another layout."""
        y = self._bmm(f"{prefix}weighted", weights, v, v.shape)
        if self._merges_batch:
            rule = self.profile.rules["view undone by copy"]
            (y,) = self.tape.views(f"{prefix}weighted", y, [y.shape], rule)
        return y

    def _heads(self, prefix: str, q: Value, k: Value, v: Value) -> tuple[Value, Value, Value]:
        """Return views by head; backward has to copy the gradients of q and v to join them."""
        rules, tape = self.profile.rules, self.tape
        copied = rules["view undone by copy" if self._has_heads else "view"]
        (q_heads,) = tape.views(f"{prefix}q", q, [q.shape], copied)
        (k_heads,) = tape.views(f"{prefix}k", k, [k.shape], rules["view"])
        (v_heads,) = tape.views(f"{prefix}v", v, [v.shape], copied)
        return q_heads, k_heads, v_heads

    def _triangle(self, prefix: str, length: int) -> Value:
        """Make the causal mask from a full square."""
        self.tape.event(f"{prefix}ones")
        square = self.tape.make(f"{prefix}ones", (length, length), "bool")
        self.tape.event(f"{prefix}future", [square])
        return self.tape.make(f"{prefix}future", (length, length), "bool")

    def _square(self, q: Value) -> tuple[int, ...]:
        batch, length, _ = q.shape
        return (batch, self.shape.n_heads, length, length)

    def _softmax(self, prefix: str, scores: Value) -> Value:
        if self.autocasts and self.profile.fp32_softmax:
            scores = self.tape.cast(scores, "fp32")
        rule = self.profile.rules["softmax"]
        return self.tape.apply(f"{prefix}softmax", rule, {"x": scores}, scores.shape, scores.dtype)

    def _bmm(self, name: str, a: Value, b: Value, shape: tuple[int, ...]) -> Value:
        """Multiply by batch and head; takes copies if they can't be merged into one dimension."""
        operands = {"a": a, "b": b}
        with self.tape.holding(a, b):
            if self._merges_batch:
                apart = {key: x for key, x in operands.items() if len(x.shape) == 3}
                operands |= {key: self._copy(f"{name}: copy", x) for key, x in apart.items()}
            return self.tape.apply(name, self.profile.rules["bmm"], operands, shape, a.dtype)

    @property
    def _has_heads(self) -> bool:
        """Whether there are several heads, so that merging them takes a copy."""
        return self.shape.n_heads > 1

    @property
    def _merges_batch(self) -> bool:
        """Whether merging batch and heads into one dimension takes a copy."""
        return self.profile.copies and self._has_heads and self.recipe.micro_batch > 1

    def _norm(self, name: str, x: Value) -> Value:
        weight, bias = (self.parameters[f"{name}.{part}"] for part in ("weight", "bias"))
        dtype = self.profile.norm_statistics or x.dtype
        sides = [Side(key, (*x.shape[:2], 1), dtype) for key in ("mean", "deviation")]
        operands = {"x": x, "weight": weight, "bias": bias}
        return self.tape.apply(
            name, self.profile.rules["layer norm"], operands, x.shape, x.dtype, sides
        )
