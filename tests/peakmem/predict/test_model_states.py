"""Bytes of weights, gradients and optimizer state against those of a model that took a step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from peakmem.predict.model_states import model_states
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.families import read_parameters, step_shape
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.recipes import Recipe
from tests.peakmem.specs.configs import PUBLISHED, SMALL

OPTIMIZERS: dict[str, Any] = {
    "sgd": torch.optim.SGD,
    "adamw": torch.optim.AdamW,
    "adafactor": torch.optim.Adafactor,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["bert, untied", "qwen3_moe, some layers dense", "vit, oblong"])
def test_states_are_those_of_torch(name: str, precision: str, optimizer: str) -> None:
    transformers = pytest.importorskip("transformers")
    values = SMALL[name]
    table = read_parameters(ModelConfig("config.json", values))
    assert table is not None
    sizes = {key: value for key, value in values.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(values["model_type"], **sizes)
    module = getattr(transformers, table.class_name)(config)
    if precision == "bf16":
        module = module.to(torch.bfloat16)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch_optimizer = OPTIMIZERS[optimizer](module.parameters())
    torch_optimizer.step()
    weights = sum(p.nbytes for p in module.parameters())
    expected = {"parameter": weights, "gradient": weights}
    states = [state for of_one in torch_optimizer.state.values() for state in of_one.items()]
    kept = sum(value.nbytes for key, value in states if torch.is_tensor(value) and key != "step")
    if kept:
        expected["optimizer_state"] = kept
    assert model_states(table, Recipe(precision, optimizer)) == expected


@pytest.mark.parametrize(
    ("optimizer", "profile"),
    [(optimizer, "torch-cuda") for optimizer in ("adamw", "adafactor", "adam8bit", "momentum")]
    + [("adamw", "paper")],
)
def test_a_llamas_states_are_those_of_its_ledger(optimizer: str, profile: str) -> None:
    config = ModelConfig("config.json", PUBLISHED["llama3.2-1b"])
    table, shape = read_parameters(config), step_shape(config, "llama", 1024)
    assert table is not None
    assert shape is not None
    recipe = Recipe("mixed", optimizer)
    ledger = build_ledger(shape, recipe, profile=profile)
    end = ledger.by_owner(len(ledger.events) - 1)
    states = model_states(table, recipe)
    assert states == {owner: end[owner] for owner in states}


@pytest.mark.parametrize("recipe", [Recipe(lora_rank=8), Recipe(offload=True)])
def test_other_recipes_are_refused(recipe: Recipe) -> None:
    table = read_parameters(ModelConfig("config.json", PUBLISHED["bert-base"]))
    assert table is not None
    with pytest.raises(ValueError, match="leave out lora_rank and offload"):
        model_states(table, recipe)
