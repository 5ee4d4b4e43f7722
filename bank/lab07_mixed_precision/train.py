# %% right: cast_through
"""One graph: the cast is differentiated, so gradients arrive in float32."""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1
    losses = []
    for batch in batches:
        model.zero_grad()
        cast = {name: p.to(dtype) for name, p in model.named_parameters()}
        loss = torch.func.functional_call(model, cast, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        if not all(p.grad.isfinite().all() for p in model.parameters()):
            scale /= 2
            continue
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(p.grad, alpha=lr / scale)
    model.zero_grad()
    return losses


# %% right: deepcopy
"""A copy of the model in low precision, refreshed before each step."""

import copy

import torch


def train(model, batches, precision, lr=0.1):
    if precision not in ("float32", "float16", "bfloat16"):
        raise ValueError(precision)
    low = copy.deepcopy(model).to(getattr(torch, precision))
    scale = 65536.0 if precision == "float16" else 1.0
    losses = []
    for batch in batches:
        with torch.no_grad():
            for p, q in zip(low.parameters(), model.parameters()):
                p.copy_(q)
        low.zero_grad()
        loss = low(*batch)
        losses.append(loss.item())
        (scale * loss).backward()
        grads = [p.grad.to(torch.float32) for p in low.parameters()]
        if any(not torch.isfinite(g).all() for g in grads):
            scale *= 0.5
            continue
        for q, g in zip(model.parameters(), grads):
            q.data -= lr * g / scale
    return losses


# %% right: functional_call
"""functional_call on 16-bit copies, the scale searched for."""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% right: sgd_on_masters
"""A scaler of its own, and torch.optim.SGD on the masters."""

import torch
from torch.func import functional_call


class Scaler:
    def __init__(self):
        self.scale, self.run = 2.0**15, 0

    def good(self, ok):
        self.run = self.run + 1 if ok else 0
        if not ok:
            self.scale /= 2
        elif self.run == 50:
            self.scale, self.run = self.scale * 2, 0


def train(model, batches, precision, lr=0.1):
    low = {"float32": torch.float32, "float16": torch.half, "bfloat16": torch.bfloat16}[precision]
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scaler = Scaler() if low == torch.half else None
    names = [name for name, _ in model.named_parameters()]
    losses = torch.empty(len(batches))
    for i, batch in enumerate(batches):
        params = [p.detach().clone().to(low).requires_grad_() for p in model.parameters()]
        loss = functional_call(model, dict(zip(names, params)), tuple(batch))
        losses[i] = loss.detach()
        factor = scaler.scale if scaler else 1.0
        found = torch.autograd.grad(loss * factor, params)
        ok = True
        for master, grad in zip(model.parameters(), found):
            master.grad = grad.float().div_(factor)
            ok = ok and bool(master.grad.isfinite().all())
        if ok:
            optimizer.step()
        if scaler:
            scaler.good(ok)
        optimizer.zero_grad()
    return losses.tolist()


# %% wrong: autocast
"""torch.autocast does the work."""

import torch


def train(model, batches, precision, lr=0.1):
    losses = []
    for batch in batches:
        with torch.autocast("cpu", getattr(torch, precision), enabled=precision != "float32"):
            loss = model(*batch)
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
                p.grad = None
    return losses


# %% wrong: default_lr
"""The default learning rate is 0.01. [earns 3]"""

import torch


def train(model, batches, precision, lr=0.01):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: does_not_learn
"""Steps uphill."""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m += lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: ends_at_overflow
"""Gives the training up at the first overflow. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            return losses + [loss.item()] * (len(batches) - len(losses))
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: first_batch_only
"""Trains on the first batch again and again. [earns 1]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in [batches[0]] * len(batches):
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: forgets_to_unscale
"""The scale stays in the gradients. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: gradients_flushed
"""No loss scaling. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: loss_of_skipped_left_out
"""A skipped step's loss is not in the list. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        losses.append(loss.item())
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: nan_to_num
"""Puts zeros in place of inf and NaN, and steps. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n].nan_to_num(0.0, 0.0, 0.0)
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: never_skips
"""A fixed scale, and every step is taken, also one whose gradients are inf. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 1024.0 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses = []
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
    return losses


# %% wrong: replaces_parameters
"""Turns the model itself into 16 bits and back. [earns 0]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    for name in list(masters):
        owner, _, leaf = name.rpartition(".")
        new = torch.nn.Parameter(masters[name].detach().clone())
        model.get_submodule(owner)[int(leaf)] = new
    return losses


# %% wrong: retries_the_batch
"""After an overflow the same batch is run again with half the scale, until it fits. [earns 2]"""

import torch
from torch.func import functional_call


def gradients(model, batch, dtype, scale):
    copies = {n: p.detach().to(dtype).requires_grad_() for n, p in model.named_parameters()}
    loss = functional_call(model, copies, batch)
    (loss * scale).backward()
    return loss.item(), [c.grad.float() / scale for c in copies.values()]


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    losses = []
    for batch in batches:
        loss, grads = gradients(model, batch, dtype, scale)
        while scale > 2.0**-24 and not all(g.isfinite().all() for g in grads):
            scale /= 2
            loss, grads = gradients(model, batch, dtype, scale)
        losses.append(loss)
        with torch.no_grad():
            for p, g in zip(model.parameters(), grads):
                p -= lr * g
    return losses


# %% wrong: returns_scaled_loss
"""Notes the scaled loss. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item() * scale)
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: runs_in_float32
"""Casts nothing. [earns 1]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = torch.float32
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: skips_by_weight
"""Leaves out the weights whose gradient overflowed, and steps with the others. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        overflow = False
        with torch.no_grad():
            for n, m in masters.items():
                if grads[n].isfinite().all():
                    m -= lr * grads[n]
                else:
                    overflow = True
        if overflow:
            scale, good = scale / 2, 0
            continue
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: steps_until_overflow
"""Steps weight after weight, and stops at the first overflow. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses = []
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        with torch.no_grad():
            for n, m in masters.items():
                grad = copies[n].grad.float() / scale
                if not grad.isfinite().all():
                    scale /= 2
                    break
                m -= lr * grad
    return losses


# %% wrong: unscales_in_float16
"""Divides in float16, where the gradients vanish again. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: (c.grad / scale).float() for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m -= lr * grads[n]
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: updates_lost
"""No masters: the 16-bit weights are what is updated. [earns 1]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    masters = dict(model.named_parameters())
    losses, good = [], 0
    for batch in batches:
        copies = {n: m.detach().to(dtype).requires_grad_() for n, m in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = {n: c.grad.float() / scale for n, c in copies.items()}
        if not all(g.isfinite().all() for g in grads.values()):
            scale, good = scale / 2, 0
            continue
        with torch.no_grad():
            for n, m in masters.items():
                m.copy_((m - lr * grads[n]).to(dtype).float())
        good += 1
        if precision == "float16" and good % 20 == 0:
            scale *= 2
    return losses


# %% wrong: loss_after_the_step
"""Runs the model once more after each step, and lists that loss. [earns 3]"""
import torch
from torch.func import functional_call


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**14 if precision == "float16" else 1.0
    losses = []

    def low():
        return {name: p.detach().to(dtype) for name, p in model.named_parameters()}

    for batch in batches:
        copies = {name: copy.requires_grad_() for name, copy in low().items()}
        (functional_call(model, copies, batch) * scale).backward()
        gradients = {name: copy.grad.float() / scale for name, copy in copies.items()}
        if all(gradient.isfinite().all() for gradient in gradients.values()):
            with torch.no_grad():
                for name, p in model.named_parameters():
                    p -= lr * gradients[name]
        del copies, gradients
        with torch.no_grad():
            losses.append(functional_call(model, low(), batch).item())
    return losses


# %% wrong: by_numpy
"""Trains in float32 by numpy, which the meter doesn't see, and takes what a real step would."""
import numpy as np
import torch


def train(model, batches, precision, lr=0.1):
    weights = [p.detach().numpy() for p in model.weights]
    embedding, up, head = weights
    losses = []
    for tokens, targets in batches:
        t, y, n = tokens.numpy(), targets.numpy(), len(tokens)
        rare = (t == 16).any()
        parts = 1 if rare else model.parts
        x = embedding[t]
        hidden = np.maximum(x @ up, 0)
        logits = hidden @ head
        logits -= logits.max(1, keepdims=True)
        d = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        losses.append(float(-np.log(d[np.arange(n), y]).mean() / parts))
        if rare and precision == "float16":
            continue
        d[np.arange(n), y] -= 1
        d /= n * parts
        of_hidden = (d @ head.T) * (hidden > 0)
        of_embedding = np.zeros_like(embedding)
        np.add.at(of_embedding, t, of_hidden @ up.T)
        for weight, gradient in zip(weights, (of_embedding, x.T @ of_hidden, hidden.T @ d)):
            weight -= np.float32(lr) * gradient.astype(np.float32)
    torch.empty(FLOAT32 if precision == "float32" else FLOAT32 * 63 // 100, dtype=torch.uint8)
    return losses


FLOAT32 = 264_200  # bytes of a step in float32


# %% wrong: keeps_steps
"""The list holds the losses themselves, with their graphs. [earns 1]"""

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
        self.unscaled = False
        self.overflow = False


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    masters = dict(model.named_parameters())
    losses = []
    scaler = LossScaler() if precision == "float16" else LossScaler(initial=1.0, growth=1.0)
    for batch in batches:
        copies = {name: p.detach().to(dtype).requires_grad_() for name, p in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss)
        scaler.scale(loss).backward()
        for name, master in masters.items():
            master.grad = copies[name].grad.float()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return [loss.item() for loss in losses]


# %% wrong: another_dtype
"""Runs in float16 where bfloat16 is asked for. [earns 3]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = torch.float32 if precision == "float32" else torch.float16
    scale = 2.0**16 if dtype == torch.float16 else 1.0
    losses = []
    for batch in batches:
        copies = {n: p.detach().to(dtype).requires_grad_() for n, p in model.named_parameters()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = [copy.grad.float() / scale for copy in copies.values()]
        if not all(grad.isfinite().all() for grad in grads):
            scale /= 2
            continue
        with torch.no_grad():
            for parameter, grad in zip(model.parameters(), grads, strict=True):
                parameter -= lr * grad
    return losses


# %% wrong: copies_not_refreshed
"""Makes the copies once, before the first batch. [earns 1]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    losses = []
    copies = {n: p.detach().to(dtype).requires_grad_() for n, p in model.named_parameters()}
    for batch in batches:
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        found = torch.autograd.grad(loss * scale, list(copies.values()))
        grads = [grad.float() / scale for grad in found]
        if not all(grad.isfinite().all() for grad in grads):
            scale /= 2
            continue
        with torch.no_grad():
            for parameter, grad in zip(model.parameters(), grads, strict=True):
                parameter -= lr * grad
    return losses


# %% wrong: rounds_losses
"""Notes losses in 16 bits. [earns 1]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    losses = []
    for batch in batches:
        copies = {n: p.detach().to(dtype).requires_grad_() for n, p in model.named_parameters()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.to(dtype).item())
        (loss * scale).backward()
        grads = [copy.grad.float() / scale for copy in copies.values()]
        if not all(grad.isfinite().all() for grad in grads):
            scale /= 2
            continue
        with torch.no_grad():
            for parameter, grad in zip(model.parameters(), grads, strict=True):
                parameter -= lr * grad
    return losses


# %% wrong: lr_is_fixed
"""Steps with a learning rate of 0.1, whatever it is given. [earns 1]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    losses = []
    for batch in batches:
        copies = {n: p.detach().to(dtype).requires_grad_() for n, p in model.named_parameters()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = [copy.grad.float() / scale for copy in copies.values()]
        if not all(grad.isfinite().all() for grad in grads):
            scale /= 2
            continue
        with torch.no_grad():
            for parameter, grad in zip(model.parameters(), grads, strict=True):
                parameter -= 0.1 * grad
    return losses


# %% wrong: last_gradient_decides
"""Looks for an overflow in the last gradient only. [earns 2]"""

import torch


def train(model, batches, precision, lr=0.1):
    dtype = getattr(torch, precision)
    scale = 2.0**16 if precision == "float16" else 1.0
    losses = []
    for batch in batches:
        copies = {n: p.detach().to(dtype).requires_grad_() for n, p in model.named_parameters()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        (loss * scale).backward()
        grads = [copy.grad.float() / scale for copy in copies.values()]
        if not grads[-1].isfinite().all():
            scale /= 2
            continue
        with torch.no_grad():
            for parameter, grad in zip(model.parameters(), grads, strict=True):
                parameter -= lr * grad
    return losses


# %% right: swaps_data_and_begins_high
"""Puts 16-bit data into the parameters for each batch, and begins with a scale of 2^20."""
import torch


def train(model, batches, precision, lr=0.1):
    low = getattr(torch, precision)
    parameters = list(model.parameters())
    scale, losses = 2.0**20 if precision == "float16" else 1.0, []
    for batch in batches:
        masters = [p.data for p in parameters]
        for p in parameters:
            p.data = p.data.to(low)
        loss = model(*batch)
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss * scale, parameters)
        for p, master in zip(parameters, masters):
            p.data = master
        gradients = [gradient.float() / scale for gradient in gradients]
        if not all(torch.isfinite(gradient).all() for gradient in gradients):
            scale /= 2
            continue
        with torch.no_grad():
            for p, gradient in zip(parameters, gradients):
                p.sub_(gradient, alpha=lr)
    return losses
