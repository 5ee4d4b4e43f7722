"""Puts every layer into the mode of the whole."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    state, mode = copy.deepcopy(model.state_dict()), model.training
    model.train()
    with torch.no_grad():
        whole = model(x)
        largest = 0.0
        for start in range(0, len(x), micro_batch):
            piece = model(x[start : start + micro_batch])
            off = (piece - whole[start : start + micro_batch]).abs().max()
            largest = max(largest, float(off))
    model.load_state_dict(state)
    model.train(mode)
    return largest
