"""A frozen linear layer whose weight is stored in 4 bits and widened each time it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["FrozenLinear"]

_CHUNK = 4096  # weights decoded at a time, so that decoding takes little memory

Encode = Callable[[Tensor], tuple[Tensor, Tensor]]
Decode = Callable[[Tensor, Tensor, int], Tensor]


class FrozenLinear(nn.Module):
    """A linear layer stored in codes, used like an `nn.Linear`.

    `encode(x)` returns the codes and scales of a vector, and `decode(codes, scales, n)` its values.
    Autograd keeps the codes for backward, not the weight.
    """

    def __init__(self, linear: nn.Linear, encode: Encode, decode: Decode) -> None:
        super().__init__()
        self.out_features, self.in_features = linear.weight.shape
        self.decode = decode
        self.n_chunks = 0
        for part in torch.split(linear.weight.detach().flatten(), _CHUNK):
            codes, scales = encode(part)
            self.register_buffer(f"codes{self.n_chunks}", codes)
            self.register_buffer(f"scales{self.n_chunks}", scales)
            self.n_chunks += 1
        self.bias = linear.bias

    @property
    def weight(self) -> Tensor:
        """The weight in fp32 (out, in), decoded again."""
        weight = torch.empty(self.out_features, self.in_features)
        for number, part in enumerate(torch.split(weight.view(-1), _CHUNK)):
            codes, scales = (self.get_buffer(f"{n}{number}") for n in ("codes", "scales"))
            part.copy_(self.decode(codes, scales, part.numel()))
        return weight

    def forward(self, x: Tensor) -> Tensor:
        """Return x times the weight, transposed, plus the bias."""
        y: Tensor = _Widened.apply(x, self)  # type: ignore[no-untyped-call]
        return y


class _Widened(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: FrozenLinear) -> Tensor:
        ctx.layer = layer
        return F.linear(x, layer.weight, layer.bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient @ ctx.layer.weight, None
