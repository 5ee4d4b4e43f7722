"""Stops one layer early. [earns 0]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for i in range(len(host_layers) - 1):
        x = host_layers[i].load()(x)
    return x
