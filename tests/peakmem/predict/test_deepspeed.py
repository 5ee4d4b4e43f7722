"""DeepSpeed's configuration, read by DeepSpeed's own parser."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from peakmem.predict.deepspeed import deepspeed_config
from peakmem.specs.models import model
from peakmem.specs.recipes import Parallelism, Recipe

GPT2 = model("gpt2")


@pytest.fixture(scope="module")
def parser() -> Callable[..., Any]:
    return pytest.importorskip("deepspeed.runtime.config").DeepSpeedConfig


class Replicas:
    """Tells DeepSpeed how many replicas there would be."""

    def __init__(self, data: int) -> None:
        self.get_data_parallel_world_size = lambda: data


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(batch=8, micro_batches=4),
        Recipe(precision="amp_bf16", optimizer="adam", implementation="foreach"),
        Recipe(precision="amp_fp16", optimizer="sgd"),
        Recipe(precision="mixed", checkpointing="full", batch=6, micro_batches=2),
        Recipe(precision="mixed_fp32_grads", checkpointing="every_k", checkpoint_every=5),
        Recipe(precision="mixed", offload=True),
        Recipe(optimizer="momentum"),
    ],
    ids=lambda recipe: f"{recipe.precision}-{recipe.optimizer}-{recipe.checkpointing}",
)
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_deepspeeds_parser_reads_what_was_meant(
    parser, recipe: Recipe, stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if recipe.offload and stage == 0:
        pytest.skip("refused, and tested below")
    config = deepspeed_config(GPT2, recipe, Parallelism(data=2, zero=stage))
    monkeypatch.setattr("deepspeed.runtime.config.dist.get_rank", lambda: 0)
    read = parser(json.loads(json.dumps(config)), mpu=Replicas(2))
    assert read.train_batch_size == 2 * recipe.batch
    assert read.train_micro_batch_size_per_gpu == recipe.micro_batch
    assert read.gradient_accumulation_steps == recipe.micro_batches
    assert read.zero_optimization_stage == stage
    assert (read.zero_config.offload_optimizer is not None) == recipe.offload
    meant = {"momentum": "sgd"}.get(recipe.optimizer, recipe.optimizer)
    assert read.optimizer_name.lower() == meant
    assert read.float16_config.enabled == (recipe.precision == "mixed")
    assert read.bfloat16_config.enabled == (recipe.precision == "mixed_fp32_grads")
    assert read.torch_autocast_enabled == recipe.precision.startswith("amp")
    segments = read.activation_checkpointing_config.number_checkpoints
    assert segments == {"full": 12, "every_k": 3}.get(recipe.checkpointing)


def test_the_parser_would_find_a_wrong_product(parser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepspeed.runtime.config.dist.get_rank", lambda: 0)
    config = deepspeed_config(GPT2, Recipe(batch=8, micro_batches=4), Parallelism(data=2))
    with pytest.raises(AssertionError, match="train_batch_size is not equal"):
        parser(config | {"train_batch_size": 17}, mpu=Replicas(2))


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        (Recipe(precision="bf16"), "no fp32 master weights"),
        (Recipe(optimizer="adafactor"), "no optimizer 'adafactor'"),
        (Recipe(offload=True), "only under ZeRO"),
    ],
)
def test_what_the_file_cannot_say_is_refused(recipe: Recipe, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        deepspeed_config(GPT2, recipe)
