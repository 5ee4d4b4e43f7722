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
