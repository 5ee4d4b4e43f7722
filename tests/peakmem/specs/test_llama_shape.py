"""Which configs the training step is predicted for, and that the prediction is theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from peakmem.specs.families import llama_shape, read_parameters
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.models import model, parameter_count
from peakmem.specs.recipes import Recipe
from tests.peakmem.predict.test_step_ledger_variants import Step, assert_same
from tests.peakmem.specs.configs import PUBLISHED, SMALL

LIKE_LLAMA = [name for name in PUBLISHED if name.startswith(("llama", "mistral"))]
TINY: dict[str, Any] = SMALL["mistral, heads wider than d"] | {
    "max_position_embeddings": 64,
    "sliding_window": 32,
}


def config(values: dict[str, Any]) -> ModelConfig:
    return ModelConfig("config.json", values)


@pytest.mark.parametrize("name", LIKE_LLAMA)
def test_the_shape_has_all_parameters(name: str) -> None:
    shape, table = (
        llama_shape(config(PUBLISHED[name]), name, 1024),
        read_parameters(config(PUBLISHED[name])),
    )
    assert shape is not None
    assert table is not None
    assert sum(parameter_count(shape).values()) == table.total


def test_the_shape_is_the_models_own() -> None:
    values = PUBLISHED["llama3-8b"] | {"max_position_embeddings": 8192}
    ours = model("llama3-8b")
    read = llama_shape(config(values), "llama3-8b", 1024)
    assert read == replace(ours, d_head=128, source="config.json")


@pytest.mark.parametrize(
    ("values", "change"),
    [
        (PUBLISHED["llama3-8b"], {"attention_bias": True}),
        (PUBLISHED["llama3-8b"], {"mlp_bias": True}),
        (PUBLISHED["llama3-8b"], {"hidden_act": "gelu"}),
        (PUBLISHED["llama3-8b"], {"attention_dropout": 0.1}),
        (PUBLISHED["llama3-8b"], {"architectures": ["LlamaForSequenceClassification"]}),
        (PUBLISHED["mistral-7b"], {"sliding_window": 1024}),
        (PUBLISHED["qwen2.5-7b"], {}),
        (PUBLISHED["mixtral-8x7b"], {}),
    ],
)
def test_other_blocks_are_not_predicted(values: dict[str, Any], change: dict[str, Any]) -> None:
    assert llama_shape(config(values | change), "model", 1024) is None


def test_a_window_longer_than_the_sequence_does_not_matter() -> None:
    for window in (1025, None):
        values = PUBLISHED["mistral-7b"] | {"sliding_window": window}
        assert llama_shape(config(values), "model", 1024) is not None


class HuggingFace(nn.Module):
    """Tokens to logits, without a cache."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__()
        import transformers

        sizes = {key: value for key, value in values.items() if key != "model_type"}
        settings = transformers.AutoConfig.for_model(
            values["model_type"], **sizes, attn_implementation="sdpa", pad_token_id=None
        )
        self.model = transformers.AutoModelForCausalLM.from_config(settings)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.model(tokens, use_cache=False).logits
        return logits


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_prediction_is_a_mistrals_step(precision: str) -> None:
    pytest.importorskip("transformers")
    recipe = Recipe(precision=precision, batch=4, micro_batches=2, sequence=16)
    shape = llama_shape(config(TINY), "mistral", recipe.sequence)
    assert shape is not None
    torch.manual_seed(0)
    assert_same(shape, recipe, Step(HuggingFace(TINY), recipe).metered())
