"""The calculator of quantized weights beside QLoRA's figures and the library's own counts."""

from __future__ import annotations

import pytest

from peakmem.show.widgets import quantization
from peakmem.specs.models import model, parameter_count


def total_gb(**state: object) -> float:
    calculator = quantization()
    calculator.set(**state)
    figure = calculator.answer().figure
    assert figure is not None
    assert figure[1] == "GB"
    return figure[0]


def test_a_7b_model_in_bf16_is_two_bytes_a_weight_and_its_cache() -> None:
    weights = 2 * sum(parameter_count(model("llama2-7b")).values())
    cache = 2 * 2 * 32 * 4096 * 4096
    assert total_gb(model="llama2-7b", scheme="bf16") == pytest.approx((weights + cache) / 1e9)


def test_qloras_65b_fits_its_48_gb() -> None:
    """Dettmers et al. 2023: 65B parameters, finetuned on one GPU of 48 GB."""
    calculator = quantization()
    calculator.set(
        model="llama-65b", scheme="nf4_double", use="qlora", gpu="a6000-48gb", doublings=6
    )
    row = calculator._text.value.split("nf4_double")[1].split("</tr>")[0]
    assert ">fits<" in row
    assert "4.13" in row


def test_adapters_are_16_bytes_for_each_of_their_parameters() -> None:
    """Rank 64 on GPT-2's four matrices a layer: attention's own two and the MLP's."""
    with_adapters = total_gb(model="gpt2", scheme="bf16", use="qlora")
    alone = 2 * sum(parameter_count(model("gpt2")).values())
    # Queries, keys, values and the output each h x h; h x 4h and back.
    adapters = 12 * 64 * (4 * (768 + 768) + 2 * (768 + 4 * 768))
    assert with_adapters * 1e9 - alone == pytest.approx(16 * adapters)


def test_what_the_board_decides_is_said() -> None:
    calculator = quantization()
    calculator.set(model="llama3-70b", gpu="v100-16gb")
    assert calculator._text.value.count("does not fit") == 5
    calculator.set(model="gpt2")
    assert calculator._text.value.count(">fits<") == 5
