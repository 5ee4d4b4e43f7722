"""The first segment, and the rest by recursion."""

import torch


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    state = torch.get_rng_state()
    saved = {}
    count = 0

    def pack(tensor):
        nonlocal count
        count += 1
        return count - 1

    def again():
        def keep(tensor):
            saved[len(saved)] = tensor.detach()
            return len(saved) - 1

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        with torch.enable_grad():
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda index: saved[index]):
                fn(*args)
        torch.set_rng_state(now)

    def unpack(index):
        if not saved:
            again()
        return saved[index]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        return fn(*args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    if len(layers) <= segment_length:
        return run(layers, x)
    x = checkpoint(run, layers[:segment_length], x)
    return run_in_segments(layers[segment_length:], x, segment_length)


def run(layers, x):
    for layer in layers:
        x = layer(x)
    return x
