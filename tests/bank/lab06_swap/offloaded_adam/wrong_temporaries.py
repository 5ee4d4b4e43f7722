"""Makes a new tensor at every step of the formula. [earns 3]"""
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
                zero = torch.zeros_like(p)
                self.own[i] = [0, self.host.put(zero), self.host.put(zero)]
                del zero
            self.own[i][0] += 1
            t, hm, hv = self.own[i]
            m = b1 * self.host.get(hm) + (1 - b1) * p.grad
            v = b2 * self.host.get(hv) + (1 - b2) * p.grad**2
            self.host.write(hm, m)
            self.host.write(hv, v)
            m_hat = m / (1 - b1**t)
            v_hat = v / (1 - b2**t)
            root = v_hat.sqrt()
            p -= self.lr * m_hat / (root + self.eps)

    def zero_grad(self):
        for p in self.params:
            p.grad = None
