"""Hooks around attention that store numbers and build the tensors again."""

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


def recompute_attention_only(block, x):
    def branch(y):
        return block.attention(block.norm1(y))

    x = x + checkpoint(branch, x)
    return x + block.mlp(block.norm2(x))
