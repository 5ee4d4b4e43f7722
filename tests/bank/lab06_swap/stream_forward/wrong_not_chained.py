"""Every layer gets the first input. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    y = x
    for host_layer in host_layers:
        y = host_layer.load()(x)
    return y
