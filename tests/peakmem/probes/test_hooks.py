"""Hooks that a function leaves behind are counted, whatever their kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_modules

from peakmem.probes.hooks import hooks_on

KINDS: dict[str, Callable[[nn.Module], Any]] = {
    "before a module's forward": lambda m: m.register_forward_pre_hook(print),
    "after a module's forward": lambda m: m.register_forward_hook(print),
    "before a module's backward": lambda m: m.register_full_backward_pre_hook(print),
    "after a module's backward": lambda m: m.register_full_backward_hook(print),
    "on a parameter": lambda m: next(m.parameters()).register_hook(print),
    "on a parameter's gradient": lambda m: next(m.parameters()).register_post_accumulate_grad_hook(
        print
    ),
    "on all modules": lambda _: torch_modules.register_module_forward_hook(print),
    "on all modules' backward": lambda _: torch_modules.register_module_full_backward_hook(print),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_hook_counts_once_until_it_is_removed(kind: str) -> None:
    model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(2, 2)))
    of_all = hooks_on()
    hook = KINDS[kind](model[1][0])  # deep in the model
    try:
        assert hooks_on(model) == of_all + 1
        assert hooks_on() == of_all + ("all modules" in kind)
    finally:
        hook.remove()
    assert hooks_on(model) == of_all == 0


def test_hooks_of_several_models_add_up() -> None:
    models = [nn.Linear(1, 1), nn.Linear(1, 1)]
    for model in models:
        model.register_forward_hook(print)
    assert hooks_on(*models) == 2
    models[0](torch.ones(1))  # running adds none
    assert hooks_on(*models) == 2
