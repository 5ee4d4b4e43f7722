"""Weights and KV caches against published figures, and against the caches of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from peakmem.predict.inference import Inference, Serving
from peakmem.specs.families import FAMILIES, read_parameters
from peakmem.specs.kv_cache import CacheLayer, cache_layers, cache_of_shape
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.models import model
from tests.peakmem.specs.configs import PUBLISHED, SMALL, decoder

QWEN_72B = decoder("qwen2", 8192, 29568, 80, 64, 8, 152064)


def token_bytes(values: dict[str, Any]) -> int:
    layers = cache_layers(ModelConfig("config.json", values))
    return 2 * sum(layer.elements_of(1) for layer in layers)


@pytest.mark.parametrize(
    ("values", "n_bytes"),
    [(PUBLISHED["deepseek-v3"], 70_272), (QWEN_72B, 327_680), (PUBLISHED["llama3-405b"], 516_096)],
)
def test_bytes_a_token_are_those_published(values: dict[str, Any], n_bytes: int) -> None:
    """Insights into DeepSeek-V3 (Zhao et al. 2025), table 1: in bf16."""
    assert token_bytes(values) == n_bytes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        "gpt2, wide and untied",
        "gpt_neox without biases",
        "opt without biases and affine norms",
        "phi, normalized",
        "llama with biases",
        "mistral, heads wider than d",
        "mixtral, tied",
        "qwen2_moe, every third a mixture",
        "qwen3 with biases",
        "gemma2 with biases",
        "gemma3 without head_dim",
        "deepseek_v2 with biases",
        "deepseek_v3, all layers dense",
    ],
)
def test_the_cache_is_that_of_transformers(name: str) -> None:
    """After 12 tokens; a window of 8 keeps one token less there, as the next is about to come."""
    transformers = pytest.importorskip("transformers")
    values = SMALL[name] | ({"sliding_window": 8} if "gemma" in name else {})
    config = ModelConfig("config.json", values)
    sizes = {key: value for key, value in values.items() if key != "model_type"}
    built = transformers.AutoConfig.for_model(values["model_type"], **sizes)
    module = getattr(transformers, FAMILIES[values["model_type"]][0])(built).eval()
    with torch.no_grad():
        cache = module(torch.ones(1, 12, dtype=torch.int64), use_cache=True).past_key_values
    real = [layer.keys.numel() + layer.values.numel() for layer in cache.layers]
    layers = cache_layers(config)
    expected = [
        layer.elements_of(12) if layer.window != 8 else layer.elements_of(12) // 8 * 7
        for layer in layers
    ]
    assert real == expected
    assert [layer.window for layer in layers].count(8) == {"gemma2": 1, "gemma3_text": 2}.get(
        values["model_type"], 0
    )


def test_a_shapes_cache_is_its_configs() -> None:
    config = ModelConfig("config.json", PUBLISHED["llama3-8b"])
    assert cache_of_shape(model("llama3-8b")) == cache_layers(config)


def test_mistrals_window_ends_the_growth() -> None:
    values = PUBLISHED["mistral-7b"]
    for window, kept in ({}, 4096), ({"sliding_window": None}, 10_000):
        (layer, *_) = cache_layers(ModelConfig("config.json", values | window))
        assert layer.elements_of(10_000) == kept * 2 * 8 * 128


def test_entries_a_layer_decide_which_have_a_window() -> None:
    kinds = ["full_attention", "sliding_attention"]
    values = decoder("qwen2", 32, 88, 2, 4, 2, 90, layer_types=kinds, sliding_window=16)
    layers = cache_layers(ModelConfig("config.json", values))
    assert [layer.window for layer in layers] == [None, 16]
    with pytest.raises(ValueError, match="layer_types has 2 entries, but expected 3"):
        cache_layers(ModelConfig("config.json", values | {"num_hidden_layers": 3}))


def test_devices_share_heads_until_each_has_one() -> None:
    layer = CacheLayer(elements=16, heads=4)
    assert [layer.elements_of(10, devices) for devices in (1, 2, 3, 4, 8)] == [160, 80, 80, 40, 40]
    assert CacheLayer(elements=16, heads=1).elements_of(10, 8) == 160  # latent attention


def inference(name: str, serving: Serving) -> Inference:
    config = ModelConfig("config.json", PUBLISHED[name])
    table = read_parameters(config)
    assert table is not None
    return Inference(table, cache_layers(config), config.size("vocab_size"), serving)


def test_llama_with_a_full_context() -> None:
    """8.03 billion parameters in bf16; 32 layers of 8 heads of 128 keys and values per token."""
    found = inference("llama3-8b", Serving(batch=3, context=8192)).by_owner()
    assert found["weights"] == 2 * 8_030_261_248
    assert found["kv_cache"] == 3 * 2**30  # 1 GiB each, as vLLM's pages have it
    assert found["logits"] == 3 * 128256 * 6


@pytest.mark.parametrize(("quantized", "bits"), [("nf4", 4.127), ("int8", 8), ("fp8_e4m3", 8)])
def test_quantized_weights(quantized: Any, bits: float) -> None:
    """Embedding and head stay in bf16."""
    weights = inference("mixtral-8x7b", Serving(quantized=quantized)).by_owner()["weights"]
    outside = 2 * 32000 * 4096
    expected = (46_702_792_704 - outside) * bits / 8 + 2 * outside
    assert weights == pytest.approx(expected, rel=0.002)


def test_the_largest_batch_is_the_last_that_fits() -> None:
    serving = Serving(context=4096, tensor=2)
    most = inference("llama3-8b", serving).largest_batch(24 * 10**9)
    sizes = [
        inference("llama3-8b", Serving(batch=batch, context=4096, tensor=2)).bytes
        for batch in (most, most + 1)
    ]
    assert sizes[0] <= 24 * 10**9 < sizes[1]
    assert inference("llama3-8b", serving).largest_batch(10**9) == 0


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="know the KV cache of a t5"):
        cache_layers(ModelConfig("config.json", PUBLISHED["t5-small"]))
    with pytest.raises(
        ValueError, match=r"quantized='int3' is unknown .*; use one of None, 'int8'"
    ):
        Serving(quantized="int3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="context"):
        Serving(context=0)


@pytest.mark.parametrize(("tensor", "expert"), [(1, 8), (2, 8), (4, 4)])
def test_devices_that_share_experts_have_all_of_them_together(tensor: int, expert: int) -> None:
    """All devices together: experts once, all else once for each group of `tensor`."""
    found = inference("qwen3-30b-a3b", Serving(tensor=tensor, expert=expert))
    table = found.table
    experts = table.by_group()["experts"]
    groups = expert // tensor
    together = found.by_owner()["weights"] * expert
    assert together == 2 * (experts + groups * (table.total - experts))


@pytest.mark.parametrize(
    ("name", "serving", "says"),
    [
        ("llama3-8b", {"expert": 2}, "a llama has no experts for 2 devices to share"),
        ("mixtral-8x7b", {"expert": 3}, "3 devices can't share 8 experts equally"),
        ("mixtral-8x7b", {"tensor": 3, "expert": 4}, "make expert a multiple of tensor"),
    ],
)
def test_experts_that_cannot_be_shared(name: str, serving: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        inference(name, Serving(**serving)).by_owner()
