"""Its default learning rate is Adam's habit times ten. [earns 2]"""
from types import SimpleNamespace
import torch


def step_in_backward(params, lr=1e-2):
    hooks = []
    for p in params:

        @torch.no_grad()
        def hook(param):
            grad, param.grad = param.grad, None
            param.sub_(grad, alpha=lr)

        hooks.append(p.register_post_accumulate_grad_hook(hook))
    return SimpleNamespace(remove=lambda: [h.remove() for h in hooks])
