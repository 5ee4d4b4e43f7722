"""Configurations to compare predictions on: real models and real steps, without downloads.

A `Case` builds a model with random weights, its optimizer and its batches, and takes training steps
with them. If `build_ledger` has rules for the model, the case also has its shape and recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.measure.reference_models import GPT
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Implementation, Recipe

__all__ = ["Case", "Step", "configurations", "quick"]

_AUTOCAST = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}
_CHECKPOINTING: tuple[dict[str, Any], ...] = (
    {},
    {"checkpointing": "selective"},
    {"checkpointing": "full"},
    {"checkpointing": "every_k", "checkpoint_every": 2},
)
_ATTENTION: tuple[Literal["standard", "flash"], ...] = ("standard", "flash")
_STEPS: tuple[tuple[str, Implementation], ...] = (
    ("sgd", "for-loop"),
    ("momentum", "foreach"),
    ("adamw", "for-loop"),
    ("adamw", "foreach"),
    ("adamw", "fused"),
    ("adafactor", "for-loop"),
    ("adafactor", "foreach"),
)


class Step:
    """A model with everything that its training needs; calling it takes one step."""

    def __init__(
        self,
        module: nn.Module,
        loss: Callable[[Any, Tensor], Tensor],
        batches: Sequence[tuple[Tensor, Tensor]],
        recipe: Recipe,
    ) -> None:
        self.module, self.loss, self.batches = module, loss, list(batches)
        self.device = batches[0][0].device.type
        self.autocast = _AUTOCAST.get(recipe.precision)
        self.optimizer = _optimizer(module, recipe)

    def __call__(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        for inputs, targets in self.batches:
            with torch.autocast(self.device, self.autocast, enabled=self.autocast is not None):
                loss = self.loss(self.module(inputs), targets)
            (loss / len(self.batches)).backward()  # type: ignore[no-untyped-call]
            loss.item()
        self.optimizer.step()


def _optimizer(module: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    how, parameters = recipe.implementation, list(module.parameters())
    foreach = None if how is None else how == "foreach"
    if recipe.optimizer in ("sgd", "momentum"):
        momentum = 0.9 if recipe.optimizer == "momentum" else 0.0
        return torch.optim.SGD(parameters, 1e-3, momentum=momentum, foreach=foreach)
    if recipe.optimizer == "adafactor":
        return torch.optim.Adafactor(parameters, foreach=foreach)
    fused = None if how is None else how == "fused"
    return torch.optim.AdamW(parameters, foreach=foreach, fused=fused)


@dataclass(frozen=True)
class Case:
    """One configuration; `shape` is None if build_ledger has no rules for the model."""

    name: str
    recipe: Recipe
    build: Callable[[torch.device], Step]
    shape: ModelShape | None = None


def configurations(*, large: bool = False) -> list[Case]:
    """Return all configurations: small ones for a CPU, or ones that fill GiBs."""
    return [*_gpt_cases(large), *_transformers_cases(large)]


def quick() -> list[Case]:
    """Return about six configurations, of all kinds."""
    return configurations()[::12]


# peakmem.nn.GPT.


def _gpt_cases(large: bool) -> list[Case]:
    shape = ModelShape("GPT", 4, 64, 4, vocab=500, context=64)
    recipe = Recipe(batch=4, sequence=64)
    wide = replace(shape, n_layers=3, d_model=128, vocab=6000, context=128)
    if large:
        shape = ModelShape("GPT", 8, 1024, 16, vocab=32000, context=1024)
        recipe = Recipe(batch=4, sequence=1024)
        wide = replace(shape, n_layers=2, vocab=128000)
    recipes = [
        replace(recipe, precision=precision, attention=attention, dropout=dropout, **segments)
        for precision, attention, dropout, segments in product(
            ("fp32", "amp_bf16"), ("flash", "standard"), (0.0, 0.1), _CHECKPOINTING
        )
    ]
    recipes += [replace(recipe, precision="bf16", **segments) for segments in _CHECKPOINTING]
    short = replace(recipe, sequence=recipe.sequence // 16)  # the peak is in the optimizer's step
    recipes += [
        replace(short, optimizer=optimizer, implementation=how, micro_batches=parts)
        for (optimizer, how), parts in product(_STEPS, (1, 2))
    ]
    cases = [_gpt(shape, recipe) for recipe in recipes]
    return cases + [
        _gpt(wide, replace(recipe, precision=precision, sequence=wide.context, batch=2))
        for precision in ("fp32", "amp_bf16", "bf16")
    ]


def _gpt(shape: ModelShape, recipe: Recipe) -> Case:
    def make() -> nn.Module:
        return GPT(
            shape,
            attention=recipe.attention,
            dropout=recipe.dropout,
            checkpointing=recipe.checkpointing,
            checkpoint_every=recipe.checkpoint_every,
        )

    def build(device: torch.device) -> Step:
        module = _placed(make, recipe, device)
        return Step(module, _of_tokens, _tokens(shape, recipe, device), recipe)

    return Case(f"GPT {shape.n_layers}x{shape.d_model} {_in_words(recipe)}", recipe, build, shape)


def _in_words(recipe: Recipe) -> str:
    words = [recipe.precision, recipe.attention]
    words += [f"dropout {recipe.dropout}"] if recipe.dropout else []
    words += [f"checkpoint {recipe.checkpointing}"] if recipe.checkpointing != "none" else []
    words += [recipe.optimizer, recipe.implementation] if recipe.implementation else []
    words += [f"{recipe.micro_batches} parts"] if recipe.micro_batches > 1 else []
    return " ".join(words)


def _placed(make: Callable[[], nn.Module], recipe: Recipe, device: torch.device) -> nn.Module:
    """Make a model on its device and in its dtype, because `trace` can't move or cast it later."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if recipe.precision == "bf16" else torch.float32)
    try:
        with device:
            return make().train()
    finally:
        torch.set_default_dtype(before)


def _tokens(shape: ModelShape, recipe: Recipe, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    size = (recipe.micro_batch, recipe.sequence)

    def draw() -> Tensor:
        return torch.randint(0, shape.vocab, size, device=device)

    return [(draw(), draw()) for _ in range(recipe.micro_batches)]


def _of_tokens(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _of_llama(logits: Tensor, targets: Tensor) -> Tensor:
    """The loss of LlamaForCausalLM, in fp32."""
    return _of_tokens(logits.float(), targets)


# Models of the transformers library, made from their configurations.


class _Logits(nn.Module):
    """A transformers model as a function from its single input to logits."""

    def __init__(self, model: nn.Module, **options: Any) -> None:
        super().__init__()
        self.model, self.options = model, options

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.model(inputs, **self.options).logits
        return logits


def _transformers_cases(large: bool) -> list[Case]:
    shape = ModelShape("HF", 3, 64, 4, vocab=500, context=64)
    recipe = Recipe(batch=4, sequence=64)
    if large:
        shape = ModelShape("HF", 6, 1024, 16, vocab=32000, context=1024)
        recipe = Recipe(batch=4, sequence=1024)
    cases = [
        _other(kind, shape, replace(recipe, precision=precision, attention=attention))
        for kind, attention, precision in product(
            ("GPT-2", "BERT", "ViT"), _ATTENTION, ("fp32", "amp_bf16")
        )
    ]
    llama = replace(shape, d_ff=172, gated=True, biases=False, learned_positions=False, tied=False)
    for kv_heads, precision in product((4, 2, 1), ("fp32", "amp_bf16", "bf16")):
        grouped = replace(llama, kv_heads=kv_heads, d_ff=2752 if large else 172)
        cases.append(_llama(grouped, replace(recipe, precision=precision)))
    tied = replace(llama, tied=True)
    return [*cases, _llama(tied, recipe), _llama(tied, replace(recipe, micro_batches=2))]


def _llama(shape: ModelShape, recipe: Recipe) -> Case:
    def make() -> nn.Module:
        transformers: Any = import_module("transformers")
        config = transformers.LlamaConfig(
            vocab_size=shape.vocab,
            hidden_size=shape.d_model,
            intermediate_size=shape.mlp_width,
            num_hidden_layers=shape.n_layers,
            num_attention_heads=shape.n_heads,
            num_key_value_heads=shape.key_value_heads,
            max_position_embeddings=shape.context,
            tie_word_embeddings=shape.tied,
            attn_implementation="sdpa",
            pad_token_id=None,
        )
        return _Logits(transformers.LlamaForCausalLM(config), use_cache=False)

    def build(device: torch.device) -> Step:
        module = _placed(make, recipe, device)
        return Step(module, _of_llama, _tokens(shape, recipe, device), recipe)

    heads = f"{shape.n_heads}:{shape.key_value_heads} heads{' tied' if shape.tied else ''}"
    return Case(f"Llama {heads} {_in_words(recipe)}", recipe, build, shape)


def _other(kind: str, shape: ModelShape, recipe: Recipe) -> Case:
    attention = {"standard": "eager", "flash": "sdpa"}[recipe.attention]

    def build(device: torch.device) -> Step:
        module = _placed(lambda: _hugging_face(kind, shape, attention), recipe, device)
        if kind != "ViT":
            return Step(module, _of_tokens, _tokens(shape, recipe, device), recipe)
        images = torch.randn(recipe.batch, 3, 64, 64, device=device)
        classes = torch.randint(0, 10, (recipe.batch,), device=device)
        return Step(module, F.cross_entropy, [(images, classes)], recipe)

    return Case(f"{kind} {recipe.precision} {attention}", recipe, build)


def _hugging_face(kind: str, shape: ModelShape, attention: str) -> nn.Module:
    transformers: Any = import_module("transformers")
    sizes: dict[str, Any] = {
        "hidden_size": shape.d_model,
        "num_hidden_layers": shape.n_layers,
        "num_attention_heads": shape.n_heads,
        "intermediate_size": shape.mlp_width,
        "attn_implementation": attention,
    }
    if kind == "BERT":
        config = transformers.BertConfig(
            vocab_size=shape.vocab, max_position_embeddings=shape.context, **sizes
        )
        return _Logits(transformers.BertForMaskedLM(config))
    if kind == "ViT":
        config = transformers.ViTConfig(image_size=64, patch_size=8, num_labels=10, **sizes)
        return _Logits(transformers.ViTForImageClassification(config))
    config = transformers.GPT2Config(
        vocab_size=shape.vocab,
        n_positions=shape.context,
        n_embd=shape.d_model,
        n_layer=shape.n_layers,
        n_head=shape.n_heads,
        attn_implementation=attention,
        bos_token_id=0,
        eos_token_id=0,
    )
    return _Logits(transformers.GPT2LMHeadModel(config), use_cache=False)
