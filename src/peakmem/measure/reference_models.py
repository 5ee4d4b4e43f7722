"""Reference GPT: the labs train it, and tests check predictions against it.

The architecture is GPT-2's (Radford et al. 2019): norms before attention and MLP, learned
positions, tanh GELU, dropout after the embedding, the attention probabilities and both branches,
and a head tied to the token embedding. Its parameters have the names and the order of
`models.parameter_tensors`.

Shapes at line ends: B batch, T sequence, D d_model, H heads, V vocab.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from peakmem.core.errors import require_one_of, require_whole

__all__ = ["GPT", "training_step"]

AttentionKind = Literal["standard", "flash"]
Checkpointing = Literal["none", "selective", "every_k", "full"]


class GPT(nn.Module):
    """A decoder-only transformer from tokens to logits.

    Args:
        shape: an object with n_layers, d_model, n_heads, vocab and context, such as
            `models.ModelShape`.
        attention: "standard" writes scores and attention probabilities to memory; "flash" calls
            torch's scaled_dot_product_attention, which on most devices doesn't.
        dropout: probability of setting an activation to zero in training.
        checkpointing: what backward recomputes instead of saving. "none": nothing. "selective":
            attention's tensors between queries, keys and values and its result. "full": all of each
            layer except its input. "every_k": all except the input of every `checkpoint_every`
            layers.
        checkpoint_every: layers in a segment under "every_k".

    Raises ValueError if the heads don't divide d_model, or if an argument is out of range.

    >>> from peakmem.specs.models import ModelShape
    >>> gpt = GPT(ModelShape("tiny", n_layers=2, d_model=64, n_heads=4, vocab=100, context=32))
    >>> gpt(torch.zeros(3, 8, dtype=torch.long)).shape
    torch.Size([3, 8, 100])
    """

    def __init__(
        self,
        shape: Any,
        *,
        attention: AttentionKind = "flash",
        dropout: float = 0.0,
        checkpointing: Checkpointing = "none",
        checkpoint_every: int = 1,
    ) -> None:
        super().__init__()
        require_one_of("attention", attention, get_args(AttentionKind))
        segments = {"none": 0, "selective": 0, "full": 1, "every_k": checkpoint_every}
        require_one_of("checkpointing", checkpointing, segments)
        require_whole("checkpoint_every", checkpoint_every)
        self.context = shape.context
        self.segment = segments[checkpointing]  # layers; 0 if layers aren't checkpointed as a whole
        recompute = checkpointing == "selective"
        self.token_embedding = nn.Embedding(shape.vocab, shape.d_model)
        self.position_embedding = nn.Embedding(shape.context, shape.d_model)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(Attention(shape.d_model, shape.n_heads, attention, dropout, recompute), dropout)
            for _ in range(shape.n_layers)
        )
        self.final_norm = nn.LayerNorm(shape.d_model)
        self.apply(_initialize)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (B, T, V) of tokens (B, T). Raises ValueError if T exceeds the context."""
        length = tokens.shape[1]
        if length > self.context:
            raise ValueError(
                f"{length} tokens per sequence exceed the context of {self.context}; shorten the "
                "sequences, or build the model with a larger context"
            )
        positions = self.position_embedding.weight[:length]  # (T, D)
        x = self.dropout(self.token_embedding(tokens) + positions)  # (B, T, D)
        blocks = list(self.blocks)
        if self.segment and self.training:
            for first in range(0, len(blocks), self.segment):
                segment = blocks[first : first + self.segment]
                x = checkpoint(_run, segment, x, use_reentrant=False)  # (B, T, D)
        else:
            x = _run(blocks, x)  # (B, T, D)
        return F.linear(self.final_norm(x), self.token_embedding.weight)  # (B, T, V)


class Block(nn.Module):
    """One layer: x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, attention: Attention, dropout: float) -> None:
        super().__init__()
        d_model = attention.out.out_features
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = attention
        self.norm2 = nn.LayerNorm(d_model)
        self.mlp = MLP(d_model, dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        attended = x + self.attention(self.norm1(x))  # (B, T, D)
        out: Tensor = attended + self.mlp(self.norm2(attended))
        return out


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(
        self, d_model: int, n_heads: int, kind: AttentionKind, dropout: float, recompute: bool
    ) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(
                f"{n_heads} heads don't divide d_model={d_model} equally; choose n_heads that do"
            )
        self.n_heads, self.kind, self.recompute = n_heads, kind, recompute
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.weight_dropout = nn.Dropout(dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        heads = [part.unflatten(-1, (self.n_heads, -1)) for part in self.qkv(x).chunk(3, dim=-1)]
        q, k, v = (head.transpose(1, 2) for head in heads)  # (B, H, T, D/H) each
        core = self._flash if self.kind == "flash" else self._standard
        if self.recompute and self.training:
            y = checkpoint(core, q, k, v, use_reentrant=False)  # (B, H, T, D/H)
        else:
            y = core(q, k, v)  # (B, H, T, D/H)
        out: Tensor = self.dropout(self.out(y.transpose(1, 2).flatten(2)))
        return out

    def _flash(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        p = self.weight_dropout.p if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)

    def _standard(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, T)
        weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)  # (B, H, T, T)
        y: Tensor = self.weight_dropout(weights) @ v  # (B, H, T, D/H)
        return y


class MLP(nn.Module):
    """Two linear layers with GELU between them; the inner width is four times d_model."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, 4 * d_model)
        self.down = nn.Linear(4 * d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        out: Tensor = self.dropout(self.down(F.gelu(self.up(x), approximate="tanh")))
        return out


def training_step(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    micro_batches: Sequence[tuple[Tensor, Tensor]],
    *,
    autocast: torch.dtype | None = None,
) -> float:
    """Take one step on micro-batches of equal size, and return the batch's mean loss.

    A micro-batch is (tokens, targets), both integers of shape (B, T). Gradients are cleared first,
    so that the gradients of two steps never coexist. With `autocast`, forward runs under
    torch.autocast.
    """
    optimizer.zero_grad(set_to_none=True)
    mean_loss = 0.0
    for tokens, targets in micro_batches:
        # One expression, because a variable would keep the logits alive through backward.
        with _precision(tokens.device.type, autocast):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        (loss / len(micro_batches)).backward()  # type: ignore[no-untyped-call]
        mean_loss += loss.item() / len(micro_batches)
    optimizer.step()
    return mean_loss


def _precision(device: str, dtype: torch.dtype | None) -> AbstractContextManager[Any]:
    return nullcontext() if dtype is None else torch.autocast(device, dtype)


def _run(blocks: Sequence[nn.Module], x: Tensor) -> Tensor:
    for block in blocks:
        x = block(x)
    return x


def _initialize(module: nn.Module) -> None:
    """Initialize like GPT-2: weights normal with deviation 0.02, biases zero."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
