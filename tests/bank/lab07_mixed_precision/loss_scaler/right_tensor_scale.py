"""The scale is a tensor, gradients are replaced and not divided in place, step looks by itself."""

import torch


def _with_gradient(optimizer):
    return [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self._scale = torch.tensor(float(initial))
        self._growth, self._backoff, self._interval = growth, backoff, interval
        self._streak = 0
        self._state = "scaled"

    def scale(self, loss):
        return self._scale * loss

    @torch.no_grad()
    def unscale_(self, optimizer):
        inverse = 1.0 / self._scale
        for p in _with_gradient(optimizer):
            p.grad = p.grad * inverse
        self._state = "unscaled"

    def step(self, optimizer):
        if self._state == "scaled":
            self.unscale_(optimizer)
        total = sum(p.grad.abs().sum() for p in _with_gradient(optimizer))
        if torch.isfinite(total):
            optimizer.step()
            self._state = "stepped"
        else:
            self._state = "skipped"

    def update(self):
        if self._state == "skipped":
            self._scale = self._scale * self._backoff
            self._streak = 0
        else:
            self._streak = self._streak + 1
        if self._streak == self._interval:
            self._scale = self._scale * self._growth
            self._streak = 0
        self._state = "scaled"
