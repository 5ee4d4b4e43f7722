"""Loads everything first. [earns 1]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    layers = [host_layer.load() for host_layer in host_layers]
    for layer in layers:
        x = layer(x)
    return x
