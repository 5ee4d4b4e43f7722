"""The configs for which the training step is predicted, and that prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.families import read_parameters, step_shape
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.models import model, parameter_count
from peakmem.specs.recipes import Recipe
from tests.peakmem.predict.test_step_ledger_variants import HuggingFaceStep, assert_same
from tests.peakmem.specs.configs import PUBLISHED, SMALL

PREDICTED = [name for name in PUBLISHED if name.startswith(("gpt2", "llama", "mistral"))]
TINY: dict[str, Any] = SMALL["mistral, heads wider than d"] | {
    "max_position_embeddings": 64,
    "sliding_window": 32,
}


def config(values: dict[str, Any]) -> ModelConfig:
    return ModelConfig("config.json", values)


@pytest.mark.parametrize("name", PREDICTED)
def test_the_shape_has_all_parameters(name: str) -> None:
    shape, table = (
        step_shape(config(PUBLISHED[name]), name, 1024),
        read_parameters(config(PUBLISHED[name])),
    )
    assert shape is not None
    assert table is not None
    assert sum(parameter_count(shape).values()) == table.total


def test_the_shape_is_the_models_own() -> None:
    values = PUBLISHED["llama3-8b"] | {"max_position_embeddings": 8192}
    ours = model("llama3-8b")
    read = step_shape(config(values), "llama3-8b", 1024)
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
        (PUBLISHED["gpt2"], {"activation_function": "relu"}),
        (PUBLISHED["gpt2"], {"add_cross_attention": True}),
        (PUBLISHED["gpt2"], {"architectures": ["GPT2ForSequenceClassification"]}),
        (PUBLISHED["qwen2.5-7b"], {}),
        (PUBLISHED["mixtral-8x7b"], {}),
    ],
)
def test_other_blocks_are_not_predicted(values: dict[str, Any], change: dict[str, Any]) -> None:
    assert step_shape(config(values | change), "model", 1024) is None


def test_a_window_longer_than_the_sequence_does_not_matter() -> None:
    for window in (1025, None):
        values = PUBLISHED["mistral-7b"] | {"sliding_window": window}
        assert step_shape(config(values), "model", 1024) is not None


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


class HuggingFaceGpt2(HuggingFace):
    """A GPT-2 with a recipe's dropout, checkpointed as Hugging Face does it."""

    def __init__(self, values: dict[str, Any], recipe: Recipe) -> None:
        places = ("resid_pdrop", "embd_pdrop", "attn_pdrop")
        ends = {"bos_token_id": 0, "eos_token_id": 0}  # in a vocabulary that is smaller than usual
        super().__init__(values | dict.fromkeys(places, recipe.dropout) | ends)
        if recipe.checkpointing == "full":
            self.model.gradient_checkpointing_enable({"use_reentrant": False})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("activation", [None, "gelu_pytorch_tanh"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp_bf16"])
@pytest.mark.parametrize(
    "change",
    [
        {"batch": 4, "micro_batches": 2},
        {"batch": 1},
        {"batch": 1, "dropout": 0.1},
        {"batch": 3, "dropout": 0.1, "checkpointing": "full"},
    ],
    ids=str,
)
def test_the_prediction_is_a_gpt2s_step(
    activation: str | None, precision: str, change: dict[str, Any]
) -> None:
    pytest.importorskip("transformers")
    values = SMALL["gpt2, wide and untied"] | {"vocab_size": 90}
    values |= {"activation_function": activation} if activation else {}
    recipe = Recipe(precision=precision, sequence=16, **change)
    shape = step_shape(config(values), "gpt2", recipe.sequence)
    assert shape is not None
    torch.manual_seed(0)
    assert_same(shape, recipe, HuggingFaceStep(HuggingFaceGpt2(values, recipe), recipe).metered())


def test_a_gelu_of_eight_operators_keeps_three_more_tensors() -> None:
    """Half its input, its tanh and one plus that, 4 d wide each."""
    gpt2 = step_shape(config(PUBLISHED["gpt2"]), "gpt2", 1024)
    assert gpt2 is not None
    kept = []
    for activation in ("gelu_new", "gelu"):
        ledger = build_ledger(replace(gpt2, activation=activation), Recipe(sequence=64))
        kept.append(ledger.by_owner(ledger.last_event("forward"))["activation"])
    assert kept[0] - kept[1] == 12 * 64 * 3 * 4 * 768 * 4  # layers, tokens, tensors, width, fp32


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_prediction_is_a_mistrals_step(precision: str) -> None:
    pytest.importorskip("transformers")
    recipe = Recipe(precision=precision, batch=4, micro_batches=2, sequence=16)
    shape = step_shape(config(TINY), "mistral", recipe.sequence)
    assert shape is not None
    torch.manual_seed(0)
    assert_same(shape, recipe, HuggingFaceStep(HuggingFace(TINY), recipe).metered())
