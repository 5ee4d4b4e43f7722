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
