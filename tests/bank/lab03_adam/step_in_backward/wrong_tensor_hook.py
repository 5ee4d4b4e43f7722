"""A hook that runs before the gradient is accumulated, so it frees nothing."""
import torch


def step_in_backward(params, lr=1e-3):
    hooks = []
    for p in params:
        def hook(grad, p=p):
            with torch.no_grad():
                p.add_(grad, alpha=-lr)
            p.grad = None
        hooks.append(p.register_hook(hook))

    class Handle:
        def remove(self):
            for h in hooks:
                h.remove()

    return Handle()
