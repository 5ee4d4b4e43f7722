# %% right: norm
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


# %% right: numpy_countdown
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


# %% right: plain
"""A flag for unscaled gradients, one for the overflow, and a count."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% right: tensor_scale
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


# %% wrong: backs_off_late
"""The next update backs off, for the step that was skipped before it. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False
        self.last_overflow = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.last_overflow:
            self.current *= self.backoff
        self.last_overflow = self.overflow
        if self.overflow:
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: clears_instead_of_skipping
"""Sets the gradients to 0 after an overflow and steps. [earns 2]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if self.overflow:
            optimizer.zero_grad(set_to_none=False)
        optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: default_growth
"""growth and backoff without their defaults' values. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=1.5, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: default_interval
"""The interval's default is 1000. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=1000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: default_interval_by_one
"""The interval's default is 1999. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=1999):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: first_group_only
"""Takes optimizer.param_groups[0] for all parameters."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for p in optimizer.param_groups[0]["params"]:
            if p.grad is not None:
                p.grad.div_(self.current)
                if not torch.isfinite(p.grad).all():
                    self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: forgets_overflow_after_unscale
"""step looks for an overflow only where it unscales by itself. [earns 4]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if self.unscaled:
            optimizer.step()
            return
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: grows_early
"""Compares with interval - 1. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good >= self.interval - 1:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: grows_late
"""Counts after it has compared, so it grows one step late. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
            else:
                self.good += 1
        self.overflow = False
        self.unscaled = False


# %% wrong: ignores_backoff
"""Always halves, whatever backoff says. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= 0.5
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: ignores_growth
"""Always doubles, whatever growth says. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= 2
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: ignores_inf
"""Looks for NaN only."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if torch.isnan(p.grad).any():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: ignores_nan
"""Looks for inf with torch.isinf, so NaN passes. [earns 1]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if torch.isinf(p.grad).any():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: keeps_count_after_growth
"""Grows at every step once it has grown. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good >= self.interval:
                self.current *= self.growth
        self.overflow = False
        self.unscaled = False


# %% wrong: keeps_count_after_skip
"""The count of good steps is not set back after an overflow. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: last_gradient_decides
"""Assigns the flag in the loop, so the last parameter decides. [earns 1]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    self.overflow = not bool(torch.isfinite(p.grad).all())
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: multiplies_by_scale
"""Multiplies where it should divide. [earns 2]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.mul_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: nan_to_num
"""Replaces inf and NaN by 0 and steps with the rest."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        p.grad.nan_to_num_(0.0, 0.0, 0.0)
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: never_backs_off
"""Skips, and leaves the scale as it was. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: never_forgets_unscale
"""The flag of unscale_ is never cleared. [earns 4]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
            self.unscaled = False
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False


# %% wrong: no_unscale_method
"""unscale_ has another name, so nobody can clip. [earns 4]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: not_written
"""The release's stub."""


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        raise NotImplementedError()


# %% wrong: skips_for_ever
"""update does not forget the overflow."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.unscaled = False


# %% wrong: step_does_not_unscale
"""Only those who call unscale_ get true gradients. [earns 2]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and not torch.isfinite(p.grad).all():
                    self.overflow = True
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: steps_anyway
"""Backs off after an overflow, but steps all the same. [earns 2]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: unscales_only_in_step
"""unscale_ does nothing; step divides. [earns 4]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        pass

    def _divide(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self._divide(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: unscales_only_once
"""update does not forget that the gradients were unscaled."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if self.unscaled:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False


# %% wrong: unscales_twice
"""step divides the gradients again after unscale_. [earns 4]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good = 0
        self.overflow = False
        self.unscaled = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    if not torch.isfinite(p.grad).all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current *= self.growth
                self.good = 0
        self.overflow = False
        self.unscaled = False


# %% wrong: wraps_torch
"""Wraps torch's own scaler, which the exercise forbids."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.inner = torch.amp.GradScaler(
            "cpu",
            init_scale=initial,
            growth_factor=growth,
            backoff_factor=backoff,
            growth_interval=interval,
        )

    def scale(self, loss):
        return self.inner.scale(torch.as_tensor(loss))

    def unscale_(self, optimizer):
        self.inner.unscale_(optimizer)

    def step(self, optimizer):
        self.inner.step(optimizer)

    def update(self):
        self.inner.update()


# %% wrong: wraps_torch_by_data
"""Wraps torch's own scaler, which it finds by a name that no constant holds."""

from functools import reduce

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        make = reduce(getattr, "amp GradScaler".split(), torch)
        self.inner = make(
            "cpu",
            init_scale=initial,
            growth_factor=growth,
            backoff_factor=backoff,
            growth_interval=interval,
        )

    def scale(self, loss):
        return self.inner.scale(torch.as_tensor(loss))

    def unscale_(self, optimizer):
        self.inner.unscale_(optimizer)

    def step(self, optimizer):
        self.inner.step(optimizer)

    def update(self):
        self.inner.update()



# %% wrong: least_scale
"""Never lets the scale fall below 2^-14. [earns 3]"""
import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.factor, self.growth, self.backoff, self.interval = initial, growth, backoff, interval
        self.good_steps, self.unscaled, self.overflow = 0, False, False

    def scale(self, loss):
        return loss * self.factor

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not p.grad.isfinite().all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.factor = max(self.factor * self.backoff, 2.0**-14)
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.factor *= self.growth
                self.good_steps = 0
        self.unscaled = self.overflow = False


# %% wrong: largest_scale
"""Never lets the scale grow above 2^24. [earns 3]"""
import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.factor, self.growth, self.backoff, self.interval = initial, growth, backoff, interval
        self.good_steps, self.unscaled, self.overflow = 0, False, False

    def scale(self, loss):
        return loss * self.factor

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not p.grad.isfinite().all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.factor *= self.backoff
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.factor = min(self.factor * self.growth, 2.0**24)
                self.good_steps = 0
        self.unscaled = self.overflow = False


# %% wrong: changes_the_loss
"""Multiplies the loss in place."""
import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.factor, self.growth, self.backoff, self.interval = initial, growth, backoff, interval
        self.good_steps, self.unscaled, self.overflow = 0, False, False

    def scale(self, loss):
        return loss.mul_(self.factor) if isinstance(loss, torch.Tensor) else loss * self.factor

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not p.grad.isfinite().all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.factor *= self.backoff
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.factor *= self.growth
                self.good_steps = 0
        self.unscaled = self.overflow = False


# %% wrong: large_gradients_overflow
"""Takes a gradient for an overflow that float16 could not hold. [earns 1]"""
import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.factor, self.growth, self.backoff, self.interval = initial, growth, backoff, interval
        self.good_steps, self.unscaled, self.overflow = 0, False, False

    def scale(self, loss):
        return loss * self.factor

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad /= self.factor
                    if not p.grad.half().isfinite().all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.factor *= self.backoff
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.factor *= self.growth
                self.good_steps = 0
        self.unscaled = self.overflow = False


# %% wrong: shares_its_state
"""Count and scale are attributes of the class. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        LossScaler.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        LossScaler.good_steps = 0
        self.unscaled = False
        self.overflow = False

    def scale(self, loss):
        return loss * LossScaler.current

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.div_(LossScaler.current)
                    if not parameter.grad.isfinite().all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            LossScaler.current *= self.backoff
            LossScaler.good_steps = 0
        else:
            LossScaler.good_steps += 1
            if LossScaler.good_steps == self.interval:
                LossScaler.current *= self.growth
                LossScaler.good_steps = 0
        self.unscaled = False
        self.overflow = False


# %% wrong: looks_at_the_loss
"""Looks for inf in the loss."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good_steps = 0
        self.unscaled = False
        self.overflow = False

    def scale(self, loss):
        loss = loss * self.current
        self.overflow = not bool(torch.as_tensor(loss).isfinite())
        return loss

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.div_(self.current)
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.current *= self.growth
                self.good_steps = 0
        self.unscaled = False
        self.overflow = False


# %% wrong: first_parameter_only
"""Looks at the first parameter of each group."""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good_steps = 0
        self.unscaled = False
        self.overflow = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"][:1]:
                if parameter.grad is not None:
                    parameter.grad.div_(self.current)
                    if not parameter.grad.isfinite().all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.current *= self.growth
                self.good_steps = 0
        self.unscaled = False
        self.overflow = False


# %% wrong: scale_begins_a_step
"""scale forgets what unscale_ did, which update should. [earns 4]"""

import math, torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current, self.growth, self.backoff, self.interval = initial, growth, backoff, interval
        self.good_steps, self.unscaled, self.overflow = 0, False, False

    def scale(self, loss):
        self.unscaled = self.overflow = False
        return loss * self.current

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.div_(self.current)
                    if not parameter.grad.isfinite().all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.current *= self.growth
                self.good_steps = 0


# %% wrong: zero_is_an_overflow
"""Takes a gradient of 0 for an overflow. [earns 3]"""

import math, torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current, self.growth, self.backoff, self.interval = initial, growth, backoff, interval
        self.good_steps, self.unscaled, self.overflow = 0, False, False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.div_(self.current)
                    if not parameter.grad.isfinite().all() or not parameter.grad.all():
                        self.overflow = True
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.current *= self.growth
                self.good_steps = 0
        self.unscaled = self.overflow = False


# %% wrong: changes_before_update
"""Backs off in step, as soon as it skips. [earns 3]"""


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.s, self.g, self.b, self.n = initial, growth, backoff, interval
        self.good, self.done, self.bad = 0, False, False
    def scale(self, loss):
        return loss * self.s
    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.s)
                    if not p.grad.isfinite().all():
                        self.bad = True
        self.done = True
    def step(self, optimizer):
        if not self.done:
            self.unscale_(optimizer)
        if self.bad:
            self.s *= self.b
        else: optimizer.step()
    def update(self):
        if self.bad:
            self.good = 0
        else:
            self.good += 1
            if self.good == self.n:
                self.s *= self.g
                self.good = 0
        self.done = self.bad = False


# %% wrong: backs_off_in_unscale
"""Backs off in unscale_, which found the overflow. [earns 3]"""


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.s, self.g, self.b, self.n = initial, growth, backoff, interval
        self.good, self.done, self.bad = 0, False, False
    def scale(self, loss):
        return loss * self.s
    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.s)
                    if not p.grad.isfinite().all():
                        self.bad = True
        self.done = True
        if self.bad:
            self.s *= self.b
    def step(self, optimizer):
        if not self.done:
            self.unscale_(optimizer)
        if not self.bad: optimizer.step()
    def update(self):
        if self.bad:
            self.good = 0
        else:
            self.good += 1
            if self.good == self.n:
                self.s *= self.g
                self.good = 0
        self.done = self.bad = False


# %% wrong: gradients_of_none
"""Sets the gradients to None after an overflow and steps. [earns 3]"""


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.s, self.g, self.b, self.n = initial, growth, backoff, interval
        self.good, self.done, self.bad = 0, False, False
    def scale(self, loss):
        return loss * self.s
    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.s)
                    if not p.grad.isfinite().all():
                        self.bad = True
        self.done = True
    def step(self, optimizer):
        if not self.done:
            self.unscale_(optimizer)
        if self.bad:
            for group in optimizer.param_groups:
                for p in group["params"]: p.grad = None
        optimizer.step()
    def update(self):
        if self.bad:
            self.s *= self.b
            self.good = 0
        else:
            self.good += 1
            if self.good == self.n:
                self.s *= self.g
                self.good = 0
        self.done = self.bad = False


# %% right: largest_size
"""Compares the largest size with infinity."""


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.s, self.g, self.b, self.n = initial, growth, backoff, interval
        self.good, self.done, self.bad = 0, False, False
    def scale(self, loss):
        return loss * self.s
    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.s)
                    if not p.grad.abs().max() < float('inf'):
                        self.bad = True
        self.done = True
    def step(self, optimizer):
        if not self.done:
            self.unscale_(optimizer)
        if not self.bad: optimizer.step()
    def update(self):
        if self.bad:
            self.s *= self.b
            self.good = 0
        else:
            self.good += 1
            if self.good == self.n:
                self.s *= self.g
                self.good = 0
        self.done = self.bad = False


# %% wrong: zeros_for_none
"""Gives parameters without a gradient one of zeros, so the optimizer steps on them. [earns 3]"""

import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current, self.interval = initial, interval
        self.growth, self.backoff = growth, backoff
        self.good, self.found = 0, None

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        for g in optimizer.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
        grads = [p.grad for g in optimizer.param_groups for p in g["params"]]
        for x in grads:
            x.div_(self.current)
        self.found = not all(bool(torch.isfinite(x).all()) for x in grads)

    def step(self, optimizer):
        if self.found is None:
            self.unscale_(optimizer)
        if not self.found:
            optimizer.step()

    def update(self):
        if self.found:
            self.current, self.good = self.current * self.backoff, 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current, self.good = self.current * self.growth, 0
        self.found = None


# %% wrong: counts_unclipped_steps
"""A step counts as good only if it has unscaled by itself. [earns 3]"""
import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current, self.growth, self.backoff = initial, growth, backoff
        self.interval, self.good = interval, 0
        self.unscaled = self.overflow = False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.current)
                    self.overflow = self.overflow or not torch.isfinite(p.grad).all()
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
            self.good += 1
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current *= self.backoff
            self.good = 0
        elif self.good == self.interval:
            self.current *= self.growth
            self.good = 0
        self.unscaled = self.overflow = False


# %% wrong: keeps_the_first_optimizer
"""Collects the parameters once, from the first optimizer that comes. [earns 3]"""
import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current, self.growth, self.backoff = initial, growth, backoff
        self.interval, self.good = interval, 0
        self.unscaled = self.overflow = False
        self.parameters = []

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        if not self.parameters:
            self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for p in self.parameters:
            if p.grad is not None:
                p.grad.div_(self.current)
                self.overflow = self.overflow or not torch.isfinite(p.grad).all()
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        self.good = 0 if self.overflow else self.good + 1
        if self.overflow:
            self.current *= self.backoff
        elif self.good == self.interval:
            self.current *= self.growth
            self.good = 0
        self.unscaled = self.overflow = False


# %% right: foreach
"""Multiplies all gradients at once by the reciprocal; None until they have been looked at."""
import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.__dict__.update(growth=growth, backoff=backoff, interval=interval)
        self.current, self.fine, self.run = initial, None, 0

    def scale(self, loss):
        return self.current * loss

    def unscale_(self, optimizer):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_mul_(gradients, 1 / self.current)
        self.fine = all(bool(torch.isfinite(gradient).all()) for gradient in gradients)

    def step(self, optimizer):
        if self.fine is None:
            self.unscale_(optimizer)
        return optimizer.step() if self.fine else None

    def update(self):
        fine, self.fine = self.fine, None
        if not fine:
            self.current, self.run = self.current * self.backoff, 0
            return
        self.run = (self.run + 1) % self.interval
        self.current *= self.growth if self.run == 0 else 1


# %% wrong: row_by_row
"""Divides each row of a gradient, and fails on a parameter without dimensions."""


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.current, self.growth, self.backoff, self.interval = initial, growth, backoff, interval
        self.good, self.unscaled, self.overflow = 0, False, False

    def scale(self, loss):
        return loss * self.current

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    for row in parameter.grad:
                        row /= self.current
                        self.overflow |= not row.isfinite().all()
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        if self.overflow:
            self.current, self.good = self.current * self.backoff, 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.current, self.good = self.current * self.growth, 0
        self.unscaled = self.overflow = False


# %% wrong: never_below_1
"""The scale stops at 1. [earns 3]"""
import torch


class LossScaler:
    def __init__(self, initial=2.0**16, growth=2.0, backoff=0.5, interval=2000):
        self.s, self.growth, self.backoff, self.interval = initial, growth, backoff, interval
        self.good = 0
        self.found = False
        self.done = False

    def scale(self, loss):
        return loss * self.s

    def unscale_(self, optimizer):
        if self.done:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.s)
                    if not torch.isfinite(p.grad).all():
                        self.found = True
        self.done = True

    def step(self, optimizer):
        if not self.done:
            self.unscale_(optimizer)
        if not self.found:
            optimizer.step()

    def update(self):
        if self.found:
            self.s = max(1.0, self.s * self.backoff)
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                self.s *= self.growth
                self.good = 0
        self.found = self.done = False
