"""The calculator of quantized weights beside QLoRA's figures and the library's own counts."""

from __future__ import annotations

import pytest

from peakmem.predict.inference import Inference, Serving
from peakmem.predict.model_states import model_states
from peakmem.show.widgets import quantization
from peakmem.specs.kv_cache import cache_of_shape
from peakmem.specs.models import model, parameter_count
from peakmem.specs.parameter_table import table_of_shape
from peakmem.specs.recipes import Recipe


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
    assert ">yes<" in row
    assert "4.13" in row


def test_adapters_are_16_bytes_for_each_of_their_parameters() -> None:
    """Rank 64 on GPT-2's four matrices a layer: queries, keys and values are one of them."""
    with_adapters = total_gb(model="gpt2", scheme="bf16", use="qlora")
    alone = 2 * sum(parameter_count(model("gpt2")).values())
    # h x 3h, the output h x h, h x 4h and back.
    adapters = 12 * 64 * ((768 + 3 * 768) + (768 + 768) + 2 * (768 + 4 * 768))
    assert with_adapters * 1e9 - alone == pytest.approx(16 * adapters)


@pytest.mark.parametrize("name", ["llama2-7b", "gpt2", "llama3-70b"])
def test_the_figures_are_those_of_peakmem_estimate(name: str) -> None:
    """NF4 with double quantization, as `--quantized-base nf4` has it."""
    shape = model(name)
    table = table_of_shape(shape)
    serving = Serving(context=4096, precision="bf16", quantized="nf4")
    owners = Inference(table, cache_of_shape(shape), shape.vocab, serving).by_owner()
    served = owners["weights"] + owners["kv_cache"]
    assert total_gb(model=name, scheme="nf4_double") * 1e9 == pytest.approx(served, abs=1)
    recipe = Recipe("mixed", lora_rank=64, lora_targets=("all-linear",), quantized_base="nf4")
    trained = sum(model_states(table, recipe).values())
    assert total_gb(model=name, scheme="nf4_double", use="qlora") * 1e9 == pytest.approx(
        trained, abs=1
    )


def test_what_the_board_decides_is_said() -> None:
    calculator = quantization()
    calculator.set(model="llama3-70b", gpu="v100-16gb")
    assert calculator._text.value.count(">no<") == 5
    calculator.set(model="gpt2")
    assert calculator._text.value.count(">yes<") == 5
