"""Steps of transformers' classes, traced from a config, against the same steps on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from peakmem.measure.meter import MemoryMeter
from peakmem.measure.traced_config import trace_config
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.families import FAMILIES, step_shape
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.recipes import Recipe
from tests.peakmem.specs.configs import SMALL, decoder

pytestmark = pytest.mark.filterwarnings("ignore")
CASES = [
    ("bert, untied", "fp32"),
    ("bert, untied", "amp_bf16"),
    ("gemma2 with biases", "bf16"),
    ("vit, oblong", "amp_bf16"),
    pytest.param("t5, unequal stacks", "bf16", marks=pytest.mark.slow),
]


def built(name: str, precision: str) -> Any:
    transformers = pytest.importorskip("transformers")
    values = SMALL[name]
    sizes = {key: value for key, value in values.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(values["model_type"], **sizes)
    config.decoder_start_token_id = 0
    config.use_cache = False
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    module = getattr(transformers, FAMILIES[values["model_type"]][0])._from_config(
        config, dtype=dtype
    )
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    module.train()
    return module


def peak_bytes(name: str, module: Any, precision: str) -> int:
    """Meter the second step of AdamW in a loop, with two sequences of 12 tokens or two images."""
    batch = {
        "input_ids": torch.zeros(2, 12, dtype=torch.int64),
        "labels": torch.zeros(2, 12, dtype=torch.int64),
    }
    if name.startswith("vit"):
        image = torch.zeros(2, 1, 32, 48).to(next(module.parameters()).dtype)
        batch = {"pixel_values": image, "labels": torch.zeros(2, dtype=torch.int64)}
    trained = [p for p in module.parameters() if p.requires_grad]
    adam = torch.optim.AdamW(trained, foreach=False)

    def step() -> None:
        adam.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "amp_bf16"):
            loss = module(**batch).loss
        (loss / 1).backward()
        adam.step()

    step()
    meter = MemoryMeter("cpu").track(module, adam, batch)
    with meter:
        step()
    return meter.peak_bytes


@pytest.mark.parametrize(("name", "precision"), CASES)
def test_the_trace_is_the_metered_step(name: str, precision: str) -> None:
    config = ModelConfig("config.json", SMALL[name])
    recipe = Recipe(precision, batch=2, sequence=12, implementation="for-loop")
    traced = trace_config(config, recipe, "torch-cpu").peak_bytes
    real = peak_bytes(name, built(name, precision), precision)
    assert traced == pytest.approx(real, rel=0.01)


class Adapter(nn.Module):
    """W x + 2 B A x, with W frozen."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.a = nn.Linear(base.in_features, 4, bias=False)
        self.b = nn.Linear(4, base.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> Any:
        return self.base(x) + self.b(self.a(x)) * 2.0


def test_adapters_and_checkpointing_of_gemma_2() -> None:
    name = "gemma2 with biases"
    module = built(name, "fp32")
    module.requires_grad_(requires_grad=False)
    for layer in module.model.layers:
        layer.self_attn.q_proj = Adapter(layer.self_attn.q_proj)
    module.gradient_checkpointing_enable({"use_reentrant": False})
    recipe = Recipe(
        *("fp32", "adamw", "for-loop"),
        batch=2,
        sequence=12,
        lora_rank=4,
        lora_targets=("q_proj",),
        checkpointing="full",
    )
    traced = trace_config(ModelConfig("config.json", SMALL[name]), recipe, "torch-cpu")
    assert traced.peak_bytes == pytest.approx(peak_bytes(name, module, "fp32"), rel=0.01)


def test_masters_are_kept_beside_16_bit_weights() -> None:
    config = ModelConfig("config.json", SMALL["bert, untied"])
    ledger = trace_config(config, Recipe("mixed", sequence=12))
    end = ledger.by_owner(len(ledger.events) - 1)
    trained = end["master"] // 4
    assert end["optimizer_state"] == 8 * (trained - 90)  # one of the head's biases is not used
    assert end["gradient"] <= 2 * trained <= end["parameter"]


@pytest.mark.parametrize(
    ("name", "recipe", "says"),
    [
        (
            "bert, untied",
            Recipe(optimizer="lion"),
            "a trace can't follow optimizer='lion'; use sgd",
        ),
        ("bert, untied", Recipe(offload=True), "use no offloading"),
        (
            "bert, untied",
            Recipe(sequence=12, lora_rank=4, lora_targets=("q_proj",)),
            "name no linear layer of a BertForMaskedLM; choose from all-linear, .* query",
        ),
    ],
)
def test_what_is_not_traced_is_refused(name: str, recipe: Recipe, says: str) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(ValueError, match=says):
        trace_config(ModelConfig("config.json", SMALL[name]), recipe)


def test_a_class_without_a_loss_is_refused() -> None:
    pytest.importorskip("transformers")
    values = SMALL["bert, untied"] | {"architectures": ["BertModel"]}
    with pytest.raises(ValueError, match=r"a step of BertModel can't be traced"):
        trace_config(ModelConfig("config.json", values), Recipe(sequence=12))


@pytest.mark.parametrize(("name", "limit"), [("bert, untied", 40), ("gpt2, wide and untied", 1024)])
def test_a_sequence_beyond_the_positions_is_refused_with_their_number(
    name: str, limit: int
) -> None:
    pytest.importorskip("transformers")
    config = ModelConfig("config.json", SMALL[name])
    says = f"has {limit} positions, but the sequence is {limit + 1} tokens; give --seq {limit} or"
    with pytest.raises(ValueError, match=says):
        trace_config(config, Recipe(sequence=limit + 1))
    assert trace_config(config, Recipe(sequence=limit)).peak_bytes > 0


@pytest.mark.parametrize(
    ("name", "offset"), [("opt without biases and affine norms", 2), ("roberta", 1)]
)
def test_positions_that_begin_later_are_fewer(name: str, offset: int) -> None:
    pytest.importorskip("transformers")
    values = dict(SMALL.get(name, SMALL["bert, untied"]) | {"max_position_embeddings": 40})
    if name == "roberta":
        values |= {"model_type": "roberta", "pad_token_id": 0}
    limit = 40 if name.startswith("opt") else 40 - offset
    with pytest.raises(ValueError, match=f"has {limit} positions"):
        trace_config(ModelConfig("config.json", values), Recipe(sequence=limit + 1))


@pytest.mark.parametrize("scheme", ["nf4", "int8", "fp8_e4m3"])
def test_a_quantized_base_is_traced_as_it_is_predicted(scheme: Any) -> None:
    """Against `build_ledger`, which knows nothing of modules."""
    pytest.importorskip("transformers")
    values = decoder("llama", 128, 352, 3, 4, 2, 600)
    config = ModelConfig("config.json", values)
    recipe = Recipe(
        "amp_bf16",
        batch=2,
        sequence=64,
        lora_rank=4,
        lora_targets=("all-linear",),
        quantized_base=scheme,
    )
    shape = step_shape(config, "llama", 64)
    assert shape is not None
    predicted, traced = build_ledger(shape, recipe), trace_config(config, recipe)
    frequencies = 2 * 16 * 4  # of rotary positions, which a prediction takes for an activation
    parameters = predicted.by_owner()["parameter"]
    assert traced.by_owner()["parameter"] == parameters + frequencies
    assert traced.peak_bytes == pytest.approx(predicted.peak_bytes, rel=1e-4)


def test_an_image_model_with_a_quantized_base() -> None:
    pytest.importorskip("transformers")
    config = ModelConfig("config.json", SMALL["vit, oblong"])
    whole = Recipe("bf16", batch=2, lora_rank=4, lora_targets=("attention",))
    quantized = Recipe(
        "bf16", batch=2, lora_rank=4, lora_targets=("attention",), quantized_base="nf4"
    )
    of_whole, of_quantized = (
        trace_config(config, recipe).by_owner()["parameter"] for recipe in (whole, quantized)
    )
    matrices = 2 * (4 * 32 * 32 + 2 * 32 * 72)  # of two layers: from 2 bytes to half of one
    assert of_whole - of_quantized == pytest.approx(1.5 * matrices, rel=0.02)  # and scales
