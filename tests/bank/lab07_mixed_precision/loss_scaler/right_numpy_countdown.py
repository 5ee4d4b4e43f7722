"""A numpy scale, a count that runs down, and a set of optimizers that are unscaled."""

import math

import numpy as np


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.factor = np.float64(initial)
        self.growth, self.backoff, self.interval = growth, backoff, interval
        self.to_go = interval
        self.unscaled = set()
        self.bad = set()

    def scale(self, loss):
        return loss * float(self.factor)

    def unscale_(self, optimizer):
        key = id(optimizer)
        if key in self.unscaled:
            raise RuntimeError("unscale_ was called twice for this step")
        self.unscaled.add(key)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                parameter.grad.mul_(1 / float(self.factor))
                values = parameter.grad.flatten().tolist()
                if any(math.isinf(v) or math.isnan(v) for v in values):
                    self.bad.add(key)

    def step(self, optimizer):
        if id(optimizer) not in self.unscaled:
            self.unscale_(optimizer)
        if id(optimizer) in self.bad:
            return None
        return optimizer.step()

    def update(self):
        if self.bad:
            self.factor = self.factor * self.backoff
            self.to_go = self.interval
        else:
            self.to_go -= 1
        if self.to_go == 0:
            self.factor = self.factor * self.growth
            self.to_go = self.interval
        self.bad.clear()
        self.unscaled.clear()
