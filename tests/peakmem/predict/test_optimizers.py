"""Lion, Muon and LOMO on a small GPT that takes a step on the CPU, against the prediction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor

from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT, training_step
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Recipe, state_shapes

SHAPE = ModelShape("small", n_layers=2, d_model=64, n_heads=4, vocab=40, context=16)


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2, with one temporary for each parameter."""

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        super().__init__(parameters, {"lr": 1e-4, "betas": (0.9, 0.99)})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                self._update(parameter, group["lr"], *group["betas"])

    def _update(self, parameter: Tensor, rate: float, beta1: float, beta2: float) -> None:
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        update = state["momentum"].lerp(parameter.grad, 1 - beta1)
        parameter.add_(update.sign_(), alpha=-rate)
        state["momentum"].lerp_(parameter.grad, 1 - beta2)


class MuonAndAdamW:
    """Torch's own Muon for the matrices of layers, and its AdamW for everything else."""

    def __init__(self, module: torch.nn.Module) -> None:
        hidden = [p for n, p in module.named_parameters() if "blocks" in n and p.ndim == 2]
        others = [p for n, p in module.named_parameters() if "blocks" not in n or p.ndim != 2]
        self.both = [torch.optim.Muon(hidden), torch.optim.AdamW(others, foreach=False)]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for optimizer in self.both:
            optimizer.zero_grad(set_to_none)

    def step(self) -> None:
        for optimizer in self.both:
            optimizer.step()

    @property
    def state(self) -> dict[Tensor, Any]:
        return {**self.both[0].state, **self.both[1].state}


class Lomo:
    """Lv et al. 2023: a hook uses each gradient when it is complete, and frees it."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.state: dict[Tensor, Any] = {}
        for parameter in module.parameters():
            parameter.register_post_accumulate_grad_hook(self._update)

    def _update(self, parameter: Tensor) -> None:
        with torch.no_grad():
            parameter.add_(parameter.grad, alpha=-1e-4)  # type: ignore[arg-type]
        parameter.grad = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Nothing is left to clear."""

    def step(self) -> None:
        """Everything happened during backward."""


def metered(optimizer: str, precision: str, batch: int) -> MemoryMeter:
    """Meter the third step, in which the state is there from the start."""
    module = GPT(SHAPE)
    if precision == "bf16":
        module = module.to(torch.bfloat16)
    made: Any = {"lion": lambda m: Lion(m.parameters()), "muon": MuonAndAdamW, "lomo": Lomo}
    real = made[optimizer](module)
    batches = [(torch.randint(0, 40, (batch, 16)), torch.randint(0, 40, (batch, 16)))]
    for _ in range(2):
        training_step(module, real, batches)
    real.zero_grad()
    states = [x for of_one in real.state.values() for x in of_one.values()]
    meter = MemoryMeter("cpu").track(module, states, batches)
    with meter:
        training_step(module, real, batches)
    return meter


@pytest.mark.parametrize("batch", [1, 8])  # with the peak in the optimizer's step, and before
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["lion", "muon", "lomo"])
def test_the_step_is_the_metered_one(optimizer: str, precision: str, batch: int) -> None:
    meter = metered(optimizer, precision, batch)
    recipe = Recipe(precision, optimizer, batch=batch, sequence=16)
    ledger = build_ledger(SHAPE, recipe, profile="torch-cpu")
    assert ledger.live_bytes[0] == meter.baseline_bytes
    assert ledger.peak_bytes == meter.peak_bytes


def test_another_optimizers_step_would_be_seen() -> None:
    meter = metered("muon", "fp32", 1)
    ledger = build_ledger(SHAPE, Recipe("fp32", "lion", sequence=16), profile="torch-cpu")
    assert ledger.live_bytes[0] != meter.baseline_bytes
    assert ledger.peak_bytes != meter.peak_bytes


def test_muon_has_one_moment_where_adamw_has_two() -> None:
    assert list(state_shapes("muon", (8, 4), "fp32")) == ["momentum"]
    for shape, in_layer in [((8,), True), ((8, 4), False)]:
        found = state_shapes("muon", shape, "fp32", in_layer=in_layer)
        assert found == state_shapes("adamw", shape, "fp32")


def test_lomo_cannot_accumulate() -> None:
    with pytest.raises(ValueError, match="it uses each gradient at once"):
        Recipe(optimizer="lomo", batch=4, micro_batches=2)
