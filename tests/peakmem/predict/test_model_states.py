"""Bytes of weights, gradients and optimizer state against those of a model that took a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from peakmem.predict.model_states import model_states
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.families import read_parameters, step_shape
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.recipes import Parallelism, Recipe
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
    [
        (optimizer, "torch-cuda")
        for optimizer in ("adamw", "adafactor", "adam8bit", "momentum", "lion")
    ]
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


LORA = Recipe("mixed", lora_rank=8, lora_targets=("all-linear",))


@pytest.mark.parametrize(
    ("recipe", "parallelism"),
    [
        (Recipe("mixed"), Parallelism(data=3, zero=1)),
        (Recipe("mixed"), Parallelism(data=3, zero=2)),
        (Recipe("mixed"), Parallelism(data=3, zero=3)),
        (Recipe("bf16", offload=True), Parallelism()),
        (Recipe("mixed", "muon"), Parallelism()),
        (replace(LORA, lora_targets=("attention",)), Parallelism()),
        (LORA, Parallelism(data=3, zero=3)),
        (replace(LORA, quantized_base="nf4"), Parallelism()),
        (replace(LORA, quantized_base="int8"), Parallelism()),
        (replace(LORA, quantized_base="fp8_e4m3"), Parallelism()),
    ],
    ids=str,
)
def test_other_recipes_states_are_those_of_the_ledger(
    recipe: Recipe, parallelism: Parallelism
) -> None:
    config = ModelConfig("config.json", PUBLISHED["llama3.2-1b"])
    table, shape = read_parameters(config), step_shape(config, "llama", 1024)
    assert table is not None
    assert shape is not None
    ledger = build_ledger(shape, recipe, parallelism, profile="paper")
    end = ledger.by_owner(len(ledger.events) - 1)
    states = model_states(table, recipe, parallelism)
    assert states == {owner: end[owner] for owner in states}
    assert set(states) == {"parameter"} or set(end) >= {"gradient", "optimizer_state"}


def test_lomo_has_one_gradient_at_a_time() -> None:
    table = read_parameters(ModelConfig("config.json", PUBLISHED["bert-base"]))
    assert table is not None
    states = model_states(table, Recipe("bf16", "lomo"))
    assert states == {"parameter": 2 * table.total, "gradient": 2 * 30522 * 768}


def test_experts_get_no_adapters_and_are_quantized() -> None:
    """Mixtral in 4 bits: 46.7 billion parameters, 45.1 of them the experts'."""
    table = read_parameters(ModelConfig("config.json", PUBLISHED["mixtral-8x7b"]))
    assert table is not None
    states = model_states(table, replace(LORA, quantized_base="nf4"))
    square, narrow = 8 * (4096 + 4096), 8 * (4096 + 1024)  # queries and out; keys and values
    assert states["gradient"] == 2 * 32 * (2 * square + 2 * narrow)
    matrices = 32 * (3 * 8 * 4096 * 14336 + 2 * 4096 * 4096 + 2 * 4096 * 1024)
    assert states["parameter"] == pytest.approx(
        matrices * 4.127 / 8 + 2 * 2 * 32000 * 4096, rel=0.002
    )


@pytest.mark.parametrize(
    ("recipe", "parallelism", "says"),
    [
        (replace(LORA, lora_targets=("q_proj",)), Parallelism(), "use attention, mlp, all-linear"),
        (Recipe(), Parallelism(tensor=2), "leave out --tensor-parallel"),
    ],
)
def test_what_a_table_cannot_say_is_refused(
    recipe: Recipe, parallelism: Parallelism, says: str
) -> None:
    table = read_parameters(ModelConfig("config.json", PUBLISHED["bert-base"]))
    assert table is not None
    with pytest.raises(ValueError, match=says):
        model_states(table, recipe, parallelism)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize(("data", "expert"), [(8, 2), (8, 8), (4, 4)])
def test_experts_are_dealt_out_and_cut_as_one_by_one(zero: Any, data: int, expert: int) -> None:
    """Against a count of every expert of every layer, on the device that has the first ones."""
    values = PUBLISHED["mixtral-8x7b"]
    table = read_parameters(ModelConfig("config.json", values))
    assert table is not None
    recipe = Recipe("bf16", "adamw")
    found = model_states(table, recipe, Parallelism(data=data, zero=zero, expert=expert))
    dense, experts = table.total - table.by_group()["experts"], 0
    for _layer in range(values["num_hidden_layers"]):
        for number in range(values["num_local_experts"]):
            has_it = number < values["num_local_experts"] // expert
            experts += 3 * values["hidden_size"] * values["intermediate_size"] * has_it
    for owner, stage, width in (("parameter", 3, 2), ("gradient", 2, 2), ("optimizer_state", 1, 4)):
        parts = (data, data // expert) if zero >= stage else (1, 1)
        expected = width * (dense / parts[0] + experts / parts[1])
        assert found[owner] == pytest.approx(expected, rel=1e-6)  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "expert", "says"),
    [("llama3-8b", 2, "has no experts for 2"), ("mixtral-8x7b", 3, "can't share 8 experts")],
)
def test_experts_that_cannot_be_dealt_out(name: str, expert: int, says: str) -> None:
    table = read_parameters(ModelConfig("config.json", PUBLISHED[name]))
    assert table is not None
    with pytest.raises(ValueError, match=says):
        model_states(table, Recipe(), Parallelism(data=expert, expert=expert))
