"""Building blocks of transformers on a tape: embeddings, linear layers, adapters, the loss.

The operators are those that torch runs for these modules; the profile decides what each of them
saves for backward. `holding` stands for a Python function's local names, which keep tensors alive
until the function returns.

Shapes at line ends: B micro-batch, T sequence, D d_model, H heads, V vocab.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from peakmem.predict.autograd_rules import Profile, Rule
from peakmem.predict.shared_attention import SharedAttention
from peakmem.predict.simulated_autograd import Side, Tape, Value
from peakmem.predict.stages import PipelineStage
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["Layers"]


class Layers(ABC):
    """Plays forward and loss of one micro-batch on a tape; subclasses define the blocks.

    `parameters` maps the names of `models.parameter_tensors` to the tape's values; adapters are
    `<layer>.lora_a` and `<layer>.lora_b`. `between` is the number of tokens of a sequence that this
    device holds between the matrices of attention and MLP: all tokens, unless devices share them.
    Sharing devices gather all tokens before the first matrix, forward and backward, and scatter
    sums after the last (Korthikanti et al. 2022, section 4.2.2).
    """

    def __init__(
        self,
        tape: Tape,
        shape: ModelShape,
        recipe: Recipe,
        profile: Profile,
        parameters: Mapping[str, Value],
        between: int,
        stage: PipelineStage,
        many: Parallelism,
    ) -> None:
        self.tape, self.shape, self.recipe, self.profile = tape, shape, recipe, profile
        self.parameters, self.between, self.stage = parameters, between, stage
        self.fused_attention = SharedAttention(tape, profile, shape, many)
        formats = recipe.formats
        self.autocasts = formats.autocast and profile.eager
        self.low = formats.compute  # of matrix products; without autocast, of everything
        self.high = formats.weights if self.autocasts else formats.compute

    @abstractmethod
    def _hidden(self, start: Value) -> Value:
        """Run the stage's layers: tokens (B, T), or a stage's output (B, T, D) -> (B, T, D)."""

    @abstractmethod
    def _norm(self, name: str, x: Value) -> Value: ...
    @abstractmethod
    def _attention(self, prefix: str, x: Value) -> Value: ...
    @abstractmethod
    def _mlp(self, prefix: str, x: Value) -> Value: ...

    def hidden(self, start: Value) -> Value:
        """Run a stage that isn't the last; return the output that it sends to the next stage."""
        with self.tape.autocast(self.autocasts):
            return self._hidden(start)

    def received(self) -> Value:
        """Return the previous stage's output, (B, T, D)."""
        size = (self.recipe.micro_batch, self.between, self.shape.d_model)
        self.tape.event("receive from the stage before")
        return self.tape.make("input of the stage", size, self.high, "activation")

    def loss(self, start: Value, targets: Value) -> Value:
        """Run forward and the loss; return the mean loss."""
        with self.tape.autocast(self.autocasts):
            h = self._hidden(start)
            with self.tape.in_module("head"):
                if self.recipe.loss_chunks == 1:
                    return self._cross_entropy(h, targets, self.recipe.sequence)
                return self._chunked(h, targets)

    def _cross_entropy(self, h: Value, targets: Value, length: int) -> Value:
        """Run the head and the loss for `length` tokens of each sequence."""
        tape, rules = self.tape, self.profile.rules
        logits = self._head(h, length)  # (B, T, V)
        autocast_to_fp32 = self.autocasts and self.profile.fp32_cross_entropy
        wide = autocast_to_fp32 or (self._upcasts_logits and self.profile.eager)
        scores = tape.cast(logits, "fp32") if wide else logits
        dtype = scores.dtype if self.profile.eager else "fp32"
        rows, vocab = logits.shape[0] * logits.shape[1], logits.shape[2]
        rule = rules["log softmax"]
        log_p = tape.apply("log softmax", rule, {"x": scores}, (rows, vocab), dtype)
        log_p.storage.owner = "logits"
        log_p = tape.cast(log_p, "fp32") if self.autocasts else log_p
        operands = {"x": log_p, "targets": targets}
        sides = [Side("total weight", (), log_p.dtype)]
        loss = tape.apply("nll", rules["nll"], operands, (), log_p.dtype, sides)
        tape.touch([logits, scores])
        return loss

    @property
    def _upcasts_logits(self) -> bool:
        """Whether the loss is in fp32 in any precision, since it begins with `logits.float()`.

        Hugging Face's causal language models do this; a loss in parts replaces theirs.
        """
        return self.shape.hugging_face and self.recipe.loss_chunks == 1

    def _chunked(self, h: Value, targets: Value) -> Value:
        """Run the loss in parts, each a checkpointed segment, and return their mean."""
        tape, n = self.tape, self.recipe.loss_chunks
        length = self.recipe.micro_batch * self.recipe.sequence // n
        part = (1, length * h.shape[1] // self.recipe.sequence, h.shape[-1])
        with tape.holding(h) as names:
            chunks = tape.views("parts of the loss", h, [part] * n, self.profile.rules["split"])
            losses = []
            for chunk in chunks:
                run = partial(self._cross_entropy, chunk, targets, length)
                losses.append(tape.checkpoint(run, kept=chunk))
                names.append(losses[-1])
            total = losses[0]
            for loss in losses[1:]:
                total = self._add("sum of the loss", total, loss)
        return self._map("mean over tokens", "mean over micro-batches", total)

    def part_of_mean(self, loss: Value) -> Value:
        """Divide a micro-batch's loss by the number of micro-batches; return the quotient."""
        return self._map("mean over micro-batches", "mean over micro-batches", loss)

    # The structure that all models share.

    def _embedded(self, tokens: Value) -> Value:
        operands = {"table": self.parameters["token_embedding.weight"], "indices": tokens}
        size = (tokens.shape[0], self.between, self.shape.d_model)
        rule, whole = self.profile.rules["embedding"], self._whole(tokens.shape, size, self.high)
        with self.tape.in_module("token_embedding"), self._exchanged("embedding", whole):
            return self.tape.apply("embedding", rule, operands, size, self.high, scratch=whole)

    def _stack(self, x: Value) -> Value:
        """Run the stage's blocks, in checkpointed segments if the recipe says so."""
        layers, segment = self.stage.layers, self.recipe.segment
        with self.tape.holding(x):
            for first in layers[:: segment or len(layers)]:
                part = range(first, min(first + (segment or len(layers)), layers.stop))
                x = self._checkpointed(part, x) if segment else self._blocks(part, x)
        return x

    def _checkpointed(self, layers: range, x: Value) -> Value:
        return self.tape.checkpoint(partial(self._blocks, layers, x), kept=x)

    def _within(
        self, module: str, run: Callable[[str, Value], Value], name: str, x: Value
    ) -> Value:
        """Run the part of a layer that `models.COMPONENTS` calls `module`."""
        with self.tape.in_module(module):
            return run(name, x)

    def _blocks(self, layers: range, x: Value) -> Value:
        for layer in layers:
            with self.tape.in_layer(f"blocks.{layer}"):
                x = self._block(f"blocks.{layer}.", x)
        return x

    def _block(self, prefix: str, x: Value) -> Value:  # (B, T, D) -> (B, T, D)
        with self.tape.holding(x) as names:
            h = self._within("layer_norms", self._norm, f"{prefix}norm1", x)
            branch = self._within("attention", self._attention, f"{prefix}attention.", h)
            x = self._add(f"{prefix}attended", x, branch)
            names.append(x)
            h = self._within("layer_norms", self._norm, f"{prefix}norm2", x)
            return self._add(f"{prefix}out", x, self._within("mlp", self._mlp, f"{prefix}mlp.", h))

    def _ended(self, x: Value) -> Value:
        """Run the norm behind the last stage's layers."""
        return self._within("final_norm", self._norm, "final_norm", x) if self.stage.is_last else x

    def _head(self, h: Value, length: int) -> Value:
        table = "token_embedding.weight" if self.shape.tied else "head.weight"
        size = (h.shape[0], length, self.shape.vocab)
        logits = self._linear("head", h, self.parameters[table], None, size)  # (B, T, V)
        logits.storage.owner = "logits"
        return logits

    # Linear layers.

    def _widen(self, name: str, x: Value, width: int) -> Value:
        """Run the first matrix of attention or MLP, from this device's tokens to all tokens."""
        return self._layer(name, x, (x.shape[0], self.recipe.sequence, width))

    def _narrow(self, name: str, x: Value) -> Value:
        """Run the last matrix of attention or MLP, back to this device's tokens."""
        return self._layer(name, x, (x.shape[0], self.between, self.shape.d_model))

    def _layer(self, name: str, x: Value, size: tuple[int, ...]) -> Value:
        weight, bias = self.parameters[f"{name}.weight"], self.parameters.get(f"{name}.bias")
        adapter = [self.parameters.get(f"{name}.lora_{part}") for part in "ab"]
        with self.tape.holding(x):
            y = self._linear(name, x, weight, bias, size)
            if adapter[0] is None or adapter[1] is None:
                return y
            with self.tape.holding(y):
                inner = (*x.shape[:2], self.recipe.lora_rank)
                down = self._linear(f"{name}.lora_a", x, adapter[0], None, inner)
                up = self._linear(f"{name}.lora_b", down, adapter[1], None, size)
                return self._add(f"{name} adapted", y, self._map(f"{name} scaled", "scale", up))

    def _linear(
        self, name: str, x: Value, weight: Value, bias: Value | None, size: tuple[int, ...]
    ) -> Value:
        rule = "linear without bias" if bias is None else "linear"
        operands = {"weight": weight} if bias is None else {"bias": bias, "weight": weight}
        if self.recipe.quantized_base and weight.dtype == self.recipe.quantized_base:
            operands["weight"], rule = self._dequantized(name, weight), "quantized linear"
        operands["x"] = x
        with self.tape.holding(x) as names:
            for key in self._cast_order(operands) if self.autocasts else ():
                operands[key] = self.tape.cast(operands[key], self.low)
                names.append(operands[key])
            whole = self._whole(x.shape, size, self.low)
            with self._exchanged(name, whole[:1]):  # forward has no gradient
                return self.tape.apply(
                    name, self.profile.rules[rule], operands, size, self.low, scratch=whole
                )

    def _whole(self, given: tuple[int, ...], size: tuple[int, ...], dtype: str) -> tuple[Side, ...]:
        """Return the tensors of all tokens where devices share tokens on one side of a matrix.

        A widening matrix gathers its input, again in backward, and makes a gradient of all tokens,
        which is scattered. A narrowing one scatters its sums, and gathers their gradient.
        """
        if given[1] == size[1] or not self.profile.eager:
            return ()
        wide, names = (given, ["all tokens"]) if given[1] > size[1] else (size, ["all tokens", ""])
        width = size[-1] if given[1] > size[1] else given[-1]
        shape = (*wide[:2], width)
        return tuple(Side(name or "gradient of all tokens", shape, dtype) for name in names)

    @contextmanager
    def _exchanged(self, name: str, whole: tuple[Side, ...]) -> Iterator[None]:
        """Hold the tensors that devices exchange, until the block ends."""
        if whole:
            self.tape.event(f"{name}: exchange")
        made = (
            self.tape.make(f"{name}: {side.name}", side.shape, side.dtype, "communication")
            for side in whole
        )
        with self.tape.holding(*made):
            yield

    def _cast_order(self, operands: Mapping[str, Value]) -> list[str]:
        """Return the operands in the order of their casts: the operator's arguments, reversed.

        The operator is linear, or addmm in Hugging Face's Conv1D.
        """
        if self.shape.hugging_face and "bias" in operands:
            return ["weight", "x", "bias"]
        return list(operands)

    def _dequantized(self, name: str, weight: Value) -> Value:
        self.tape.event(f"{name}: dequantize")
        made = self.tape.make(f"{name}: dequantized", weight.shape, self.low)
        made.requires_grad = False
        return made

    # Operators on one or two tensors of a size.

    def _map(self, name: str, rule: str, x: Value) -> Value:
        """Run an operator whose result has the shape of x."""
        return self.tape.apply(name, self.profile.rules[rule], {"x": x}, x.shape, x.dtype)

    def _add(self, name: str, x: Value, branch: Value) -> Value:
        rule = self.profile.rules["add"]
        return self.tape.apply(name, rule, {"x": x, "branch": branch}, x.shape, x.dtype)

    def _copy(self, name: str, x: Value) -> Value:
        return self._map(name, "copy", x)

    def _view(self, name: str, x: Value, rule: Rule) -> Value:
        return self.tape.views(name, x, [x.shape], rule)[0]

    def _dropout(self, prefix: str, x: Value) -> Value:
        if not self.recipe.dropout:
            return x
        tape, rule, name = self.tape, self.profile.rules["dropout"], f"{prefix}dropout"
        if self.profile.mask is not None:
            sides = [Side("mask", x.shape, self.profile.mask)]
            return tape.apply(name, rule, {"x": x}, x.shape, x.dtype, sides)
        tape.event(f"{name} mask", [x])
        mask = tape.make(f"{name} mask", x.shape, x.dtype)
        return tape.apply(name, rule, {"x": x, "mask": mask}, x.shape, x.dtype)
