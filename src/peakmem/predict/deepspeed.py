"""Recipes as DeepSpeed configurations, the JSON files that `deepspeed.initialize` takes.

The file leaves out settings of the model: attention, dropout, and which layers call DeepSpeed's
checkpoint function. Source: DeepSpeed Configuration JSON, deepspeed.ai/docs/config-json.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["deepspeed_config"]

_PRECISIONS: dict[str, dict[str, Any]] = {
    "fp32": {},
    "amp_fp16": {"torch_autocast": {"enabled": True, "dtype": "float16"}},
    "amp_bf16": {"torch_autocast": {"enabled": True, "dtype": "bfloat16"}},
    # Both have fp32 master weights and moments. A loss scale of 0 is dynamic, starting at 2^16.
    "mixed": {"fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 16}},
    "mixed_fp32_grads": {
        "bf16": {"enabled": True},
        "data_types": {"grad_accum_dtype": "fp32"},
    },
}
_OPTIMIZERS = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "momentum": "SGD"}


def deepspeed_config(
    model: ModelShape,
    recipe: Recipe,
    parallelism: Parallelism | None = None,
) -> dict[str, Any]:
    """Return the configuration for a recipe as plain data for `json.dumps`.

    Raises ValueError if the file has no setting for the precision, the optimizer or offloading.

    >>> from peakmem.specs.models import model
    >>> step = Recipe(precision="mixed", batch=8, micro_batches=4)
    >>> config = deepspeed_config(model("gpt2"), step, Parallelism(data=2, zero=2))
    >>> config["train_batch_size"], config["zero_optimization"]["stage"]
    (16, 2)
    """
    parallelism = parallelism or Parallelism()
    _refuse(recipe, parallelism)
    options: dict[str, Any] = {"lr": 1e-4}  # required; the reader sets it
    if recipe.optimizer == "momentum":
        options["momentum"] = 0.9
    if recipe.optimizer in ("adam", "adamw") and not recipe.offload:
        options["torch_adam"] = recipe.implementation in ("for-loop", "foreach")
    config: dict[str, Any] = {
        "train_batch_size": recipe.batch * parallelism.data,
        "train_micro_batch_size_per_gpu": recipe.micro_batch,
        "gradient_accumulation_steps": recipe.micro_batches,
        "optimizer": {"type": _OPTIMIZERS[recipe.optimizer], "params": options},
        "zero_optimization": {"stage": parallelism.zero},
    }
    config |= _PRECISIONS[recipe.precision]
    if recipe.offload:
        config["zero_optimization"]["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if recipe.segment:
        config["activation_checkpointing"] = {
            "number_checkpoints": ceil(model.n_layers / recipe.segment),
            "partition_activations": parallelism.tensor > 1,
        }
    return config


def _refuse(recipe: Recipe, parallelism: Parallelism) -> None:
    if recipe.precision not in _PRECISIONS:
        raise ValueError(
            f"precision={recipe.precision!r} has no fp32 master weights, which DeepSpeed keeps "
            f"beside 16-bit weights; use {', '.join(_PRECISIONS)}"
        )
    if parallelism.context > 1 or parallelism.pipeline > 1:
        raise ValueError(
            "DeepSpeed's file says nothing of sequences or layers that devices share; the script "
            "sets them up, so leave out --context-parallel and --pipeline"
        )
    if recipe.optimizer not in _OPTIMIZERS:
        raise ValueError(
            f"DeepSpeed's file has no optimizer {recipe.optimizer!r}; use one of "
            f"{', '.join(_OPTIMIZERS)}, or pass your own to deepspeed.initialize"
        )
    if recipe.offload and parallelism.zero == 0:
        raise ValueError(
            "DeepSpeed offloads the optimizer only under ZeRO, but got stage 0; use 1, 2 or 3"
        )
