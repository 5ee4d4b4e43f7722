# %% right: fused_update
"""add_ with alpha, in one pass over the bits."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = float(lr), dtype

    @torch.no_grad()
    def load(self, tensors):
        self.master = []
        self.params = []
        for t in tensors:
            m = torch.empty_like(t, dtype=torch.float32).copy_(t)
            self.master.append(m)
            self.params.append(m.to(dtype=self.dtype).requires_grad_())

    @torch.no_grad()
    def step(self):
        for i in range(len(self.master)):
            if self.params[i].grad is not None:
                self.master[i].add_(self.params[i].grad.float(), alpha=-self.lr)
                self.params[i].data.copy_(self.master[i].data)


# %% right: new_params
"""New params at each step."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr = lr
        self.dtype = dtype

    def load(self, tensors):
        self.master = [torch.tensor(t.tolist()).reshape(t.shape) for t in tensors]
        self._round()

    def _round(self):
        self.params = [m.to(self.dtype).clone().requires_grad_(True) for m in self.master]

    def step(self):
        moved = []
        for master, param in zip(self.master, self.params):
            grad = param.grad
            moved.append(master if grad is None else master - self.lr * grad.to(torch.float32))
        self.master = moved
        self._round()


# %% right: plain
"""A loop, in place."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()
                param.copy_(master)


# %% right: torch_sgd
"""torch.optim.SGD on the masters."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype

    def load(self, tensors):
        self.master = [t.detach().clone().float() for t in tensors]
        self.params = [torch.nn.Parameter(m.to(self.dtype)) for m in self.master]
        self.optimizer = torch.optim.SGD(self.master, lr=self.lr, foreach=False)

    def step(self):
        for master, param in zip(self.master, self.params):
            master.grad = None if param.grad is None else param.grad.float()
        self.optimizer.step()
        for master, param in zip(self.master, self.params):
            param.data = master.to(self.dtype)


# %% wrong: aliases_the_input
"""Masters share the input. [earns 3]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()
                param.copy_(master)


# %% wrong: copy_not_refreshed
"""The copy is never rounded afresh."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()


# %% wrong: copy_one_step_late
"""Rounds before it updates. [earns 2]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                param.copy_(master)
                master -= self.lr * param.grad.float()


# %% wrong: copy_updated_beside
"""Updates master and copy on their own."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()
                param -= (self.lr * param.grad.float()).to(param.dtype)


# %% wrong: default_dtype
"""The default dtype is bfloat16. [earns 3]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.bfloat16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()
                param.copy_(master)


# %% wrong: master_rounded_at_first
"""Masters begin rounded."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().to(self.dtype).float() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()
                param.copy_(master)


# %% wrong: masters_from_the_copy
"""Overwrites the masters with the rounded copy."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()
                param.copy_(master)
                master.copy_(param)


# %% wrong: masters_in_low
"""Masters kept in 16 bits."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().to(self.dtype).clone() for t in tensors]
        self.params = [m.clone().requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()
                param.copy_(master)


# %% wrong: no_guard
"""None is not looked for. [earns 3]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                master -= self.lr * param.grad.float()
                param.copy_(master)


# %% wrong: product_in_low
"""lr times gradient in 16 bits. [earns 2]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= (self.lr * param.grad).float()
                param.copy_(master)


# %% wrong: steps_uphill
"""Adds the gradient."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master += self.lr * param.grad.float()
                param.copy_(master)


# %% wrong: stops_at_none
"""Returns at the first None. [earns 3]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    return
                master -= self.lr * param.grad.float()
                param.copy_(master)


# %% wrong: updates_the_copy
"""Updates the 16-bit copy and reads the masters back. [earns 0]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                param -= self.lr * param.grad.float()
                master.copy_(param)


# %% wrong: masters_stand_still
"""`master = master - ...` binds a name only."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [tensor.detach().clone() for tensor in tensors]
        self.params = [master.to(self.dtype).requires_grad_() for master in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is not None:
                    master = master - self.lr * param.grad.float()
                    param.copy_(master)


# %% wrong: always_half
"""Refreshes in float16, whatever dtype says. [earns 3]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [tensor.detach().clone() for tensor in tensors]
        self.params = [master.to(self.dtype).requires_grad_() for master in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is not None:
                    master -= self.lr * param.grad.float()
                    param.copy_(master.half())


# %% wrong: shares_its_lists
"""The lists are attributes of the class. [earns 3]"""

import torch


class MasterWeights:
    master = []
    params = []

    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype

    def load(self, tensors):
        self.master.clear()
        self.params.clear()
        for t in tensors:
            self.master.append(t.clone())
            self.params.append(t.to(self.dtype).clone().requires_grad_())

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params, strict=True):
                if param.grad is not None:
                    master -= self.lr * param.grad.float()
                    param.copy_(master)


# %% wrong: shares_its_rate
"""The rate is an attribute of the class. [earns 3]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        MasterWeights.lr = lr
        MasterWeights.dtype = dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [tensor.detach().clone() for tensor in tensors]
        self.params = [master.to(MasterWeights.dtype).requires_grad_() for master in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params, strict=True):
                if param.grad is not None:
                    master -= MasterWeights.lr * param.grad.float()
                    param.copy_(master)


# %% wrong: mean_gradient
"""Moves every value by the mean of the gradient."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr = lr
        self.dtype = dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [tensor.detach().clone() for tensor in tensors]
        self.params = [master.to(self.dtype).requires_grad_() for master in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params, strict=True):
                if param.grad is not None:
                    master -= self.lr * param.grad.float().mean()
                    param.copy_(master)


# %% wrong: last_of_a_shape
"""Rounds the last master of each shape into all params of that shape. [earns 2]"""


import torch
class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []
    def load(self, tensors):
        self.master = [t.detach().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]
    @torch.no_grad()
    def step(self):
        for m, p in zip(self.master, self.params):
            if p.grad is not None:
                m -= self.lr * p.grad.float()
                p.copy_({x.shape: x for x in self.master}[m.shape])


# %% wrong: recording_left_off
"""Leaves gradients switched off."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = float(lr), dtype

    @torch.no_grad()
    def load(self, tensors):
        self.master = []
        self.params = []
        for t in tensors:
            m = torch.empty_like(t, dtype=torch.float32).copy_(t)
            self.master.append(m)
            self.params.append(m.to(dtype=self.dtype).requires_grad_())

    def step(self):
        torch.set_grad_enabled(False)
        for i in range(len(self.master)):
            if self.params[i].grad is not None:
                self.master[i].add_(self.params[i].grad.float(), alpha=-self.lr)
                self.params[i].data.copy_(self.master[i].data)


# %% wrong: old_gradient_again
"""Steps with a parameter's last gradient if there is none now. [earns 3]"""
import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]
        self.last = [torch.zeros_like(m) for m in self.master]

    @torch.no_grad()
    def step(self):
        for i, param in enumerate(self.params):
            if param.grad is not None:
                self.last[i] = param.grad.float()
            self.master[i] -= self.lr * self.last[i]
            param.copy_(self.master[i])


# %% right: properties
"""Pairs of master and param, which properties list; computes in float64."""
import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.rate, self.low, self.pairs = lr, dtype, []

    @property
    def master(self):
        return [master for master, _ in self.pairs]

    @property
    def params(self):
        return [param for _, param in self.pairs]

    def load(self, tensors):
        self.pairs = [(t.clone(), t.to(self.low, copy=True).requires_grad_()) for t in tensors]

    def step(self):
        for master, param in self.pairs:
            if param.grad is not None:
                master.copy_(master.double() - self.rate * param.grad.double())
                param.data = master.to(self.low)


# %% wrong: data_in_float32
"""Sets a param's data to its float32 master."""
import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype

    def load(self, tensors):
        self.master = [t.detach().clone().float() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for m, p in zip(self.master, self.params):
                if p.grad is None:
                    continue
                m -= self.lr * p.grad.float()
                p.data = m
