"""Overflow is read off the norm of all gradients; a dataclass holds the settings."""

from dataclasses import dataclass

import torch


@dataclass
class LossScaler:
    initial: float = 2.0**16
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000

    def __post_init__(self):
        self.now = self.initial
        self.good_steps = 0
        self.finite = None  # None: gradients are still scaled

    def scale(self, loss):
        return loss * self.now

    def unscale_(self, optimizer):
        grads = []
        for group in optimizer.param_groups:
            grads += [p.grad for p in group["params"] if p.grad is not None]
        torch._foreach_div_(grads, self.now)
        norm = torch.linalg.vector_norm(torch.cat([g.flatten().double() for g in grads]))
        self.finite = bool(torch.isfinite(norm))

    def step(self, optimizer):
        if self.finite is None:
            self.unscale_(optimizer)
        if self.finite:
            optimizer.step()

    def update(self):
        if not self.finite:
            self.now, self.good_steps = self.now * self.backoff, 0
        elif self.good_steps + 1 == self.interval:
            self.now, self.good_steps = self.now * self.growth, 0
        else:
            self.good_steps += 1
        self.finite = None
