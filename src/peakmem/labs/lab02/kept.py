"""The tensors that one real layer saves for the backward pass."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from peakmem.labs.figures import show_figure
from peakmem.measure.reference_models import GPT

__all__ = ["show_kept", "show_variants"]

_SEQ, _BATCH, _D_MODEL, _HEADS = 256, 2, 384, 6
_SBH = _SEQ * _BATCH * _D_MODEL

Kept = tuple[str, tuple[int, ...], int]


def show_kept() -> None:
    """Print what a GPT of one layer keeps in float32, in numbers per token."""
    shape = SimpleNamespace(n_layers=1, d_model=128, n_heads=4, vocab=1000, context=64)
    tokens = torch.zeros(8, 64, dtype=torch.long)
    model = GPT(shape)
    print("kept by                 shape               numbers per token, d = 128, vocab = 1000")
    for name, size, n_bytes in _kept_tensors(model, tokens, lambda logits: _loss(logits, tokens)):
        per_token = n_bytes / 4 / tokens.numel()
        d = per_token / shape.d_model
        numbers = f"{d:.0f} d" if d.is_integer() else f"{per_token:.0f}"
        print(f"{name:23} {size!s:20} {numbers}")


def show_variants() -> None:
    """Show what a layer keeps on paper and in reality, in another format and with another GELU."""
    import matplotlib.pyplot as plt

    from peakmem.show.plots import stacked_bars

    fused, half = nn.GELU(approximate="tanh"), torch.bfloat16
    bars: dict[str, dict[str, float]] = {
        "paper, 2 bytes": {"norms": 4, "attention": 10, "mlp": 10, "GELU": 8, "dropout masks": 2},
        "bfloat16": _in_sbh(_layer(fused, half), half),
        "bfloat16, GELU written out": _in_sbh(_layer(_WrittenOutGELU(), half), half),
        "float32": _in_sbh(_layer(fused)),
        "float32, GELU written out": _in_sbh(_layer(_WrittenOutGELU())),
    }
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    stacked_bars(ax, bars, label="kept by one layer (bytes / sbh)")
    sums = ", ".join(f"{name} {sum(bar.values()):.1f}" for name, bar in bars.items())
    show_figure(figure, f"Stacked bars of what one layer keeps, in sbh: {sums}. GELU grows most.")


def _loss(logits: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _kept_tensors(module: nn.Module, x: Tensor, then: Any = None) -> list[Kept]:
    """The module's name, shape and bytes of each tensor that `then(module(x))` keeps."""
    parameters = {p.untyped_storage().data_ptr() for p in module.parameters()}
    names, found = ["the loss"], []
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters | storages.keys():
            storages[storage.data_ptr()] = storage  # held, so that its address is not used again
            found.append((names[-1], tuple(tensor.shape), storage.nbytes()))
        return tensor.detach()  # an output that its own node keeps would never be freed

    hooks = []
    for name, part in module.named_modules():
        shown = name or "the head"
        hooks.append(part.register_forward_pre_hook(lambda *_, name=shown: names.append(name)))
        hooks.append(part.register_forward_hook(lambda *_: names.pop() and None))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = module(x)
        kept_alive = then(out) if then else out
    for hook in hooks:
        hook.remove()
    del kept_alive
    return found


class _WrittenOutGELU(nn.Module):
    """GELU's tanh formula, one operator at a time, as in several published models."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))


def _layer(gelu: nn.Module, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A layer of the labs' GPT with another GELU, in another format."""
    shape = SimpleNamespace(n_layers=1, d_model=_D_MODEL, n_heads=_HEADS, vocab=2, context=_SEQ)
    layer: Any = GPT(shape).blocks[0]
    parts = [("up", layer.mlp.up), ("gelu", gelu), ("down", layer.mlp.down)]
    layer.mlp = nn.Sequential(OrderedDict(parts))
    return layer.to(dtype)  # type: ignore[no-any-return]


def _in_sbh(layer: nn.Module, dtype: torch.dtype = torch.float32) -> dict[str, float]:
    x = torch.randn(_BATCH, _SEQ, _D_MODEL, dtype=dtype, requires_grad=True)
    sizes = dict.fromkeys(("norms", "attention", "mlp", "GELU"), 0.0)
    for name, _, n_bytes in _kept_tensors(layer, x):
        sizes[_part(name)] += n_bytes / _SBH
    return sizes


def _part(name: str) -> str:
    """The piece of the bar that a kept tensor belongs to."""
    if name.startswith("mlp.gelu"):
        return "GELU"
    return "norms" if name.startswith("norm") else name.partition(".")[0]
