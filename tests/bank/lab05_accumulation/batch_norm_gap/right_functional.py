"""Calls the model on copies of its buffers; a numpy number."""
import torch
from torch.func import functional_call


def batch_norm_gap(model, x, micro_batch):
    modes = [(module, module.training) for module in model.modules()]
    model.train()
    buffers = lambda: {name: b.clone() for name, b in model.named_buffers()}
    whole = functional_call(model, buffers(), (x,)).detach().numpy()
    parts = [functional_call(model, buffers(), (p,)).detach().numpy() for p in x.split(micro_batch)]
    for module, mode in modes:
        module.training = mode
    start, largest = 0, 0.0
    for part in parts:
        largest = max(largest, abs(part - whole[start : start + len(part)]).max())
        start += len(part)
    return largest
