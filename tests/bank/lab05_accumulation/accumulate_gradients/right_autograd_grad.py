"""Asks torch.autograd.grad, and adds to .grad itself."""
import torch


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    parameters = [p for p in model.parameters() if p.requires_grad]
    n, total = len(inputs), 0.0
    for x, y in zip(torch.split(inputs, micro_batch), torch.split(targets, micro_batch)):
        loss = loss_fn(model(x), y)
        for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
            g = g * (len(x) / n)
            p.grad = g if p.grad is None else p.grad.add_(g)
        total += loss.item() * len(x) / n
    return total
