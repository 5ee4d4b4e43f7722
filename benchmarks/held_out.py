"""Small configs of model families that none of the library's tests and rules name.

Each is trained for three steps on the CPU in a plain loop, and traced from its config as `peakmem
estimate --config --trace` does. Each also has the sizes of a transformer, for others' formulas.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from peakmem.measure import meter
from peakmem.measure.traced_config import trace_config
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Recipe

__all__ = ["FAMILIES", "HeldOut", "Measured", "measure"]

_DTYPES = {"fp32": torch.float32, "amp_bf16": torch.float32, "bf16": torch.bfloat16}
_D, _LAYERS, _HEADS, _VOCAB, _CONTEXT = 96, 3, 4, 1500, 128
_ROTARY: dict[str, Any] = {
    "hidden_size": _D,
    "num_hidden_layers": _LAYERS,
    "num_attention_heads": _HEADS,
    "vocab_size": _VOCAB,
    "max_position_embeddings": _CONTEXT,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@dataclass(frozen=True)
class HeldOut:
    """A small model of one family, and how it is trained."""

    #: Its class in transformers.
    class_name: str
    #: The entries of its config.json.
    values: Mapping[str, Any]
    recipe: Recipe
    #: The transformer whose sizes formulas use in its place.
    sizes: ModelShape

    @property
    def name(self) -> str:
        """The family, the precision, and whether it is checkpointed."""
        words = [str(self.values["model_type"]), self.recipe.precision]
        return " ".join(words + ["checkpointed"] * (self.recipe.checkpointing == "full"))

    @property
    def config(self) -> ModelConfig:
        """The config, as if read from a file."""
        values = {**self.values, "architectures": [self.class_name]}
        return ModelConfig(str(self.values["model_type"]), values)

    def module(self) -> nn.Module:
        """Return the model as it trains, with random weights."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        transformers: Any = import_module("transformers")
        sizes = {key: value for key, value in self.values.items() if key != "model_type"}
        config = transformers.AutoConfig.for_model(self.values["model_type"], **sizes)
        config.use_cache = False
        for name, value in config.to_dict().items():
            if ("dropout" in name or name.endswith("pdrop")) and isinstance(value, float):
                setattr(config, name, 0.0)
        family = getattr(transformers, self.class_name)
        module: nn.Module = family._from_config(config, dtype=_DTYPES[self.recipe.precision])
        if self.recipe.checkpointing == "full":
            module.gradient_checkpointing_enable({"use_reentrant": False})  # type: ignore[operator]
        return module.train()

    def step(self, device: torch.device) -> Callable[[], None]:
        """Return a function that takes one step of AdamW, one parameter at a time."""
        torch.manual_seed(0)
        module, recipe = self.module().to(device), self.recipe
        adam = torch.optim.AdamW(module.parameters(), foreach=False)
        batch = self._batch(device)

        def step() -> None:
            adam.zero_grad()
            autocasts = recipe.precision == "amp_bf16"
            with torch.autocast(device.type, torch.bfloat16, enabled=autocasts):
                loss = module(**batch).loss
            loss.backward()
            adam.step()

        return step

    def _batch(self, device: torch.device) -> dict[str, Tensor]:
        edge = self.values.get("image_size")
        if edge:
            images = torch.randn(self.recipe.batch, 3, edge, edge, device=device)
            dtype = _DTYPES[self.recipe.precision]
            classes = torch.randint(0, 2, (self.recipe.batch,), device=device)
            return {"pixel_values": images.to(dtype), "labels": classes}
        size = (self.recipe.batch, self.recipe.sequence)
        return {
            name: torch.randint(3, _VOCAB, size, device=device) for name in ("input_ids", "labels")
        }


@dataclass(frozen=True)
class Measured:
    """One family's step, in bytes."""

    name: str
    #: The bytes that tensors requested, by the meter.
    measured_bytes: int
    #: The bytes predicted from the config, before anything ran.
    traced_bytes: int


def measure(family: HeldOut) -> Measured:
    """Trace the family's config, and meter its third step on the CPU."""
    traced = trace_config(family.config, family.recipe, "torch-cpu").peak_bytes
    real = meter.measure(family.step, torch.device("cpu")).peak_bytes
    return Measured(family.name, real, traced)


def _decoder(
    class_name: str,
    model_type: str,
    precision: str = "fp32",
    *,
    inner: int = 4 * _D,
    gated: bool = True,
    tied: bool = False,
    full: bool = False,
    **more: Any,
) -> HeldOut:
    """Return a decoder whose config has Llama's names for its sizes."""
    values = {"model_type": model_type, **_ROTARY, "tie_word_embeddings": tied, **more}
    if "intermediate_size" not in values:
        values["intermediate_size"] = inner
    sizes = ModelShape(
        model_type,
        n_layers=_LAYERS,
        d_model=_D,
        n_heads=_HEADS,
        vocab=_VOCAB,
        context=_CONTEXT,
        kv_heads=values.get("num_key_value_heads"),
        d_ff=inner,
        gated=gated,
        tied=tied,
    )
    return HeldOut(class_name, values, _recipe(precision, full=full), sizes)


def _recipe(precision: str, *, full: bool = False) -> Recipe:
    checkpointing = "full" if full else "none"
    return Recipe(
        precision,
        "adamw",
        "for-loop",
        batch=4,
        sequence=_CONTEXT,
        checkpointing=checkpointing,  # type: ignore[arg-type]
    )


def _gpt(class_name: str, precision: str, values: dict[str, Any], **sizes: Any) -> HeldOut:
    """Return a model whose config has its own names for sizes."""
    shape = ModelShape(
        values["model_type"],
        n_layers=_LAYERS,
        d_model=_D,
        n_heads=_HEADS,
        vocab=_VOCAB,
        context=_CONTEXT,
        **sizes,
    )
    return HeldOut(class_name, values, _recipe(precision), shape)


FAMILIES: tuple[HeldOut, ...] = (
    _gpt(
        "BloomForCausalLM",
        "fp32",
        {
            "model_type": "bloom",
            "hidden_size": _D,
            "n_layer": _LAYERS,
            "n_head": _HEADS,
            "vocab_size": _VOCAB,
        },
    ),
    _gpt(
        "GPTJForCausalLM",
        "amp_bf16",
        {
            "model_type": "gptj",
            "n_embd": _D,
            "n_layer": _LAYERS,
            "n_head": _HEADS,
            "n_positions": _CONTEXT,
            "rotary_dim": 12,
            "vocab_size": _VOCAB,
        },
        tied=False,
    ),
    _decoder("FalconForCausalLM", "falcon", "bf16", gated=False, tied=True),
    _decoder("StableLmForCausalLM", "stablelm", "amp_bf16", num_key_value_heads=4),
    _decoder("Olmo2ForCausalLM", "olmo2", num_key_value_heads=2, full=True),
    _decoder("CohereForCausalLM", "cohere", "bf16", num_key_value_heads=2, tied=True),
    _decoder("Starcoder2ForCausalLM", "starcoder2", gated=False, num_key_value_heads=2, tied=True),
    _decoder("Phi3ForCausalLM", "phi3", "amp_bf16", num_key_value_heads=4),
    _decoder("SmolLM3ForCausalLM", "smollm3", "bf16", num_key_value_heads=2, full=True),
    _decoder("GraniteForCausalLM", "granite", num_key_value_heads=2),
    _decoder(
        "OlmoeForCausalLM",
        "olmoe",
        "bf16",
        num_key_value_heads=4,
        num_experts=4,
        num_experts_per_tok=2,
        intermediate_size=_D,
        inner=4 * _D,
    ),
    _decoder("ElectraForMaskedLM", "electra", gated=False, tied=True, embedding_size=_D),
    _decoder("AlbertForMaskedLM", "albert", "amp_bf16", gated=False, tied=True, embedding_size=48),
    _decoder(
        "DeiTForImageClassification", "deit", gated=False, tied=True, image_size=96, patch_size=8
    ),
    _gpt(
        "BartForConditionalGeneration",
        "amp_bf16",
        {
            "model_type": "bart",
            "d_model": _D,
            "encoder_layers": _LAYERS,
            "decoder_layers": _LAYERS,
            "encoder_attention_heads": _HEADS,
            "decoder_attention_heads": _HEADS,
            "encoder_ffn_dim": 4 * _D,
            "decoder_ffn_dim": 4 * _D,
            "max_position_embeddings": _CONTEXT,
            "vocab_size": _VOCAB,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 2,
            "forced_eos_token_id": None,
        },
    ),
)
