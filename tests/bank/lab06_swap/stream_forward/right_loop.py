"""A loop under no_grad."""
import torch


def stream_forward(host_layers, x):
    with torch.no_grad():
        for host_layer in host_layers:
            layer = host_layer.load()
            x = layer(x)
            del layer
    return x
