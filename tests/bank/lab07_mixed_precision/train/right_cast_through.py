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
