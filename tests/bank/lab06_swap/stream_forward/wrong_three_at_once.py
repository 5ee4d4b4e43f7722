"""Keeps two layers while it loads the next. [earns 1]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    before = layer = None
    for host_layer in host_layers:
        following = host_layer.load()
        before, layer = layer, following
        x = layer(x)
    return x
