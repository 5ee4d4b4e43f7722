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
