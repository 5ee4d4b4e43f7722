# %% right: flat_views
"""Flat views where the memory is in one piece, row by row where it is not; lerp_, no helpers."""
import math

import torch


def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    with torch.no_grad():
        for p, g in zip(params, grads):
            if g is None:
                continue
            s = state.get(p)
            if s is None:
                s = state[p] = [0, torch.zeros(p.shape, dtype=p.dtype), torch.zeros(p.shape, dtype=p.dtype)]
            s[0] += 1
            t, m, v = s
            if p.is_contiguous() and g.is_contiguous():
                rows = [(p.view(-1), g.view(-1), m.view(-1), v.view(-1))]
            else:
                rows = zip(p, g, m, v)
            for p_row, g_row, m_row, v_row in rows:
                for begin in range(0, len(p_row), 50_000):
                    cut = slice(begin, begin + 50_000)
                    m_row[cut].lerp_(g_row[cut], 1 - b1)
                    v_row[cut].lerp_(g_row[cut] ** 2, 1 - b2)
                    denominator = torch.sqrt(v_row[cut] / (1 - b2**t)) + eps
                    p_row[cut] -= lr / (1 - b1**t) * (m_row[cut] / denominator)


# %% right: halving
"""Cuts every tensor in halves along its longest side until the pieces are small."""
import math

import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        step_size = lr / (1 - beta1 ** own["t"])
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-step_size)


# %% right: numpy_state
"""Keeps the moments as numpy arrays and computes in numpy, in slices, with preallocated scratch."""
import numpy as np


def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    size = 20_000
    for k in range(len(params)):
        if grads[k] is None:
            continue
        p, g = params[k].detach().numpy(), grads[k].numpy()
        if k not in state:
            state[k] = {"m": np.zeros(p.shape, p.dtype), "v": np.zeros(p.shape, p.dtype), "t": 0}
        s = state[k]
        s["t"] += 1
        scratch = np.empty(size, p.dtype)
        square = np.empty(size, p.dtype)
        lines = [()] if p.ndim < 2 else list(np.ndindex(p.shape[:-1]))
        for line in lines:
            pl, gl, ml, vl = p[line], g[line], s["m"][line], s["v"][line]
            for a in range(0, pl.shape[0], size):
                b = min(a + size, pl.shape[0])
                x, y = scratch[: b - a], square[: b - a]
                ml[a:b] *= betas[0]
                np.multiply(gl[a:b], 1 - betas[0], out=x)
                ml[a:b] += x
                np.multiply(gl[a:b], gl[a:b], out=x)
                x *= 1 - betas[1]
                vl[a:b] *= betas[1]
                vl[a:b] += x
                np.divide(vl[a:b], 1 - betas[1] ** s["t"], out=y)
                np.sqrt(y, out=y)
                y += eps
                np.divide(ml[a:b], y, out=x)
                x *= lr / (1 - betas[0] ** s["t"])
                pl[a:b] -= x


# %% right: row_by_row
"""Takes a tensor's rows one by one, however short, and cuts the long ones."""
import torch

MOST = 10_000


def runs_of(tensor):
    if tensor.ndim > 1:
        for row in tensor:
            yield from runs_of(row)
    elif tensor.ndim == 1:
        yield from tensor.split(MOST)
    else:
        yield tensor


def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        for i, (param, grad) in enumerate(zip(params, grads)):
            if grad is None:
                continue
            if i not in state:
                state[i] = [0, torch.zeros_like(param), torch.zeros_like(param)]
            state[i][0] += 1
            t, m_all, v_all = state[i]
            for p, g, m, v in zip(*map(runs_of, (param, grad, m_all, v_all))):
                m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
                v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
                root = v.div(1 - betas[1] ** t).sqrt_().add_(eps)
                p.sub_(m.div(1 - betas[0] ** t).div_(root).mul_(lr))


# %% wrong: does_nothing
"""Takes no memory, for it does nothing."""
import math

import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        step_size = lr / (1 - beta1 ** own["t"])
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            pass


# %% wrong: eps_inside_the_root
"""Lean, with eps under the root."""
import math

import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        step_size = lr / (1 - beta1 ** own["t"])
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.addcdiv_(m, (v / root**2).add_(eps).sqrt_(), value=-step_size)


# %% wrong: hidden_in_globals
"""Parks a copy of the parameters as Python bytes. [earns 2]"""
import math

import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


parked = {}


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        parked[i] = param.detach().numpy().tobytes()
        step_size = lr / (1 - beta1 ** own["t"])
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-step_size)


# %% wrong: in_a_thread
"""Computes whole tensors in a thread of its own, where the meter does not look."""
import threading

import torch


def update(params, grads, state, lr, betas, eps):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            if i not in state:
                state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
            s = state[i]
            s["t"] += 1
            s["m"].mul_(betas[0]).add_(g, alpha=1 - betas[0])
            s["v"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
            root = (s["v"] / (1 - betas[1] ** s["t"])).sqrt().add_(eps)
            p.sub_(lr / (1 - betas[0] ** s["t"]) * s["m"] / root)


def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    thread = threading.Thread(target=update, args=(params, grads, state, lr, betas, eps))
    thread.start()
    thread.join()


# %% wrong: keeps_too_much
"""Keeps a copy of the last gradients in a global. [earns 2]"""
import math

import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


last = {}


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        last[i] = grad.clone()
        step_size = lr / (1 - beta1 ** own["t"])
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-step_size)


# %% wrong: large_pieces
"""Pieces of two million values: no pieces at all. [earns 2]"""
import math

import torch


def pieces(tensor, most=2**21):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        step_size = lr / (1 - beta1 ** own["t"])
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-step_size)


# %% wrong: no_bias_correction
"""Lean, and not Adam."""
import math

import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        step_size = lr
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.addcdiv_(m, v.sqrt().add_(eps), value=-step_size)


# %% wrong: whole_rows
"""Works row by row, and a row can be as large as it likes. [earns 2]"""
import math

import torch


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        small = 10_000
        lines = zip(*(x.split(small) if p.ndim == 1 else x for x in (p, g, s["m"], s["v"])))
        for pr, gr, mr, vr in lines:
            mr.mul_(betas[0]).add_(gr, alpha=1 - betas[0])
            vr.mul_(betas[1]).addcmul_(gr, gr, value=1 - betas[1])
            root = vr.sqrt().div_(math.sqrt(1 - betas[1] ** s["t"])).add_(eps)
            pr.addcdiv_(mr, root, value=-lr / (1 - betas[0] ** s["t"]))


# %% wrong: whole_tensors
"""In place, but every intermediate value is as large as its tensor. [earns 2]"""
import math

import torch


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        s["m"].mul_(betas[0]).add_(g, alpha=1 - betas[0])
        s["v"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
        root = (s["v"] / (1 - betas[1] ** s["t"])).sqrt().add_(eps)
        p.addcdiv_(s["m"], root, value=-lr / (1 - betas[0] ** s["t"]))


# %% wrong: wide_moments
"""The moments are float64 whatever the parameters are. [earns 2]"""
import math

import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros(param.shape, dtype=torch.float64), "v": torch.zeros(param.shape, dtype=torch.float64)}
        own = state[i]
        own["t"] += 1
        step_size = lr / (1 - beta1 ** own["t"])
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-step_size)


# %% right: root_kept
"""No temporary at all: the state keeps the root of the second moment, in place of the denominator."""
import math

import torch


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for p, g in zip(params, grads):
        if g is None:
            continue
        if p not in state:
            state[p] = [0, torch.zeros_like(p), torch.zeros_like(p)]
        state[p][0] += 1
        t, m, r = state[p]
        m.lerp_(g, 1 - betas[0])
        r.mul_(r).mul_(betas[1]).addcmul_(g, g, value=1 - betas[1]).sqrt_()
        correction = math.sqrt(1 - betas[1] ** t)
        r.div_(correction).add_(eps)
        p.addcdiv_(m, r, value=-lr / (1 - betas[0] ** t))
        r.sub_(eps).mul_(correction)


# %% right: numpy_tensors
"""Moments are tensors of numpy's memory, computed on in numpy by pieces."""
import numpy as np
import torch


def pieces(array, most=2**15):
    if array.size <= most:
        return [array]
    halves = np.array_split(array, 2, axis=int(np.argmax(array.shape)))
    return [piece for half in halves for piece in pieces(half, most)]


def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        values = param.detach().numpy()
        if i not in state:
            state[i] = [0, *(torch.from_numpy(np.zeros_like(values)) for _ in "mv")]
        state[i][0] += 1
        t, m, v = state[i]
        for p, g, m, v in zip(*map(pieces, (values, grad.numpy(), m.numpy(), v.numpy()))):
            m += (1 - betas[0]) * (g - m)
            v += (1 - betas[1]) * (g * g - v)
            p -= lr / (1 - betas[0] ** t) * m / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


# %% wrong: uneven_pieces
"""Each piece takes the first value of the next one along. [earns 2]"""
import math

import torch


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        root = math.sqrt(1 - betas[1] ** own["t"])
        rows = [(param, grad, own["m"], own["v"])]
        while rows[0][0].dim() > 1:
            rows = [parts for row in rows for parts in zip(*row)]
        for row in rows:
            for start in range(0, len(row[0]), 2**15):
                p, g, m, v = (x[start : start + 2**15 + 1] for x in row)
                m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
                v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
                p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-lr / (1 - betas[0] ** own["t"]))


# %% wrong: scratch_kept
"""A scratch of 512 KiB, made at the first large tensor, stays in a global. [earns 2]"""
import math

import torch

SCRATCH = {}


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        root = math.sqrt(1 - betas[1] ** own["t"])
        rows = [(param, grad, own["m"], own["v"])]
        while rows[0][0].dim() > 1:
            rows = [parts for row in rows for parts in zip(*row)]
        for row in rows:
            for start in range(0, len(row[0]), 2**15):
                p, g, m, v = (x[start : start + 2**15] for x in row)
                m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
                v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
                if len(p) == 2**15 and p.dtype not in SCRATCH:
                    SCRATCH[p.dtype] = torch.empty(2**17, dtype=p.dtype)
                p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-lr / (1 - betas[0] ** own["t"]))


# %% wrong: eps_before_the_correction
"""Lean, with eps added to the root before that is corrected. [earns 0]"""
import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half)


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = [0, torch.zeros_like(param), torch.zeros_like(param)]
        state[i][0] += 1
        t, first, second = state[i]
        for p, g, m, v in zip(*map(pieces, (param, grad, first, second))):
            m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
            v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
            root = v.sqrt().add_(eps).div_((1 - betas[1] ** t) ** 0.5)
            p.addcdiv_(m, root, value=-lr / (1 - betas[0] ** t))


# %% wrong: gradients_left_off
"""Lean, and leaves gradients switched off. [earns 2]"""
import math

import torch


def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    torch.set_grad_enabled(False)
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        if grad is None:
            continue
        if i not in state:
            state[i] = [0, torch.zeros_like(param), torch.zeros_like(param)]
        state[i][0] += 1
        t, *moments = state[i]
        pieces = [(param, grad, *moments)]
        while pieces:
            p, g, m, v = pieces.pop()
            if p.numel() > 2**15:
                dim = max(range(p.ndim), key=lambda dim: p.shape[dim])
                halves = [tensor.tensor_split(2, dim=dim) for tensor in (p, g, m, v)]
                pieces += zip(*halves, strict=True)
                continue
            m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
            v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
            root = v.sqrt().div_(math.sqrt(1 - betas[1] ** t)).add_(eps)
            p.addcdiv_(m, root, value=-lr / (1 - betas[0] ** t))


# %% wrong: fused_by_data
"""torch's fused operator, under a name from data. [earns 0]"""
from functools import reduce

import torch


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    fused = reduce(getattr, ["_".join(["", *"fused adam".split(), ""])], torch)
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = *(torch.zeros(p.shape, dtype=p.dtype) for _ in range(2)), torch.zeros(())
        m, v, step = state[i]
        step += 1
        own, given = p.contiguous(), g.contiguous()
        options = {"beta1": betas[0], "beta2": betas[1], "weight_decay": 0.0, "eps": eps}
        fused([own], [given], [m], [v], [], [step], lr=lr, **options, amsgrad=False, maximize=False)
        if own is not p:
            p.copy_(own)

# %% right: numpy_out
"""In numpy with out=, on the tensors' memory."""


import numpy as np
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = [0, torch.zeros_like(g), torch.zeros_like(g)]
        state[i][0] += 1
        t, m, v = state[i]
        for a, b, c, d in zip(*(pieces(x.detach()) for x in (p, g, m, v))):
            a, b, c, d = a.numpy(), b.numpy(), c.numpy(), d.numpy()
            c *= b1
            c += (1 - b1) * b
            d *= b2
            d += (1 - b2) * np.square(b)
            w = np.sqrt(d / (1 - b2**t))
            w += eps
            np.divide(c, w, out=w)
            w *= lr / (1 - b1**t)
            a -= w
