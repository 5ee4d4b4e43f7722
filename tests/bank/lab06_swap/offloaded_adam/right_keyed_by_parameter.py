"""A dict keyed by the parameter, and moments made from torch.zeros."""
import math

import torch


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.own = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if p not in self.own:
                first, second = (self.host.put(torch.zeros(p.shape, dtype=p.dtype)) for _ in "mv")
                self.own[p] = {"m": first, "v": second, "t": 0}
            own = self.own[p]
            own["t"] += 1
            m = self.host.get(own["m"])
            m.lerp_(p.grad, 1 - b1)
            self.host.write(own["m"], m)
            m /= 1 - b1 ** own["t"]
            v = self.host.get(own["v"])
            v.mul_(b2)
            v += (1 - b2) * p.grad * p.grad
            self.host.write(own["v"], v)
            v /= 1 - b2 ** own["t"]
            m /= v.sqrt_().add_(self.eps)
            p -= m.mul_(self.lr)
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None
