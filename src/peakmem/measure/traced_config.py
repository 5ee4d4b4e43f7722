"""Traces the training step of any model that transformers can build, given its config.

The model's class runs unchanged, with its own attention, loss and checkpointing. A batch is full
sequences of tokens, or images of the config's size. An encoder gets as many tokens as its decoder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from peakmem.measure.adapted_layers import adapt, quantize
from peakmem.measure.meta_model import built_class
from peakmem.measure.trace import trace
from peakmem.specs.families import FAMILIES
from peakmem.specs.ledger import Ledger
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.recipes import Recipe

__all__ = ["trace_config"]

_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adafactor": torch.optim.Adafactor,
}


def trace_config(config: ModelConfig, recipe: Recipe, device_profile: str = "torch-cuda") -> Ledger:
    """Return the ledger of a step on one device, without allocating the model.

    Raises ValueError, with the remedy, if the class computes no loss or a traced step can't follow
    the recipe.
    """
    _require_possible(config, recipe)
    if config.class_name is None and config.model_type in FAMILIES:
        names = [FAMILIES[config.model_type][0]]
        config = ModelConfig(config.source, {**config.values, "architectures": names})
    family, settings = built_class(config)
    if getattr(settings, "is_encoder_decoder", False):
        settings.decoder_start_token_id = 0  # T5's; the choice of token changes no size
    try:
        return trace(partial(_build, family, settings, config, recipe), device_profile)
    except (AttributeError, RuntimeError, TypeError) as error:
        reason = next(filter(None, str(error).splitlines()), type(error).__name__)
        raise ValueError(
            f"{config.source}: a step of {family.__name__} can't be traced ({reason}); leave out "
            "--trace, or trace a step of your own with peakmem trace"
        ) from error


def _build(
    family: Any, settings: Any, config: ModelConfig, recipe: Recipe, device: torch.device
) -> Callable[[], None]:
    formats = recipe.formats
    model = _model(family, settings, config, recipe)
    trained = [p for p in model.parameters() if p.requires_grad]
    masters = trained
    if formats.master:
        masters = [p.detach().to(_DTYPES[str(formats.master)]) for p in trained]
    optimizer = _OPTIMIZERS[recipe.optimizer](masters, **_implementation(recipe))
    batches = [_batch(config, recipe, device) for _ in range(recipe.micro_batches)]

    def step() -> None:
        model.zero_grad()
        for batch in batches:
            with torch.autocast("cpu", _DTYPES[formats.compute], enabled=formats.autocast):
                loss = model(**batch).loss
            (loss / len(batches)).backward()
        if formats.master:
            _pass_gradients(trained, masters)
        optimizer.step()
        if formats.master:
            _take_weights(trained, masters)

    return step


def _model(family: Any, settings: Any, config: ModelConfig, recipe: Recipe) -> Any:
    """The model as the recipe trains it: its dropout, adapters and checkpointing."""
    settings.use_cache = False
    model = family._from_config(settings, dtype=_DTYPES[recipe.formats.weights])
    model.train()
    if "image_size" not in config.values:
        _require_positions(model, config.source, recipe.sequence)
    _set_dropout(model, recipe.dropout)
    if recipe.lora_rank:
        model.requires_grad_(requires_grad=False)
        if recipe.quantized_base:
            quantize(model, recipe.quantized_base)
        adapt(model, recipe)
    if recipe.checkpointing == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def _implementation(recipe: Recipe) -> dict[str, bool]:
    """The option of torch's optimizers that chooses the recipe's implementation."""
    if recipe.implementation is None:
        return {}
    if recipe.implementation == "fused":
        return {"fused": True}
    return {"foreach": recipe.implementation == "foreach"}


def _pass_gradients(trained: list[nn.Parameter], masters: list[Tensor]) -> None:
    for parameter, master in zip(trained, masters, strict=True):
        if parameter.grad is not None:
            master.grad = parameter.grad.to(master.dtype)


@torch.no_grad()
def _take_weights(trained: list[nn.Parameter], masters: list[Tensor]) -> None:
    for parameter, master in zip(trained, masters, strict=True):
        parameter.copy_(master)
        master.grad = None


def _set_dropout(model: nn.Module, probability: float) -> None:
    """Set dropout to the recipe's probability; some attentions have a number of their own."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        for name in ("attention_dropout", "dropout_prob", "dropout", "attn_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, probability)


def _batch(config: ModelConfig, recipe: Recipe, device: torch.device) -> dict[str, Tensor]:
    if "image_size" in config.values:
        dtype = _DTYPES[recipe.formats.weights]
        given: Any = config.values["image_size"]
        height, width = given if isinstance(given, list) else (given, given)
        channels = config.size("num_channels", default=3)
        images = torch.zeros(
            recipe.micro_batch, channels, height, width, dtype=dtype, device=device
        )
        labels = torch.zeros(recipe.micro_batch, dtype=torch.int64, device=device)
        return {"pixel_values": images, "labels": labels}
    size = (recipe.micro_batch, recipe.sequence)
    return {
        name: torch.zeros(size, dtype=torch.int64, device=device)
        for name in ("input_ids", "labels")
    }


def _require_positions(model: nn.Module, source: str, sequence: int) -> None:
    """Raise ValueError if a table of positions is shorter than the sequence.

    A trace can't detect that, because the positions that an embedding looks up are values.
    """
    for path, module in model.named_modules():
        name = path.rpartition(".")[2]
        if not isinstance(module, nn.Embedding) or not ("position" in name or name == "wpe"):
            continue
        first = 0 if module.padding_idx is None else module.padding_idx + 1
        limit = module.num_embeddings - int(getattr(module, "offset", first))
        if sequence > limit:
            raise ValueError(
                f"{source}: a {type(model).__name__} has {limit} positions, but the sequence is "
                f"{sequence} tokens; give --seq {limit} or less"
            )


def _require_possible(config: ModelConfig, recipe: Recipe) -> None:
    wrong = {
        "optimizer": recipe.optimizer not in _OPTIMIZERS and ", ".join(_OPTIMIZERS),
        "checkpointing": recipe.checkpointing not in ("none", "full") and "none or full",
        "attention": recipe.attention != "flash" and "flash",
        "loss_chunks": recipe.loss_chunks > 1 and "1",
        "offload": recipe.offload and "no offloading",
    }
    for name, instead in wrong.items():
        if instead:
            raise ValueError(
                f"{config.source}: a trace can't follow {name}={getattr(recipe, name)!r}; use "
                f"{instead}"
            )
