"""Every family's parameters against transformers' own class, built on torch's meta device."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from peakmem.specs.families import FAMILIES, read_parameters
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.models import model, parameter_count
from peakmem.specs.parameter_table import ParameterTable
from tests.peakmem.specs.configs import PUBLISHED, SMALL

CONFIGS = PUBLISHED | SMALL
pytestmark = pytest.mark.filterwarnings("ignore")


def read(values: dict[str, Any]) -> ParameterTable:
    table = read_parameters(ModelConfig("config.json", values))
    assert table is not None
    return table


@cache
def built(name: str) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    values = CONFIGS[name]
    sizes = {key: value for key, value in values.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(values["model_type"], **sizes)
    auto = {
        "bert": "AutoModelForMaskedLM",
        "t5": "AutoModelForSeq2SeqLM",
        "vit": "AutoModelForImageClassification",
    }.get(values["model_type"], "AutoModelForCausalLM")
    with torch.device("meta"):
        module: nn.Module = getattr(transformers, auto).from_config(config)
        if values["model_type"] == "t5" and not values.get("tie_word_embeddings", True):
            # Transformers 5 always ties T5's head, until it loads weights with a separate table.
            module.lm_head.weight = nn.Parameter(torch.empty_like(module.lm_head.weight))  # type: ignore[union-attr]
    return module


def test_every_family_has_a_published_and_a_small_config() -> None:
    for configs in (PUBLISHED, SMALL):
        assert {values["model_type"] for values in configs.values()} == set(FAMILIES)


@pytest.mark.parametrize("name", CONFIGS)
def test_shapes_are_those_that_transformers_builds(name: str) -> None:
    table, module = read(CONFIGS[name]), built(name)
    shapes: Counter[tuple[int, ...]] = Counter()
    for parameter in table.parameters:
        shapes[parameter.shape] += parameter.copies
    assert shapes == Counter(tuple(p.shape) for p in module.parameters())
    assert table.total == sum(p.numel() for p in module.parameters())
    assert table.class_name == type(module).__name__


@pytest.mark.parametrize("name", CONFIGS)
def test_groups_are_those_that_names_tell(name: str) -> None:
    """A parameter's name in transformers decides its group."""
    table, module = read(CONFIGS[name]), built(name)
    named = [(key.split("."), p.numel()) for key, p in module.named_parameters()]
    of_experts = sum(n for parts, n in named if "experts" in parts)
    of_norms = sum(n for parts, n in named if "norm" in parts[-2].lower() or "ln_" in parts[-2])
    parts_of_attention = {"attn", "self_attn", "attention", "SelfAttention", "EncDecAttention"}
    of_attention = sum(
        n
        for parts, n in named
        if parts_of_attention & set(parts) and "norm" not in parts[-2].lower()
    )
    groups = table.by_group()
    assert groups.get("experts", 0) == of_experts
    assert groups.get("norm", 0) == of_norms
    assert groups["attention"] == of_attention
    assert "other" not in groups
    assert sum(groups.values()) == table.total


@pytest.mark.parametrize("name", CONFIGS)
def test_a_token_uses_all_but_the_experts_that_are_not_chosen(name: str) -> None:
    values, table = CONFIGS[name], read(CONFIGS[name])
    idle = 0
    for key, parameter in built(name).named_parameters():
        if ".experts." in key:
            n_experts = parameter.shape[0]
            idle += parameter[0].numel() * (n_experts - values["num_experts_per_tok"])
    assert table.active == table.total - idle


@pytest.mark.parametrize(
    ("name", "total", "active", "digit"),
    [
        ("mixtral-8x7b", 46.7, 12.9, 0.1),
        ("mixtral-8x22b", 141, 39, 1),
        ("qwen1.5-moe-a2.7b", 14.3, 2.7, 0.1),
        ("qwen3-30b-a3b", 30.5, 3.3, 0.1),
        ("qwen3-235b-a22b", 235, 22, 1),
        ("deepseek-v2", 236, 21, 1),
        ("deepseek-v3", 671, 37, 1),
    ],
)
def test_mixtures_as_published(name: str, total: float, active: float, digit: float) -> None:
    """Billions as model cards and papers print them, some rounded and some cut at a digit."""
    table = read(PUBLISHED[name])
    assert table.active is not None
    assert abs(table.total / 1e9 - total) < digit
    assert abs(table.active / 1e9 - active) < digit


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl", "llama2-7b", "llama2-70b", "llama3-8b"])
def test_a_config_counts_as_the_model_of_that_name(name: str) -> None:
    assert read(PUBLISHED[name]).total == sum(parameter_count(model(name)).values())


def test_checkpoints_as_published() -> None:
    published = {
        "bert-base": 109_514_298,
        "flan-t5-base": 247_577_856,
        "vit-base": 86_567_656,
        "gemma3-1b": 999_885_952,
        "qwen2-0.5b": 494_032_768,
    }
    assert {name: read(PUBLISHED[name]).total for name in published} == published


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "mamba"},
        {"architectures": ["GPT2ForSequenceClassification"]},
        {"add_cross_attention": True},
    ],
    ids=str,
)
def test_other_classes_are_not_read(change: dict[str, Any]) -> None:
    assert read_parameters(ModelConfig("config.json", PUBLISHED["gpt2"] | change)) is None


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("gpt2", {"n_layer": None}, "has no n_layer or num_hidden_layers"),
        ("gpt2", {"n_embd": 0}, "expected n_embd to be a whole number of at least 1, but got 0"),
        ("gpt2", {"vocab_size": True}, "expected vocab_size"),
        ("gpt2", {"n_positions": "1024"}, "but got '1024'"),
        ("llama3-8b", {"attention_bias": 1}, "expected attention_bias to be true or false"),
        ("mistral-7b", {"num_key_value_heads": None}, "has no num_key_value_heads"),
        ("mixtral-8x7b", {"num_experts_per_tok": 9}, "num_experts_per_tok=9 of 8 experts"),
        ("qwen3-30b-a3b", {"mlp_only_layers": 3}, "mlp_only_layers to be a list of layers"),
        ("t5-small", {"feed_forward_proj": 1}, "expected feed_forward_proj"),
        ("vit-base", {"patch_size": [16, 0]}, "expected patch_size"),
    ],
)
def test_a_size_that_is_none_is_named(name: str, change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        read(PUBLISHED[name] | change)
    assert "config.json" in str(caught.value)


def test_a_billion_layers_take_no_time() -> None:
    table = read(PUBLISHED["qwen3-30b-a3b"] | {"num_hidden_layers": 10**9})
    assert sum(p.copies for p in table.parameters) > 10**9
