"""Forgets to keep the outputs. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for host_layer in host_layers:
        host_layer.load()(x)
    return x
