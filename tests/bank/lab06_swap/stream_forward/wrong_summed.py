"""Adds up what the layers make of the same input. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    return sum(host_layer.load()(x) for host_layer in host_layers) if host_layers else x
