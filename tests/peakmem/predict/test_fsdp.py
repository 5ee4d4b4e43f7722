"""FSDP's files, read by accelerate's and transformers' own parsers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from peakmem.predict.fsdp import accelerate_config, fsdp_config
from peakmem.specs.models import model
from peakmem.specs.recipes import Parallelism, Recipe

LLAMA = model("llama3-8b")
RECIPES = [
    (Recipe("amp_bf16", checkpointing="full"), Parallelism(data=8, zero=3)),
    (Recipe("bf16", offload=True), Parallelism(data=4, zero=3)),
    (Recipe("amp_fp16"), Parallelism(data=2, zero=2)),
]


@pytest.mark.parametrize(("recipe", "many"), RECIPES, ids=str)
def test_accelerate_reads_what_was_meant(recipe: Recipe, many: Any, tmp_path: Path) -> None:
    loader = pytest.importorskip("accelerate.commands.config.config_args")
    plugins = pytest.importorskip("accelerate.utils.dataclasses")
    path = tmp_path / "accelerate.yaml"
    path.write_text(json.dumps(accelerate_config(LLAMA, recipe, many)))
    read = loader.load_config_from_file(str(path))
    assert read.distributed_type == "FSDP"
    assert (read.num_processes, read.num_machines) == (many.data, 1)
    expected = {"amp_bf16": "bf16", "amp_fp16": "fp16"}.get(recipe.precision, "no")
    assert read.mixed_precision == expected
    launch = pytest.importorskip("accelerate.commands.launch")
    parser = launch.launch_command_parser()
    for name in read.fsdp_config:  # each is an option of accelerate launch
        assert any(f"--{name}" in action.option_strings for action in parser._actions), name
    settings = read.fsdp_config
    plugin = plugins.FullyShardedDataParallelPlugin(
        fsdp_version=settings["fsdp_version"],
        reshard_after_forward=settings["fsdp_reshard_after_forward"],
        auto_wrap_policy=settings["fsdp_auto_wrap_policy"],
        cpu_offload=settings["fsdp_offload_params"],
        activation_checkpointing=settings["fsdp_activation_checkpointing"],
        state_dict_type=settings["fsdp_state_dict_type"],
    )
    assert plugin.reshard_after_forward is (many.zero == 3)
    offloads = type(plugin.cpu_offload).__name__ == "CPUOffloadPolicy"
    assert offloads is recipe.offload
    assert plugin.activation_checkpointing is (recipe.checkpointing == "full")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("recipe", "many"), RECIPES, ids=str)
def test_the_trainer_reads_what_was_meant(recipe: Recipe, many: Any, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    path = tmp_path / "fsdp.json"
    path.write_text(json.dumps(fsdp_config(LLAMA, recipe, many)))
    read = transformers.TrainingArguments(
        output_dir=str(tmp_path), fsdp=True, fsdp_config=str(path), use_cpu=True
    ).fsdp_plugin_args
    assert read["fsdp_version"] == 2
    assert read["reshard_after_forward"] is (many.zero == 3)
    assert read.get("cpu_offload", False) is recipe.offload
    assert read["transformer_cls_names_to_wrap"] == "LlamaDecoderLayer"
    assert read["activation_checkpointing"] is (recipe.checkpointing == "full")


def test_the_layer_that_is_wrapped_is_transformers_own() -> None:
    modeling = pytest.importorskip("transformers.models.llama.modeling_llama")
    (name,) = fsdp_config(LLAMA, Recipe("bf16"), Parallelism(data=2, zero=3))[
        "transformer_layer_cls_to_wrap"
    ]
    assert hasattr(modeling, name)


def test_replicas_without_zero_are_plain() -> None:
    config = accelerate_config(LLAMA, Recipe("amp_bf16"), Parallelism(data=4))
    assert config["distributed_type"] == "MULTI_GPU"
    assert accelerate_config(LLAMA, Recipe())["distributed_type"] == "NO"
    assert "fsdp_config" not in config


@pytest.mark.parametrize(
    ("recipe", "many", "says"),
    [
        (Recipe("mixed"), Parallelism(data=2, zero=3), "but FSDP has none"),
        (Recipe(), Parallelism(data=2, zero=1), "no ZeRO stage 1"),
        (Recipe(), Parallelism(), "use stage 2 or 3"),
        (Recipe(), Parallelism(data=2, zero=3, tensor=2), "describes replicas only"),
        (Recipe(checkpointing="selective"), Parallelism(data=2, zero=3), "every layer or none"),
        (Recipe(offload=True), Parallelism(data=2), "offloads only what it shards"),
    ],
)
def test_what_the_file_cannot_say_is_refused(recipe: Recipe, many: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fsdp_config(LLAMA, recipe, many)
