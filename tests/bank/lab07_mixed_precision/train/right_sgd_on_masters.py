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
