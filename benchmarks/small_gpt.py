"""A small GPT that learns generated sentences in a minute, with any matrix product or Adam."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.sentences import LETTERS, sentences
from peakmem.models import ModelShape
from peakmem.nn import GPT

__all__ = ["SHAPE", "Product", "Trained", "Trainer", "linear_layers", "with_product"]

SHAPE = ModelShape("small", n_layers=2, d_model=128, n_heads=4, vocab=len(LETTERS), context=64)
_BATCH, _RATE, _WARM_UP = 16, 3e-3, 50

Product = Callable[[Tensor, Tensor], Tensor]  # (x, weight) -> x @ weight.T, or close to it
Step = Callable[[list[Tensor], list[Tensor], dict[Any, Any], float], None]


@dataclass(frozen=True)
class Trained:
    """The results of a training run."""

    model: GPT
    #: Of the optimizer's state.
    state_bytes: int


class Trainer:
    """Trains models from the same start on the same batches; compares them on unseen text."""

    def __init__(self, shape: ModelShape, steps: int) -> None:
        self.shape, self.steps = shape, steps
        codes = {letter: code for code, letter in enumerate(LETTERS)}
        self.text, self.unseen = (
            torch.tensor([codes[letter] for letter in sentences(characters, seed)])
            for characters, seed in ((400_000, 0), (32_768, 1))
        )

    def train(self, product: Product | None = None, step: Step | None = None) -> Trained:
        """Train a model whose blocks multiply by `product`, with torch's Adam or with `step`."""
        torch.manual_seed(0)
        model = GPT(self.shape)
        if product is not None:
            model = with_product(model, product)
        parameters: list[Tensor] = list(model.parameters())
        state: dict[Any, Any] = {}
        take = step or _adam
        for number, (tokens, targets) in enumerate(self._batches()):
            rate = _RATE * min(1.0, (number + 1) / _WARM_UP) * (1 - number / self.steps)
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
            gradients = list(torch.autograd.grad(loss, parameters))
            with torch.no_grad():
                take(parameters, gradients, state, rate)
        return Trained(model, sum(tensor.nbytes for tensor in _tensors(state)))

    def loss(self, model: GPT) -> float:
        """Return the mean loss on unseen text, in nats per character."""
        length = self.shape.context
        windows = self.unseen[: len(self.unseen) // length * length].view(-1, length)
        with torch.no_grad():
            logits = torch.cat([model(part[:, :-1]) for part in torch.split(windows, 64)])
            return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()).item()

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(0)
        length = self.shape.context
        for _ in range(self.steps):
            starts = torch.randint(len(self.text) - length, (_BATCH,), generator=generator)
            windows = torch.stack([self.text[start : start + length + 1] for start in starts])
            yield windows[:, :-1], windows[:, 1:]


def linear_layers(model: GPT) -> list[nn.Linear]:
    """Return the linear layers of a model's blocks."""
    return [layer for layer in model.blocks.modules() if isinstance(layer, nn.Linear)]


def with_product(model: GPT, product: Product) -> GPT:
    """Return a copy of a model whose blocks multiply by `product`."""
    copy = deepcopy(model)
    for block in copy.blocks:
        for owner in (block.attention, block.mlp):
            assert isinstance(owner, nn.Module)
            for name, layer in list(owner.named_children()):
                if isinstance(layer, nn.Linear):
                    setattr(owner, name, _Layer(layer, product))
    return copy


class _Layer(nn.Module):
    """A linear layer that computes its product with a given function."""

    def __init__(self, linear: nn.Linear, product: Product) -> None:
        super().__init__()
        self.weight, self.bias, self.product = linear.weight, linear.bias, product

    def forward(self, x: Tensor) -> Tensor:  # (B, T, in) -> (B, T, out)
        y: Tensor = self.product(x.flatten(0, 1), self.weight) + self.bias
        return y.view(*x.shape[:2], -1)


def _adam(
    parameters: list[Tensor], gradients: list[Tensor], state: dict[Any, Any], rate: float
) -> None:
    if not state:
        state["optimizer"] = torch.optim.Adam(parameters, foreach=False)
        state["moments"] = state["optimizer"].state
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    state["optimizer"].param_groups[0]["lr"] = rate
    state["optimizer"].step()


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors within dicts and sequences."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
