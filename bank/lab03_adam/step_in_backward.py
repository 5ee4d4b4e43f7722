# %% right: class
"""A handle of its own class."""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p.add_(p.grad, alpha=-lr)
            p.grad = None

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% right: closure
"""Functions on an object without a class of its own."""
from types import SimpleNamespace
import torch


def step_in_backward(params, lr=1e-3):
    hooks = []
    for p in params:

        @torch.no_grad()
        def hook(param):
            grad, param.grad = param.grad, None
            param.sub_(grad, alpha=lr)

        hooks.append(p.register_post_accumulate_grad_hook(hook))
    return SimpleNamespace(remove=lambda: [h.remove() for h in hooks])


# %% right: data
"""Works on .data, and scales the gradient in place."""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p.data.sub_(p.grad.mul_(lr))
            p.grad = None

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% right: temporary
"""Makes lr * grad on the way."""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p -= lr * p.grad
            p.grad = None

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% wrong: default_lr
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


# %% wrong: torch_optim_by_data
"""Lets torch's SGD step, which it finds by a name that no constant holds."""

from functools import reduce

import torch


class Handle:
    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for handle in self.handles:
            handle.remove()


def step_in_backward(params, lr=1e-2):
    make = reduce(getattr, "optim SGD".split(), torch)

    def step(p):
        make([p], lr=lr).step()
        p.grad = None

    return Handle([p.register_post_accumulate_grad_hook(step) for p in params])



# %% wrong: gradients_stay
"""Frees no gradient."""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p.add_(p.grad, alpha=-lr)
            pass

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% wrong: keeps_clones
"""Keeps a copy of each gradient. [earns 1]"""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p.add_(p.grad, alpha=-lr)
            p.__dict__['last'] = p.grad.clone()
            p.grad = None

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% wrong: no_step
"""Registers nothing."""


class Handle:
    def remove(self):
        pass


def step_in_backward(params, lr=1e-3):
    return Handle()


# %% wrong: remove_does_nothing
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


# %% wrong: removes_the_first
"""Removes one hook only. [earns 2]"""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        self.hooks[0].remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p.add_(p.grad, alpha=-lr)
            p.grad = None

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% wrong: tensor_hook
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


# %% wrong: uphill
"""Adds the gradient. [earns 2]"""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p.add_(p.grad, alpha=lr)
            p.grad = None

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% wrong: zeroed
"""Zeroes the gradient instead of freeing it."""
import torch


class Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p.add_(p.grad, alpha=-lr)
            p.grad.zero_()

    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% wrong: first_backward_only
"""Each hook takes itself away after its first step. [earns 2]"""
import torch


def step_in_backward(params, lr=1e-3):
    hooks = {}

    def hook(param):
        with torch.no_grad():
            param -= lr * param.grad
        param.grad = None
        hooks[param].remove()

    for param in params:
        hooks[param] = param.register_post_accumulate_grad_hook(hook)

    class Handle:
        def remove(self):
            for one in hooks.values():
                one.remove()

    return Handle()


# %% wrong: one_late
"""Frees a gradient only after the next but one has come. [earns 1]"""
import torch


def step_in_backward(params, lr=1e-3):
    waiting = []

    def step_all():
        with torch.no_grad():
            for param in waiting:
                param.add_(param.grad, alpha=-lr)
                param.grad = None
        waiting.clear()

    def hook(param):
        if len(waiting) > 1:
            step_all()
        waiting.append(param)
        if param is params[0]:
            step_all()

    hooks = [param.register_post_accumulate_grad_hook(hook) for param in params]

    class Handle:
        def remove(self):
            for hook in hooks:
                hook.remove()

    return Handle()


# %% right: exit_stack
"""ExitStack with a remove that closes it; partial."""
from contextlib import ExitStack
from functools import partial

import torch


@torch.no_grad()
def _sgd(lr, p):
    p -= lr * p.grad
    p.grad = None


class Hooks(ExitStack):
    def remove(self):
        self.close()


def step_in_backward(params, lr=1e-3):
    hooks = Hooks()
    for p in params:
        hooks.callback(p.register_post_accumulate_grad_hook(partial(_sgd, lr)).remove)
    return hooks


# %% right: switch
"""remove() flips a switch that the hooks look at."""
import torch


class Stepper:
    def __init__(self, params, lr):
        self.on, self.lr = True, lr
        for p in params:
            p.register_post_accumulate_grad_hook(self)

    @torch.no_grad()
    def __call__(self, p):
        if self.on:
            p.copy_(p.sub(p.grad, alpha=self.lr))
            p.grad = None

    def remove(self):
        self.on = False


def step_in_backward(params: list, lr: float = 1e-3):
    return Stepper(params, lr)


# %% wrong: shared
"""The handles lie in one global list, so remove() takes away those of other models. [earns 2]"""
import torch

HANDLES = []


class Handle:
    def remove(self):
        while HANDLES:
            HANDLES.pop().remove()


def step_in_backward(params, lr=1e-3):
    def hook(p):
        with torch.no_grad():
            p -= lr * p.grad
        p.grad = None

    for p in params:
        HANDLES.append(p.register_post_accumulate_grad_hook(hook))
    return Handle()


# %% wrong: lr_in_a_global
"""The hooks read the rate from a global that the next call overwrites. [earns 2]"""
import torch

RATE = 1e-3


def hook(p):
    with torch.no_grad():
        p -= RATE * p.grad
    p.grad = None


class Handle:
    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for h in self.handles:
            h.remove()


def step_in_backward(params, lr=1e-3):
    global RATE
    RATE = lr
    return Handle([p.register_post_accumulate_grad_hook(hook) for p in params])


# %% right: on_the_node
"""Hooks on the nodes that accumulate gradients."""


def step_in_backward(params, lr=1e-3):
    nodes, handles = [], []
    for param in params:
        node = param.view_as(param).grad_fn.next_functions[0][0]

        def step(*_, param=param):
            param.data.add_(param.grad, alpha=-lr)
            param.grad = None

        nodes.append(node)
        handles.append(node.register_hook(step))

    class Handle:
        keeps = nodes

        def remove(self):
            for handle in handles:
                handle.remove()

    return Handle()


# %% wrong: others_hooks
"""remove() clears all hooks of the parameters, other people's too. [earns 2]"""

import torch


def step_in_backward(params, lr=1e-3):
    @torch.no_grad()
    def update(param):
        param -= lr * param.grad
        param.grad = None

    for param in params:
        param.register_post_accumulate_grad_hook(update)

    class Handle:
        def remove(self):
            for param in params:
                param._post_accumulate_grad_hooks.clear()

    return Handle()

# %% right: node_hooks
"""Hooks on the AccumulateGrad nodes."""

import torch

def step_in_backward(params, lr=1e-3):
    kept = []
    for p in params:
        with torch.enable_grad():
            node = p.view_as(p).grad_fn.next_functions[0][0]
        def hook(*_, p=p):
            with torch.no_grad():
                p.add_(p.grad, alpha=-lr)
            p.grad = None
        kept.append((node, node.register_hook(hook)))
    class Handle:
        def remove(self):
            for _, h in kept:
                h.remove()
    return Handle()
