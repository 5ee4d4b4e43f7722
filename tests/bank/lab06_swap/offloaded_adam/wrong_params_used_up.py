"""Keeps `params` itself, which may be a generator. [earns 2]"""
import torch


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = params, host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.own = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if i not in self.own:
                zeros = torch.zeros_like(p)
                self.own[i] = [0, self.host.put(zeros), self.host.put(zeros)]
            self.own[i][0] += 1
            t, at_m, at_v = self.own[i]
            m = self.host.get(at_m).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(at_v).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(at_m, m)
            self.host.write(at_v, v)
            p.addcdiv_(
                m, v.div_(1 - b2**t).sqrt_().add_(self.eps), value=-self.lr / (1 - b1**t)
            )

    def zero_grad(self):
        for p in self.params:
            p.grad = None
