"""m and v lie below as one tensor of two rows."""
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
                self.own[i] = [0, self.host.put(torch.zeros(2, *p.shape, dtype=p.dtype))]
            self.own[i][0] += 1
            t, handle = self.own[i]
            both = self.host.get(handle)
            both[0].mul_(b1).add_(p.grad, alpha=1 - b1)
            both[1].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(handle, both)
            root = both[1].div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(both[0], root, value=-self.lr / (1 - b1**t))
            del both, root

    def zero_grad(self):
        for p in self.params:
            p.grad = None
