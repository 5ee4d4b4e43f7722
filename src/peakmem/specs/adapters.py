"""LoRA's target layers, by the names of Hugging Face and PEFT or by those of this library.

`attention`, `mlp` and `all-linear` name every matrix of that kind. As under PEFT's `all-linear`,
embeddings, heads, routers and stacked experts get no adapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from peakmem.specs.parameter_table import Group

__all__ = ["adapted_groups", "adapted_layers", "read_targets"]

_ALL = "all-linear"

#: Names in transformers -> this library's layers of a block.
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "q_proj": ("attention.q",),
        "k_proj": ("attention.k",),
        "v_proj": ("attention.v",),
        "o_proj": ("attention.out",),
        "gate_proj": ("mlp.gate",),
        "up_proj": ("mlp.up",),
        "down_proj": ("mlp.down",),
        # GPT-2 uses one name for two layers.
        "c_attn": ("attention.qkv",),
        "c_fc": ("mlp.up",),
        "c_proj": ("attention.out", "mlp.down"),
    }
)
_GROUPS: Mapping[str, tuple[Group, ...]] = MappingProxyType(
    {"attention": ("attention",), "mlp": ("mlp",), _ALL: ("attention", "mlp")}
)


def read_targets(text: str) -> tuple[str, ...]:
    """Return the names in a list such as "q_proj,v_proj". Raises ValueError if it has none.

    >>> read_targets("q_proj, v_proj")
    ('q_proj', 'v_proj')
    """
    found = tuple(filter(None, (name.strip() for name in text.split(","))))
    if not found:
        raise ValueError(f"expected names of layers such as 'q_proj,v_proj', but got {text!r}")
    return found


def adapted_layers(targets: Iterable[str], known: Iterable[str]) -> set[str]:
    """Return the layers among `known` (such as "mlp.up") that the targets name.

    "attention.qkv" also names separate matrices of queries, keys and values. Raises ValueError if a
    target names none of the layers.

    >>> sorted(adapted_layers(["all-linear"], ["attention.q", "mlp.up"]))
    ['attention.q', 'mlp.up']
    """
    layers, targets = set(known), tuple(targets)
    found: set[str] = set()
    for target in targets:
        named = {layer for layer in layers if _is_named(layer, target)}
        if not named:
            names = sorted({*_GROUPS, *layers, *(n for n in _NAMES if layers & {*_NAMES[n]})})
            raise ValueError(
                f"lora_targets={targets!r}: the model has no layers {target!r}; choose from "
                f"{', '.join(names)}"
            )
        found |= named
    if not found:
        raise ValueError("lora_targets is empty; expected names of layers such as 'all-linear'")
    return found


def _is_named(layer: str, target: str) -> bool:
    if target in _GROUPS:
        return layer.split(".")[0] in _GROUPS[target]
    parts = {f"attention.{part}" for part in "qkv"} if target == "attention.qkv" else set()
    return layer in {target, *_NAMES.get(target, ()), *parts}


def adapted_groups(targets: Iterable[str]) -> set[Group]:
    """Return the groups of a parameter table that the targets name.

    Raises ValueError if a target names a single layer: a table knows only groups.

    >>> adapted_groups(["attention"])
    {'attention'}
    """
    found: set[Group] = set()
    for target in targets:
        if target not in _GROUPS:
            raise ValueError(
                f"lora_targets: this model's layers are known by kind only, not as {target!r}; "
                f"use {', '.join(_GROUPS)}"
            )
        found.update(_GROUPS[target])
    return found
