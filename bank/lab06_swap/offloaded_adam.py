# %% right: both_in_one
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


# %% right: free_and_put
"""Frees the old moments and puts the new ones, instead of write."""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.free(hm)
            self.host.free(hv)
            self.own[i] = [t, self.host.put(m), self.host.put(v)]
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: in_place
"""In place, one parameter at a time."""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: keyed_by_parameter
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


# %% wrong: all_moments_at_once
"""Brings everything up before it begins. [earns 3]"""
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
            pass
        up = {}
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if i not in self.own:
                zero = torch.zeros_like(p)
                self.own[i] = [0, self.host.put(zero), self.host.put(zero)]
                del zero
            self.own[i][0] += 1
            t, hm, hv = self.own[i]
            up[i] = self.host.get(hm), self.host.get(hv)
        for i, (m, v) in up.items():
            p = self.params[i]
            t, hm, hv = self.own[i]
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            p.addcdiv_(m / (1 - b1**t), (v / (1 - b2**t)).sqrt() + self.eps, value=-self.lr)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: changes_gradients
"""Squares the gradient in place. [earns 2]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).add_(p.grad.square_(), alpha=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: eps_inside_the_root
"""eps under the root. [earns 2]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            p.addcdiv_(m, v.div_(1 - b2**t).add_(self.eps).sqrt_(), value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: gradients_too
"""Puts a copy of the gradient below, too. [earns 3]"""
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
            if len(self.own[i]) == 3:
                self.own[i].append(self.host.put(p.grad))
            self.own[i][0] += 1
            t, hm, hv, _ = self.own[i]
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: keeps_on_the_device
"""Keeps what came up in a dict. [earns 3]"""
import math

import torch


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.own = {}
        self.cache = {}

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
            self.cache[i] = (m.clone(), v.clone())
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: made_too_early
"""Makes the moments with the optimizer. [earns 3]"""
import math

import torch


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.own = {}
        for i, p in enumerate(self.params):
            zero = torch.zeros_like(p)
            self.own[i] = [0, host.put(zero), host.put(zero)]

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.own[i][0] += 1
            t, hm, hv = self.own[i]
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: moments_by_shape
"""Knows a parameter's moments by its shape. [earns 0]"""
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
            i = tuple(p.shape)
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
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: no_bias_correction
"""Forgets the bias correction. [earns 2]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            p.addcdiv_(m, v.sqrt_().add_(self.eps), value=-self.lr)
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: none_as_zero
"""Takes None for a gradient of zero. [earns 2]"""
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
            g = torch.zeros_like(p) if p.grad is None else p.grad
            if i not in self.own:
                zero = torch.zeros_like(p)
                self.own[i] = [0, self.host.put(zero), self.host.put(zero)]
                del zero
            self.own[i][0] += 1
            t, hm, hv = self.own[i]
            m = self.host.get(hm).mul_(b1).add_(g, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(g, g, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: not_written_back
"""Never writes the moments back. [earns 2]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: nothing_on_the_host
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


# %% wrong: one_count_for_all
"""One step count for all parameters. [earns 2]"""
import math

import torch


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.own = {}
        self.t = 0

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            self.t += i == 0
            if p.grad is None:
                continue
            if i not in self.own:
                zero = torch.zeros_like(p)
                self.own[i] = [0, self.host.put(zero), self.host.put(zero)]
                del zero
            self.own[i][0] += 1
            t, hm, hv = self.own[i]
            t = self.t
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: params_used_up
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


# %% wrong: puts_again
"""Puts new moments each time and never frees the old. [earns 3]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.own[i] = [t, self.host.put(m), self.host.put(v)]
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: sign
"""Goes uphill. [earns 2]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: state_on_both_sides
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


# %% wrong: stops_at_none
"""Ends at the first gradient of None. [earns 2]"""
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
                return
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
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: temporaries
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


# %% wrong: zero_grad_does_nothing
"""zero_grad is left empty. [earns 3]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        pass


# %% wrong: last_ones_kept
"""Holds the last parameter's moments until the next step. [earns 3]"""
import torch


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.own = {}
        self.m = self.v = None

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
            self.m, self.v = m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: last_one_kept_in_numpy
"""Holds a copy of the last m in a numpy array. [earns 3]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            self.last_m = m.numpy().copy()
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: made_without_gradient
"""Makes the moments of all parameters in the first step. [earns 3]"""
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
            if i not in self.own:
                zero = torch.zeros_like(p)
                self.own[i] = [0, self.host.put(zero), self.host.put(zero)]
                del zero
            if p.grad is None:
                continue
            self.own[i][0] += 1
            t, hm, hv = self.own[i]
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: v_not_written_back
"""Writes m back, and not v. [earns 2]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hm, m)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: m_not_written_back
"""Writes v back, and not m. [earns 2]"""
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
            m = self.host.get(hm).mul_(b1).add_(p.grad, alpha=1 - b1)
            v = self.host.get(hv).mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            self.host.write(hv, v)
            v.div_(1 - b2**t).sqrt_().add_(self.eps)
            p.addcdiv_(m, v, value=-self.lr / (1 - b1**t))
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: moments_of_another_dtype
"""Makes moments in torch's usual dtype. [earns 2]"""
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
                zero = torch.zeros(p.shape)
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
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: small_ones_stay
"""Leaves the moments of small parameters on the device. [earns 3]"""
import torch

from peakmem.labs.lab06 import adam_update_


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.options = {"lr": lr, "betas": betas, "eps": eps}
        self.own = {}

    def step(self):
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            here = p.numel() < 1000
            if i not in self.own:
                zeros = torch.zeros_like(p)
                pair = [zeros, zeros.clone()] if here else [self.host.put(zeros) for _ in "mv"]
                self.own[i] = [0, *pair]
                del zeros, pair
            self.own[i][0] += 1
            t, *pair = self.own[i]
            m, v = pair if here else map(self.host.get, pair)
            adam_update_(p, m, v, t, **self.options)
            if not here:
                self.host.write(pair[0], m)
                self.host.write(pair[1], v)
            del m, v

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: gradients_of_zeros
"""zero_grad() fills the gradients with zeros. [earns 3]"""
import torch

from peakmem.labs.lab06 import adam_update_


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.options = {"lr": lr, "betas": betas, "eps": eps}
        self.own = {}

    def step(self):
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if i not in self.own:
                zeros = torch.zeros_like(p)
                self.own[i] = [0, self.host.put(zeros), self.host.put(zeros)]
                del zeros
            self.own[i][0] += 1
            t, at_m, at_v = self.own[i]
            m, v = self.host.get(at_m), self.host.get(at_v)
            adam_update_(p, m, v, t, **self.options)
            self.host.write(at_m, m)
            self.host.write(at_v, v)
            del m, v

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.zero_()


# %% wrong: wide_moments
"""Keeps the moments in float64, whatever the parameter's dtype. [earns 2]"""
import torch

from peakmem.labs.lab06 import adam_update_


class OffloadedAdam:
    """Adam with its moments on the host."""

    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.options = {"lr": lr, "betas": betas, "eps": eps}
        self.state = {}  # a parameter's number -> [its steps, handle of m, handle of v]

    def step(self):
        for i, param in enumerate(self.params):
            if param.grad is None:
                continue
            if i not in self.state:
                zeros = torch.zeros_like(param, dtype=torch.float64)
                self.state[i] = [0, self.host.put(zeros), self.host.put(zeros)]
                del zeros
            self.state[i][0] += 1
            t, m_handle, v_handle = self.state[i]
            m, v = self.host.get(m_handle), self.host.get(v_handle)
            adam_update_(param, m, v, t, **self.options)
            self.host.write(m_handle, m)
            self.host.write(v_handle, v)
            del m, v

    def zero_grad(self) -> None:
        """Free the gradients."""
        for param in self.params:
            param.grad = None


# %% wrong: count_stays_one
"""Counts in a local variable. [earns 2]"""
import torch

from peakmem.labs.lab06 import adam_update_


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.options = {"lr": lr, "betas": betas, "eps": eps}
        self.state = {}

    def step(self):
        for i, param in enumerate(self.params):
            if param.grad is None:
                continue
            if i not in self.state:
                z = torch.zeros_like(param)
                self.state[i] = [0, self.host.put(z), self.host.put(z)]
                del z
            t, hm, hv = self.state[i]
            t += 1
            m, v = self.host.get(hm), self.host.get(hv)
            adam_update_(param, m, v, t, **self.options)
            self.host.write(hm, m)
            self.host.write(hv, v)
            del m, v

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% wrong: skips_zero_gradients
"""Takes a gradient of zeros for none: `if not grad.any()`. [earns 2]"""
import torch

from peakmem.labs.lab06 import adam_update_


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.options = {"lr": lr, "betas": betas, "eps": eps}
        self.state = {}

    def step(self):
        for i, param in enumerate(self.params):
            if param.grad is None or not param.grad.any():
                continue
            if i not in self.state:
                z = torch.zeros_like(param)
                self.state[i] = [0, self.host.put(z), self.host.put(z)]
                del z
            self.state[i][0] += 1
            t, hm, hv = self.state[i]
            m, v = self.host.get(hm), self.host.get(hv)
            adam_update_(param, m, v, t, **self.options)
            self.host.write(hm, m)
            self.host.write(hv, v)
            del m, v

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% wrong: one_tensor_too_many
"""Clones parameter and gradient first: five tensors with m, v and the temporary. [earns 3]"""
import torch

from peakmem.labs.lab06 import adam_update_


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.options = {"lr": lr, "betas": betas, "eps": eps}
        self.state = {}

    def step(self):
        for i, param in enumerate(self.params):
            if param.grad is None:
                continue
            grad, old = param.grad.clone(), param.detach().clone()
            if i not in self.state:
                z = torch.zeros_like(param)
                self.state[i] = [0, self.host.put(z), self.host.put(z)]
                del z
            self.state[i][0] += 1
            t, hm, hv = self.state[i]
            m, v = self.host.get(hm), self.host.get(hv)
            adam_update_(param, m, v, t, **self.options)
            self.host.write(hm, m)
            self.host.write(hv, v)
            del m, v, grad, old

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% wrong: gradients_left_off
"""Leaves gradients switched off. [earns 2]"""
import math

import torch


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.own = {}

    def step(self):
        torch.set_grad_enabled(False)
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


# %% wrong: narrow_moments
"""Moments in float32, whatever the parameter's dtype. [earns 2]"""
import torch
from peakmem.labs.lab06 import adam_update_


class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.options = {"lr": lr, "betas": betas, "eps": eps}
        self.state = {}

    def step(self):
        with torch.no_grad():
            for i, p in enumerate(self.params):
                if p.grad is None:
                    continue
                if i not in self.state:
                    zeros = torch.zeros(p.shape)
                    self.state[i] = [0, self.host.put(zeros), self.host.put(zeros)]
                    del zeros
                s = self.state[i]
                s[0] += 1
                m, v = self.host.get(s[1]), self.host.get(s[2])
                adam_update_(p, m, v, s[0], **self.options)
                self.host.write(s[1], m)
                self.host.write(s[2], v)
                del m, v

    def zero_grad(self):
        for param in self.params:
            param.grad = None
