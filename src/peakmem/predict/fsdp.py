"""Recipes as settings of torch's FSDP: accelerate's configuration, and the Trainer's `fsdp_config`.

ZeRO's stage 3 is FSDP that reshards after forward; stage 2 is FSDP that doesn't. FSDP has one copy
of the weights, in fp32 if it casts to 16 bits, so recipes with master weights can't be exported.
Sources: huggingface.co/docs/accelerate/usage_guides/fsdp, and TrainingArguments in transformers.
"""

from __future__ import annotations

from typing import Any

from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["accelerate_config", "fsdp_config"]

_MIXED = {"fp32": "no", "bf16": "no", "amp_fp16": "fp16", "amp_bf16": "bf16"}


def accelerate_config(
    model: ModelShape, recipe: Recipe, parallelism: Parallelism | None = None
) -> dict[str, Any]:
    """Return a configuration for `accelerate launch --config_file` on one machine.

    It leaves accumulation, batch and optimizer to the script. Raises ValueError if it has no
    setting for a part of the recipe.

    >>> from peakmem.specs.models import model
    >>> step = Recipe(precision="amp_bf16")
    >>> accelerate_config(model("llama3-8b"), step, Parallelism(data=8, zero=3))["distributed_type"]
    'FSDP'
    """
    many = parallelism or Parallelism()
    _refuse(recipe, many)
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU" if many.data > 1 else "NO",
        "mixed_precision": _MIXED[recipe.precision],
        "num_machines": 1,
        "num_processes": many.data,
    }
    if many.zero:
        settings = fsdp_config(model, recipe, many)
        listed = {f"fsdp_{name}": value for name, value in settings.items()}
        listed["fsdp_offload_params"] = listed.pop("fsdp_cpu_offload")  # accelerate's name for it
        (layer,) = settings["transformer_layer_cls_to_wrap"]
        config["distributed_type"] = "FSDP"
        config["fsdp_config"] = listed | {"fsdp_transformer_layer_cls_to_wrap": layer}
    return config


def fsdp_config(
    model: ModelShape, recipe: Recipe, parallelism: Parallelism | None = None
) -> dict[str, Any]:
    """Return an `fsdp_config` for `TrainingArguments(fsdp=True, fsdp_config=...)`.

    Raises ValueError if it has no setting for a part of the recipe.
    """
    many = parallelism or Parallelism()
    _refuse(recipe, many)
    if many.zero < 2:
        raise ValueError(
            f"ZeRO stage {many.zero} doesn't shard gradients, but FSDP shards weights, gradients "
            "and optimizer state alike; use stage 2 or 3"
        )
    return {
        "version": 2,
        "reshard_after_forward": many.zero == 3,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "transformer_layer_cls_to_wrap": [_layer_class(model)],
        "cpu_offload": recipe.offload,
        "activation_checkpointing": recipe.checkpointing == "full",
        "state_dict_type": "SHARDED_STATE_DICT",
    }


def _layer_class(model: ModelShape) -> str:
    if model.gated:
        return "LlamaDecoderLayer"
    return "GPT2Block" if model.hugging_face else "Block"  # of peakmem.nn.GPT


def _refuse(recipe: Recipe, many: Parallelism) -> None:
    if recipe.precision not in _MIXED:
        raise ValueError(
            f"precision={recipe.precision!r} has master weights beside 16-bit weights, but FSDP "
            f"has none; use {', '.join(_MIXED)}"
        )
    if many.tensor > 1 or many.pipeline > 1 or many.context > 1:
        raise ValueError(
            "this file describes replicas only; leave out --tensor-parallel, --pipeline and "
            "--context-parallel, or use DeepSpeed or Megatron for them"
        )
    if many.zero == 1:
        raise ValueError("FSDP has no ZeRO stage 1; use stage 2 or 3, or --export deepspeed")
    if recipe.checkpointing in ("selective", "every_k"):
        raise ValueError(
            f"checkpointing={recipe.checkpointing!r} isn't in FSDP's file, which checkpoints every "
            "layer or none; use none or full, or checkpoint in the script"
        )
    if recipe.offload and not many.zero:
        raise ValueError("FSDP offloads only what it shards; use --zero 2 or 3 with --offload")
