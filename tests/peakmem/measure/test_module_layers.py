"""Layers of traced models: whose parameters, activations and state each row is."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import peakmem
from peakmem.measure.module_layers import layer_of, module_of
from peakmem.specs.ledger import Ledger


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(32, 64, bias=False)
        self.down = nn.Linear(64, 32, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.down(torch.relu(self.up(x)))
        return found


class Model(nn.Module):
    def __init__(self, recomputes: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(32, 100, bias=False)
        self.recomputes = recomputes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recomputes else block(x)
        found: torch.Tensor = self.head(x)
        return found


def traced(recomputes: bool) -> Ledger:
    with peakmem.trace("torch-cpu") as found:
        model = Model(recomputes)
        adam = torch.optim.Adam(model.parameters(), foreach=False)
        model(torch.ones(8, 32)).sum().backward()
        adam.step()
    return found.ledger


def by_layer(ledger: Ledger, owner: str) -> dict[str, int]:
    found = ledger.by_layer(len(ledger.events) - 1)
    return {layer: n for layer, of in found.items() if (n := of.get(owner, 0)) and layer}  # type: ignore[call-overload]


def test_parameters_gradients_and_state_are_their_layers() -> None:
    ledger = traced(recomputes=False)
    expected = {f"blocks.{n}": 4 * 2 * 32 * 64 for n in range(3)} | {"head": 4 * 32 * 100}
    assert by_layer(ledger, "parameter") == expected
    assert by_layer(ledger, "gradient") == expected
    counters = {f"blocks.{n}": 8 for n in range(3)} | {"head": 4}
    state = by_layer(ledger, "optimizer_state")
    assert state == {layer: 2 * n + counters[layer] for layer, n in expected.items()}


def test_activations_are_the_layers_that_keep_them() -> None:
    """The product within a block, once: relu's backward needs its result, as down does."""
    ledger = traced(recomputes=False)
    end = ledger.last_event("forward")
    start = next(i for i, event in enumerate(ledger.events) if event.phase == "backward")
    kept = {
        layer: of.get("activation", 0)
        for layer, of in ledger.by_layer(min(end, start - 1)).items()
        if layer.startswith("blocks")
    }
    assert kept == {f"blocks.{n}": 4 * 8 * (64 + 32) for n in range(3)}


def test_what_is_recomputed_belongs_to_its_layer_too() -> None:
    layers = {t.layer for t in traced(recomputes=True).tensors if t.owner == "activation"}
    assert {f"blocks.{n}" for n in range(3)} <= layers
    assert not {layer for layer in layers if layer in ("up", "down")}


def test_without_a_trace_nothing_watches() -> None:
    before = dict(nn.modules.module._global_forward_pre_hooks)
    traced(recomputes=False)
    assert dict(nn.modules.module._global_forward_pre_hooks) == before


def test_names_of_layers() -> None:
    assert layer_of("transformer.h.11.attn.c_proj") == "transformer.h.11"
    assert layer_of("0") == "0"
    assert layer_of("lm_head") == "lm_head"


def test_names_of_modules() -> None:
    assert module_of("transformer.h.11.attn.c_proj") == "attn"
    assert module_of("transformer.h.11") == ""
    assert module_of("encoder.block.0.layer.0.SelfAttention.q") == "layer.0.SelfAttention"
    assert module_of("bert.embeddings.word_embeddings") == "embeddings"


def test_modules_have_what_they_made_and_their_parameters() -> None:
    ledger = traced(recomputes=False)
    found = ledger.by_module(len(ledger.events) - 1)
    for n in range(3):
        for module in ("up", "down"):
            assert found[f"blocks.{n}"][module]["parameter"] == 4 * 32 * 64
            assert found[f"blocks.{n}"][module]["optimizer_state"] == 4 * 2 * 32 * 64 + 4
    by_layer = ledger.by_layer(len(ledger.events) - 1)
    summed = {
        layer: sum(sum(of.values()) for of in modules.values()) for layer, modules in found.items()
    }
    assert summed == {layer: sum(of.values()) for layer, of in by_layer.items()}
