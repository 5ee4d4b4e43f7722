"""Puts fresh running statistics in place of those that training had left."""
import torch


def batch_norm_gap(model, x, micro_batch):
    training = model.training
    model.train()
    with torch.no_grad():
        whole = model(x)
        pieces = torch.cat([model(piece) for piece in x.split(micro_batch)])
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.reset_running_stats()
    model.train(training)
    return (whole - pieces).abs().max().item()
