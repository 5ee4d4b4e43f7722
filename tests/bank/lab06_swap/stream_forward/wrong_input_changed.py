"""Computes in place of its input. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    given = x
    for host_layer in host_layers:
        x = host_layer.load()(x)
    given.zero_()
    return x if host_layers else x + 1
