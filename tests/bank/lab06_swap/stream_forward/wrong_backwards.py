"""From the last layer to the first. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for host_layer in reversed(host_layers):
        x = host_layer.load()(x)
    return x
