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
