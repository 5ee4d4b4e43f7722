"""Autograd keeps every layer's weights. [earns 1]"""
def stream_forward(host_layers, x):
    for host_layer in host_layers:
        x = host_layer.load()(x)
    return x
