# %% right: as_in_the_paper
"""The paper's five lines, on .data; the state is keyed by the parameter itself."""


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for p, g in zip(params, grads):
        if g is not None:
            m, v, t = state.get(p, (0.0, 0.0, 0))
            t = t + 1
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g**2
            m_hat = m / (1 - beta1**t)
            v_hat = v / (1 - beta2**t)
            p.data -= lr * m_hat / (v_hat**0.5 + eps)
            state[p] = (m, v, t)


# %% right: foreach
"""Lists of tensors at once with torch._foreach_, tensor counters, lerp."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        here = [i for i, g in enumerate(grads) if g is not None]
        if not here:
            return
        for i in here:
            if i not in state:
                zero = torch.zeros_like(params[i], requires_grad=False)
                state[i] = [zero, zero.clone(), torch.zeros((), dtype=torch.float64)]
        ps, gs = [params[i] for i in here], [grads[i] for i in here]
        ms, vs, ts = (list(x) for x in zip(*(state[i] for i in here)))
        torch._foreach_add_(ts, 1)
        torch._foreach_lerp_(ms, gs, 1 - betas[0])
        torch._foreach_mul_(vs, betas[1])
        torch._foreach_addcmul_(vs, gs, gs, 1 - betas[1])
        for p, m, v, t in zip(ps, ms, vs, ts):
            p.copy_(p - lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps))


# %% right: in_place
"""In-place operations under no_grad; the state is keyed by position."""
import math

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"step": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        s = state[i]
        s["step"] += 1
        s["m"].mul_(betas[0]).add_(grad, alpha=1 - betas[0])
        s["v"].mul_(betas[1]).addcmul_(grad, grad, value=1 - betas[1])
        denom = (s["v"].sqrt() / math.sqrt(1 - betas[1] ** s["step"])).add_(eps)
        param.addcdiv_(s["m"], denom, value=-lr / (1 - betas[0] ** s["step"]))


# %% right: numpy
"""Moments as numpy arrays, the step count as a numpy integer."""
import numpy as np


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        state["t"] = np.zeros(len(params), dtype=np.int64)
        state["m"] = [np.zeros(tuple(p.shape)) for p in params]
        state["v"] = [np.zeros(tuple(p.shape)) for p in params]
    for k in range(len(params)):
        if grads[k] is None:
            continue
        g, p = grads[k].numpy(), params[k].detach().numpy()
        state["t"][k] += 1
        t = state["t"][k]
        state["m"][k] = betas[0] * state["m"][k] + (1 - betas[0]) * g
        state["v"][k] = betas[1] * state["v"][k] + (1 - betas[1]) * g * g
        p -= lr * (state["m"][k] / (1 - betas[0] ** t)) / (np.sqrt(state["v"][k] / (1 - betas[1] ** t)) + eps)


# %% wrong: betas_swapped
"""Takes the betas in the wrong order. [earns 1]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta2, beta1 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: changes_gradients
"""Squares the gradient in place."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g.square_()
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: corrected_moments_kept
"""Writes the corrected moments back into the state. [earns 1]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] = s["m"] / (1 - beta1**t)
        v_hat = s["v"] = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: count_in_a_tensor
"""A float32 count again, with the corrections drawn into the step's length and the root."""

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    counts = state.setdefault("counts", torch.zeros(len(params)))
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        m, v = state.setdefault(i, (torch.zeros_like(param), torch.zeros_like(param)))
        counts[i] += 1
        m.mul_(beta1).add_(grad, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step_size = lr / (1 - torch.pow(beta1, counts[i]))
        root = (1 - torch.pow(beta2, counts[i])).sqrt()
        param.sub_(step_size * m / (v.sqrt() / root + eps))


# %% wrong: count_from_zero
"""The first step has t = 0."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        state[i] = t + 1, m, v
        p -= lr * m / (1 - beta1**t) / ((v / (1 - beta2**t)).sqrt() + eps)


# %% wrong: count_one_ahead
"""Counts from 2."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 1, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: counts_every_parameter
"""The one step count rises in the loop over the parameters."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        state["t"] = state.get("t", 0) + 1
        t = state["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: eps_before_the_correction
"""Adds eps to the root of the uncorrected second moment. [earns 4]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        p -= lr * m_hat / ((s["v"].sqrt() + eps) / (1 - beta2**t) ** 0.5)


# %% wrong: eps_inside_the_root
"""Adds eps before the root. [earns 4]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat + eps).sqrt()


# %% wrong: first_call_only
"""The step count never rises. [earns 1]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        t = 1
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: flat_copies
"""Flattens with reshape, which copies what is not contiguous."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        p = p.data.reshape(-1)
        g = None if g is None else g.reshape(-1)
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: float32_moments
"""The moments are float32 beside float64 parameters. """
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros(p.shape), "v": torch.zeros(p.shape)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"].mul_(beta1).add_(g, alpha=1 - beta1)
        s["v"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: float32_step_count
"""Keeps the step count as torch does, as a float32 tensor."""

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {
                "step": torch.tensor(0.0),
                "exp_avg": torch.zeros_like(param),
                "exp_avg_sq": torch.zeros_like(param),
            }
        own = state[i]
        own["step"] += 1
        own["exp_avg"].lerp_(grad, 1 - beta1)
        own["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        first = own["exp_avg"] / (1 - beta1 ** own["step"])
        second = own["exp_avg_sq"] / (1 - beta2 ** own["step"])
        param -= lr * first / (second.sqrt() + eps)


# %% wrong: no_bias_correction
"""Leaves the correction of the moments out."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        p -= lr * s["m"] / (s["v"].sqrt() + eps)


# %% wrong: no_grad_forgotten
"""In place without no_grad: torch refuses."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: no_root
"""Divides by the second moment, not by its root."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat + eps)


# %% wrong: none_as_zero
"""Takes None for zeros. [earns 4]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            g = torch.zeros_like(p)
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: not_in_place
"""Makes new tensors and binds them to the loop's name."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p = p - lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: one_count_for_all
"""One step count for all parameters. [earns 4]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        t = state["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: replaces_the_list
"""Puts new parameters into the caller's list."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        params[i] = (p - lr * m_hat / (v_hat.sqrt() + eps)).requires_grad_()


# %% wrong: second_not_squared
"""Averages the gradients' sizes instead of their squares."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g.abs()
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: sign
"""Climbs."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p += lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: starts_anew
"""Gives the names in the loop new values, and the state none. [earns 1]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    if not state:
        state["m"] = [torch.zeros_like(p) for p in params]
        state["v"] = [torch.zeros_like(p) for p in params]
        state["t"] = [0] * len(params)
    for p, g, m, v, t in zip(params, grads, state["m"], state["v"], state["t"]):
        if g is None:
            continue
        t += 1
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        p -= lr * m / (1 - beta1**t) / ((v / (1 - beta2**t)).sqrt() + eps)


# %% wrong: state_by_shape
"""Knows a parameter's state by its shape. [earns 0]"""
import math

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        key = tuple(param.shape)
        if key not in state:
            state[key] = {"step": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        s = state[key]
        s["step"] += 1
        s["m"].mul_(betas[0]).add_(grad, alpha=1 - betas[0])
        s["v"].mul_(betas[1]).addcmul_(grad, grad, value=1 - betas[1])
        denom = (s["v"].sqrt() / math.sqrt(1 - betas[1] ** s["step"])).add_(eps)
        param.addcdiv_(s["m"], denom, value=-lr / (1 - betas[0] ** s["step"]))


# %% wrong: state_outside
"""Keeps the moments in a global. [earns 1]"""
import torch


memory = {}


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if (i, p.shape) not in memory:
            memory[i, p.shape] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = memory[i, p.shape]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: stops_at_none
"""Returns at the first None, and forgets the parameters after it. [earns 4]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            return
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: torch_optim
"""Lets torch do it, by the function that torch.optim.Adam calls."""
import torch
from torch.optim.adam import adam


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    here = [i for i, g in enumerate(grads) if g is not None]
    for i in here:
        if i not in state:
            state[i] = (torch.zeros_like(params[i]), torch.zeros_like(params[i]), torch.tensor(0.0))
    adam([params[i] for i in here], [grads[i] for i in here], [state[i][0] for i in here],
         [state[i][1] for i in here], [], [state[i][2] for i in here], foreach=False, amsgrad=False,
         beta1=betas[0], beta2=betas[1], lr=lr, weight_decay=0.0, eps=eps, maximize=False)


# %% wrong: torch_optim_by_data
"""Lets torch do it, by a class that it finds by a name that no constant holds."""

from functools import reduce

import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if "adam" not in state:
        make = reduce(getattr, "optim Adam".split(), torch)
        state["adam"] = make(params, lr=lr, betas=betas, eps=eps)
    for p, g in zip(params, grads):
        p.grad = g
    state["adam"].step()
    for p in params:
        p.grad = None



# %% wrong: weights_swapped
"""beta weighs the new gradient."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"] = (1 - beta1) * s["m"] + beta1 * g
        s["v"] = (1 - beta2) * s["v"] + beta2 * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: zero_gradient_skipped
"""Leaves a parameter alone whose gradient is 0 everywhere, as if it were None. [earns 4]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None or not g.any():
            continue
        s = state.setdefault(i, {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)})
        s["t"] += 1
        s["m"].lerp_(g, 1 - betas[0])
        s["v"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
        m_hat = s["m"] / (1 - betas[0] ** s["t"])
        v_hat = s["v"] / (1 - betas[1] ** s["t"])
        p.sub_(lr * m_hat / (v_hat.sqrt() + eps))


# %% right: history
"""Keeps all gradients, and averages them anew in each step."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    def mean(beta, values):
        weights = [beta ** (len(values) - 1 - k) for k in range(len(values))]
        return sum(w * x for w, x in zip(weights, values)) / sum(weights)

    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            past = state.setdefault(i, [])
            past.append(g.clone())
            root = mean(betas[1], [x**2 for x in past]) ** 0.5
            p.copy_(p - lr * mean(betas[0], past) / (root + eps))


# %% wrong: on_the_parameter
"""Keeps moments and counts as attributes of the parameters, and leaves `state` empty. [earns 3]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for p, g in zip(params, grads):
        if g is None:
            continue
        if not hasattr(p, "m"):
            p.t, p.m, p.v = 0, torch.zeros_like(p), torch.zeros_like(p)
        p.t += 1
        p.m = betas[0] * p.m + (1 - betas[0]) * g
        p.v = betas[1] * p.v + (1 - betas[1]) * g * g
        p -= lr * (p.m / (1 - betas[0] ** p.t)) / ((p.v / (1 - betas[1] ** p.t)).sqrt() + eps)


# %% wrong: requires_no_gradient
"""Switches the parameters' gradients off, so that it may change them."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        p.requires_grad_(False)
        t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
        t += 1
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        state[i] = t, m, v
        p -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: skips_the_call
"""A None anywhere makes the whole call do nothing. [earns 4]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if any(g is None for g in grads):
        return
    for i, (p, g) in enumerate(zip(params, grads)):
        t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
        t += 1
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        state[i] = t, m, v
        p -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% right: decay_products
"""Remembers beta1**t and beta2**t as products; t itself isn't kept."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        m, v, left1, left2 = state.get(i) or (torch.zeros_like(g), torch.zeros_like(g), 1.0, 1.0)
        left1, left2 = left1 * b1, left2 * b2
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        state[i] = m, v, left1, left2
        with torch.no_grad():
            p.add_(-lr * m / (1 - left1) / ((v / (1 - left2)) ** 0.5 + eps))


# %% right: closure_per_parameter
"""The state holds a closure for each parameter; generators make the moments."""
import torch


def remember(beta):
    total, t = 0.0, 0
    value = None
    while True:
        new = yield value
        t += 1
        total = beta * total + (1 - beta) * new
        value = total / (1 - beta**t)


def started(beta):
    one = remember(beta)
    next(one)
    return one


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            if i not in state:
                state[i] = [started(beta) for beta in betas]
            m_hat, v_hat = state[i][0].send(g), state[i][1].send(g**2)
            p -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: numerator_uncorrected
"""Corrects v and not m."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, 0, 0))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g**2
            state[i] = (t, m, v)
            p -= lr * m / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: state_in_a_default
"""The moments live in a default argument and the count in state. [earns 3]"""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, moments={}):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            state[i] = t = state.get(i, 0) + 1
            m, v = moments.get(p, (0, 0)) if t > 1 else (0, 0)
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g**2
            moments[p] = m, v
            p -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: amsgrad
"""Divides by the largest second moment so far. [earns 4]"""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v, top = state.get(i, (0, 0, 0, torch.zeros_like(g)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g**2
            top = torch.maximum(top, v)
            state[i] = (t, m, v, top)
            p -= lr * (m / (1 - betas[0] ** t)) / ((top / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: clears_the_gradients
"""Puts None into the list of gradients after each step."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, 0, 0))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g**2
            state[i] = (t, m, v)
            p -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)
            grads[i] = None


# %% wrong: count_stays_one
"""Counts in a local variable, and stores the moments only. [earns 1]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        s = state.setdefault(i, {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)})
        t, m, v = s["t"], s["m"], s["v"]
        t += 1
        m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
        v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
        p -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% right: inference_mode
"""From the last parameter to the first, in inference mode; keys are pairs."""
import torch


@torch.inference_mode()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i in reversed(range(len(params))):
        if grads[i] is not None:
            t = state["t", i] = state.get(("t", i), 0) + 1
            for name, beta, new in (("m", betas[0], grads[i]), ("v", betas[1], grads[i] ** 2)):
                state[name, i] = torch.lerp(new, state.get((name, i), torch.zeros_like(new)), beta)
            m, v = (state[name, i] / (1 - b**t) for name, b in zip("mv", betas))
            params[i].addcdiv_(m, v.sqrt_().add_(eps), value=-lr)


# %% right: numpy_views
"""Writes into the parameters through numpy's views of them."""
import numpy as np


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        for key in "mv":
            state[key] = [np.zeros(p.shape, p.detach().numpy().dtype) for p in params]
        state["t"] = np.zeros(len(params), int)
    for i, grad in enumerate(grads):
        if grad is None:
            continue
        state["t"][i] += 1
        t, g = int(state["t"][i]), grad.numpy()
        m, v, p = state["m"][i], state["v"][i], params[i].detach().numpy()
        m += (1 - betas[0]) * (g - m)
        v += (1 - betas[1]) * (g * g - v)
        p -= lr * m / (1 - betas[0] ** t) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


# %% wrong: betas_ignored
"""Has the default betas in its formulas. [earns 2]"""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        m, v, t = state.get(i, (0, 0, 0))
        m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2, t + 1
        state[i] = m, v, t
        p -= lr * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + eps)


# %% wrong: by_the_states_id
"""A global holds the moments, by the id() of the state they belong to. [earns 3]"""
import torch

MOMENTS = {}


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        m, v, t = MOMENTS.get((id(state), i), (0, 0, 0))
        m, v, t = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2, t + 1
        MOMENTS[id(state), i] = m, v, t
        p -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: by_shape_and_strides
"""Knows a parameter's state by its shape and its strides."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for p, g in zip(params, grads):
        if g is None:
            continue
        key = p.shape, p.stride()
        m, v, t = state.get(key, (0, 0, 0))
        m, v, t = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2, t + 1
        state[key] = m, v, t
        p -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: one_second_moment
"""Keeps the mean of a tensor's squared gradients: one number for all its values."""
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        m, v, t = state.get(i, (0, 0, 0))
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g.square().mean()
        t += 1
        state[i] = m, v, t
        p -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: earlier_lr
"""Keeps the first call's options in the state, and goes by them ever after."""

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    lr, (beta1, beta2), eps = state.setdefault("options", (lr, betas, eps))
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        own = state.setdefault(i, [0, torch.zeros_like(param), torch.zeros_like(param)])
        own[0] += 1
        own[1] = beta1 * own[1] + (1 - beta1) * grad
        own[2] = beta2 * own[2] + (1 - beta2) * grad**2
        m_hat, v_hat = own[1] / (1 - beta1 ** own[0]), own[2] / (1 - beta2 ** own[0])
        param -= lr * m_hat / (v_hat.sqrt() + eps)


# %% wrong: first_call_decides
"""Only parameters with a gradient in the first call ever have a state. [earns 4]"""

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    if not state:
        for i, (param, grad) in enumerate(zip(params, grads)):
            if grad is not None:
                state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
    for i, own in state.items():
        if grads[i] is None:
            continue
        own["t"] += 1
        own["m"].mul_(beta1).add_(grads[i], alpha=1 - beta1)
        own["v"].mul_(beta2).addcmul_(grads[i], grads[i], value=1 - beta2)
        root = (own["v"] / (1 - beta2 ** own["t"])).sqrt()
        params[i] -= lr * own["m"] / (1 - beta1 ** own["t"]) / (root + eps)


# %% wrong: gradients_left_off
"""Switches gradients off, and never on again."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    torch.set_grad_enabled(False)
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        if grad is None:
            continue
        t, m, v = state.get(i, (0, 0.0, 0.0))
        t, m, v = t + 1, betas[0] * m + (1 - betas[0]) * grad, betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = t, m, v
        root = (v / (1 - betas[1] ** t)).sqrt()
        param.sub_(lr * (m / (1 - betas[0] ** t)) / (root + eps))


# %% right: grad_mode_restored
"""Switches gradients off, and back to what they were; a named tuple a parameter."""
from typing import NamedTuple

import torch


class Moments(NamedTuple):
    t: int
    m: torch.Tensor
    v: torch.Tensor


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    recorded = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        for i, param in enumerate(params):
            if grads[i] is not None:
                old = state.setdefault(i, Moments(0, torch.zeros_like(param), torch.zeros_like(param)))
                new = Moments(
                    old.t + 1,
                    torch.lerp(grads[i], old.m, betas[0]),
                    torch.lerp(grads[i].square(), old.v, betas[1]),
                )
                state[i] = new
                root = new.v.div(1 - betas[1] ** new.t).sqrt().add(eps)
                param.addcdiv_(new.m, root, value=-lr / (1 - betas[0] ** new.t))
    finally:
        torch.set_grad_enabled(recorded)
