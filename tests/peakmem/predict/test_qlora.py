"""QLoRA's predicted peak beside the meter's, on layers that lab 9's solution makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from benchmarks.solutions import solved
from peakmem.labs.lab09 import metered_qlora_step, qlora_gpt
from peakmem.labs.lab09.frozen_linear import FrozenLinear
from peakmem.predict.qlora import qlora_peak
from peakmem.specs.models import ModelShape, model


@pytest.fixture(scope="module")
def names() -> Mapping[str, Any]:
    return solved("lab09_quantization")


def shape(n_layers: int, d_model: int, vocab: int) -> ModelShape:
    return ModelShape("small", n_layers, d_model, 4, vocab=vocab, context=128)


def predicted_and_metered(
    names: Mapping[str, Any], small: ModelShape, rank: int, batch: int, seq: int
) -> tuple[int, int]:
    predicted = qlora_peak(small, rank, batch, seq, precision="fp32", profile="torch-cpu")
    gpt = qlora_gpt(small, rank, names["Lora"], names["nf4_encode"], names["nf4_decode"])
    return predicted, metered_qlora_step(gpt, batch, seq)


@pytest.mark.parametrize(
    ("small", "rank", "batch", "seq"),
    [
        (shape(2, 128, 500), 8, 4, 64),
        (shape(2, 128, 1000), 8, 8, 128),
        (shape(3, 256, 200), 4, 2, 64),
        (shape(1, 64, 100), 16, 4, 32),
    ],
    ids=str,
)
def test_the_peak_is_the_meters_within_2_percent(
    names: Mapping[str, Any], small: ModelShape, rank: int, batch: int, seq: int
) -> None:
    predicted, metered = predicted_and_metered(names, small, rank, batch, seq)
    assert metered == pytest.approx(predicted, rel=0.02)


def test_kept_float_copies_show(names: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lab 9's leak: without a function of its own, autograd saves each widened weight."""
    monkeypatch.setattr(
        FrozenLinear, "forward", lambda self, x: F.linear(x, self.weight, self.bias)
    )
    predicted, metered = predicted_and_metered(names, shape(3, 256, 200), 4, 2, 64)
    assert metered > 1.3 * predicted


def test_a_frozen_layer_is_its_decoded_weight(names: Mapping[str, Any]) -> None:
    linear = torch.nn.Linear(96, 80)
    frozen = FrozenLinear(linear, names["nf4_encode"], names["nf4_decode"])
    weight = frozen.weight
    assert (weight - linear.weight).abs().max() < 0.16 * linear.weight.abs().max()
    x, same = (torch.randn(3, 96, generator=torch.manual_seed(0)).requires_grad_() for _ in "ab")
    frozen(x).square().sum().backward()
    F.linear(same, weight, linear.bias).square().sum().backward()
    assert torch.equal(x.grad, same.grad)  # type: ignore[arg-type]
    stored = sum(buffer.nbytes for buffer in frozen.buffers())
    assert stored == 96 * 80 // 2 + 4 * 96 * 80 // 64


def test_more_of_anything_takes_more() -> None:
    gpt2 = model("gpt2")
    least = qlora_peak(gpt2, 8, 1, 256)
    assert least < min(
        qlora_peak(gpt2, 16, 1, 256), qlora_peak(gpt2, 8, 2, 256), qlora_peak(gpt2, 8, 1, 512)
    )


def test_rank_0_is_refused() -> None:
    with pytest.raises(ValueError, match="a rank of 1 or more, but got 0; rank 0 trains no"):
        qlora_peak(model("gpt2"), 0, 1, 256)
