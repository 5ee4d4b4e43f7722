"""A plain Adam that forgets the host. [earns 2]"""
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
            if i not in self.own:
                self.own[i] = [0, torch.zeros_like(p), torch.zeros_like(p)]
            self.own[i][0] += 1
            t, m, v = self.own[i]
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            p.addcdiv_(m, (v / (1 - b2**t)).sqrt_().add_(self.eps), value=-self.lr / (1 - b1**t))

    def zero_grad(self):
        for p in self.params:
            p.grad = None
