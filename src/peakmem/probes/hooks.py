"""Counts the hooks that a student's function leaves behind."""

from __future__ import annotations

from torch.nn import Module
from torch.nn.modules import module as torch_modules

__all__ = ["hooks_on"]

_OF_TENSORS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_OF_MODULES = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def hooks_on(*models: Module) -> int:
    """Return the number of hooks on the models' modules and parameters, plus global module hooks.

    Without models, returns only the number of global module hooks.
    """
    modules = [module for model in models for module in model.modules()]
    parameters = [parameter for model in models for parameter in model.parameters()]
    kinds = [
        *(getattr(torch_modules, f"_global{kind}") for kind in _OF_MODULES),
        *(getattr(module, kind) for module in modules for kind in _OF_MODULES),
        *(getattr(parameter, kind, None) for parameter in parameters for kind in _OF_TENSORS),
    ]
    return sum(len(hooks or ()) for hooks in kinds)
