"""Linear layers with adapters beside them (LoRA), and with weights in few bits (QLoRA).

A model's layers are exchanged in place. A trace has no values, so quantized weights aren't
computed: only their sizes matter, and the 16- or 32-bit matrix that each use makes and frees.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from peakmem.specs.recipes import Recipe, quantized_scales, storage_bytes

__all__ = ["adapt", "quantize"]


def adapt(model: Any, recipe: Recipe) -> None:
    """Put an adapter beside each linear layer of the base model that the targets name.

    Raises ValueError if they name none.
    """
    linear = _linear_layers(model.base_model)
    chosen = [name for name in linear if _is_target(model.base_model, name, recipe.lora_targets)]
    if not chosen:
        names = ", ".join(sorted({name.rpartition(".")[2] for name in linear}))
        raise ValueError(
            f"lora_targets={recipe.lora_targets!r} name no linear layer of a "
            f"{type(model).__name__}; choose from all-linear, attention, mlp, {names}"
        )
    for name in chosen:
        _exchange(model.base_model, name, _Adapted(linear[name], recipe.lora_rank, model.dtype))


def quantize(model: Any, scheme: str) -> None:
    """Give the base model's linear layers weights in a format of `recipes.Quantized`.

    Embeddings, heads, and experts that are stacked in one tensor stay as they are, as under
    bitsandbytes. Raises ValueError if there is no linear layer.
    """
    linear = _linear_layers(model.base_model)
    if not linear:
        raise ValueError(
            f"quantized_base={scheme!r}: a {type(model).__name__} has no linear layers; "
            "leave it out"
        )
    for name, layer in linear.items():
        _exchange(model.base_model, name, _Quantized(layer, scheme))


class _Adapted(nn.Module):
    """A frozen linear layer and the adapter beside it (Hu et al. 2022)."""

    def __init__(self, base: Any, rank: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.base = base
        self.lora_a = nn.Linear(base.in_features, rank, bias=False, dtype=dtype)
        self.lora_b = nn.Linear(rank, base.out_features, bias=False, dtype=dtype)

    def forward(self, x: Tensor) -> Any:
        return self.base(x) + self.lora_b(self.lora_a(x)) * 2.0


class _Quantized(nn.Module):
    """A frozen linear layer whose weights are codes with scales."""

    def __init__(self, base: nn.Linear, scheme: str) -> None:
        super().__init__()
        self.in_features, self.out_features = base.in_features, base.out_features
        shape = tuple(base.weight.shape)
        sizes = [storage_bytes(prod(shape), scheme)]
        sizes += [storage_bytes(prod(s), d) for s, d in quantized_scales(shape, scheme).values()]
        for number, size in enumerate(sizes):
            self.register_buffer(f"stored{number}", torch.zeros(size, dtype=torch.uint8))
        self.bias = base.bias

    def forward(self, x: Tensor) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        weight = torch.empty(self.out_features, self.in_features, dtype=dtype)
        with saved_tensors_hooks(_forget, _make_anew):  # the matrix is all that is saved
            return F.linear(x, weight, self.bias)


def _forget(weight: Tensor) -> tuple[torch.Size, torch.dtype]:
    return weight.shape, weight.dtype


def _make_anew(kind: tuple[torch.Size, torch.dtype]) -> Tensor:
    shape, dtype = kind
    return torch.empty(shape, dtype=dtype)


def _linear_layers(model: nn.Module) -> dict[str, Any]:
    kinds = (nn.Linear, _Quantized)
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, kinds)}


def _exchange(model: nn.Module, name: str, layer: nn.Module) -> None:
    place, _, last = name.rpartition(".")
    setattr(model.get_submodule(place), last, layer)


def _is_target(model: nn.Module, name: str, targets: tuple[str, ...]) -> bool:
    parts = name.split(".")
    around = [type(model.get_submodule(".".join(parts[:n]))).__name__ for n in range(len(parts))]
    in_attention = any("Attention" in kind for kind in around)
    kinds = {"all-linear", "attention" if in_attention else "mlp"}
    return parts[-1] in targets or bool(kinds & set(targets))
