"""Losses of a small GPT in few bits: rounded after or during training, or with 8-bit Adam.

Run as `python -m benchmarks.quantization`. A grammar generates the text, the model is
`peakmem.nn.GPT`, and the codes come from lab 9's solution and `peakmem.numbers.quantization`. Only
the matrices of attention and MLP have codes; everything else stays in fp32. Losses are on unseen
text, in nats per character.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from benchmarks.small_gpt import SHAPE, Product, Trainer, linear_layers, with_product
from benchmarks.solutions import solved
from peakmem.models import ModelShape
from peakmem.nn import GPT
from peakmem.numbers.quantization import bits_a_weight, round_trip

__all__ = ["Row", "main", "measured", "problems"]

_STEPS = 1000
_BLOCK = 64  # weights that share a scale
_LOW = 3  # bits for the comparison of training through rounding

Names = Mapping[str, Any]
Change = Callable[[Tensor], Tensor]  # of a weight
Kind = Literal["rounded after training", "trained rounded", "optimizer"]


@dataclass(frozen=True)
class Row:
    """One way to store weights, or to train them."""

    kind: Kind
    way: str
    #: Bits per weight, scales included; for an optimizer, bits of state per parameter.
    bits: float
    loss: float


def measured(names: Names, shape: ModelShape = SHAPE, steps: int = _STEPS) -> list[Row]:
    """Train four models, and return a row for each way to store or train them."""
    trainer = Trainer(shape, steps)
    adam = trainer.train()
    eight_bits = trainer.train(step=names["adam8bit_step"])
    n = sum(parameter.numel() for parameter in adam.model.parameters())
    return [
        *_after_training(names, trainer, adam.model),
        *_trained_rounded(names, trainer),
        *(
            Row("optimizer", way, 8 * found.state_bytes / n, trainer.loss(found.model))
            for way, found in (("Adam", adam), ("8-bit Adam", eight_bits))
        ),
    ]


def _after_training(names: Names, trainer: Trainer, model: GPT) -> Iterator[Row]:
    shape = trainer.shape
    ways: dict[str, tuple[float, Change]] = {
        "fp32": (32.0, lambda weight: weight),
        "bf16": (16.0, _through_library("bf16")),
    }
    for whole in (8, 4, _LOW):
        one, many = _bits(whole, shape), _bits(whole, shape, rows=True)
        ways[f"int{whole}, one scale"] = one, _through_codes(names, whole, None)
        ways[f"int{whole}, one scale per row"] = many, _through_codes(names, whole, 0)
    for name in ("int4", "nf4", "nf4_double"):
        ways[f"{name}, blocks of {_BLOCK}"] = bits_a_weight(name, _BLOCK), _through_library(name)
    ways["ternary"] = _bits(math.log2(3), shape), _ternary(names)
    for way, (bits, change) in ways.items():
        yield Row("rounded after training", way, bits, trainer.loss(_changed(model, change)))
    products = {"int8 products": math.inf, "int8 products, outliers in fp32": 6.0}
    for way, threshold in products.items():
        loss = trainer.loss(with_product(model, _int8(names, threshold)))
        yield Row("rounded after training", way, _bits(8, shape, rows=True), loss)


def _trained_rounded(names: Names, trainer: Trainer) -> Iterator[Row]:
    shape = trainer.shape
    ways: dict[str, tuple[float, Product]] = {
        f"int{_LOW}, one scale per row": (_bits(_LOW, shape, rows=True), _fake(names, _LOW)),
        "ternary": (_bits(math.log2(3), shape), names["ternary_linear"]),
    }
    for way, (bits, product) in ways.items():
        yield Row("trained rounded", way, bits, trainer.loss(trainer.train(product).model))


def _bits(bits: float, shape: ModelShape, rows: bool = False) -> float:
    """Return the bits of a weight, with an fp32 scale for each row or each matrix."""
    weights = [layer.weight for layer in linear_layers(GPT(shape))]
    scales = sum(len(weight) if rows else 1 for weight in weights)
    return bits + 32 * scales / sum(weight.numel() for weight in weights)


def _changed(model: GPT, change: Change) -> GPT:
    """Return a copy of a model with each matrix of its blocks changed."""
    copy = deepcopy(model)
    with torch.no_grad():
        for layer in linear_layers(copy):
            layer.weight.copy_(change(layer.weight))
    return copy


def _through_library(name: str) -> Change:
    return lambda weight: torch.from_numpy(round_trip(weight.numpy(), name, _BLOCK))


def _through_codes(names: Names, bits: int, axis: int | None) -> Change:
    quantize, dequantize = names["quantize_symmetric"], names["dequantize"]
    return lambda weight: dequantize(*quantize(weight, bits, axis))


def _ternary(names: Names) -> Change:
    """Return a change to the weight that `ternary_linear` uses: its product with the identity."""
    return lambda weight: names["ternary_linear"](torch.eye(weight.shape[1]), weight).T


def _fake(names: Names, bits: int) -> Product:
    def product(x: Tensor, weight: Tensor) -> Tensor:
        largest = weight.detach().abs().amax(dim=1, keepdim=True)  # of each row
        y: Tensor = x @ (largest * names["fake_quant"](weight / largest, bits)).T
        return y

    return product


def _int8(names: Names, threshold: float) -> Product:
    def product(x: Tensor, weight: Tensor) -> Tensor:
        y: Tensor = names["int8_linear"](x, *names["quantize_symmetric"](weight, 8, 0), threshold)
        return y

    return product


def problems(rows: list[Row]) -> list[str]:
    """Return each contradiction of lab 9 as a sentence.

    Lab 9 says that eight bits cost nothing, smaller groups are better, NF4 is better than int4,
    models trained through rounding survive it, and Adam needs no 32-bit state.
    """
    loss = {(str(row.kind), row.way): row.loss for row in rows}
    after, through = "rounded after training", "trained rounded"
    row, block = f"int{_LOW}, one scale per row", f"blocks of {_BLOCK}"
    at_most = [  # the first is at most this many times the second
        ((after, "int8, one scale per row"), (after, "fp32"), 1.01),
        ((after, "int8 products, outliers in fp32"), (after, "fp32"), 1.01),
        ((after, "int4, one scale per row"), (after, "int4, one scale"), 1.0),
        ((after, f"int4, {block}"), (after, "int4, one scale per row"), 1.0),
        ((after, f"nf4, {block}"), (after, f"int4, {block}"), 1.0),
        ((through, row), (after, row), 1.0),
        ((through, "ternary"), (after, "ternary"), 1.0),
        (("optimizer", "8-bit Adam"), ("optimizer", "Adam"), 1.02),
    ]
    return [
        f"{' '.join(first)}: a loss of {loss[first]:.4f}, over {factor} times that of "
        f"{' '.join(second)}, {loss[second]:.4f}"
        for first, second, factor in at_most
        if loss[first] > factor * loss[second]
    ]


def main() -> int:
    """Print the table; return 1 if a row contradicts what the lab says."""
    parser = argparse.ArgumentParser(prog="quantization", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--steps", type=int, default=_STEPS, help="of each training")
    options = parser.parse_args()
    names = solved("lab09_quantization")
    rows = measured(names, steps=options.steps)
    for row in rows:
        print(f"{row.kind:24} {row.way:34} {row.bits:6.2f} bits  loss {row.loss:.4f}")
    if options.json:
        command = "python3 course.py bench quantization"
        found = {"command": command, "steps": options.steps, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    wrong = problems(rows)
    print("\n".join(wrong) or "As lab 9 says.")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
