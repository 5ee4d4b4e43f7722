"""Equal pieces by chunk, the loss as a numpy number."""
import math

import numpy as np


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    k = math.ceil(len(inputs) / micro_batch)
    losses = np.zeros(k)
    pieces = zip(inputs.tensor_split(k), targets.tensor_split(k))
    for i, (x, y) in enumerate(pieces):
        loss = loss_fn(model(x), y) * x.shape[0] / inputs.shape[0]
        losses[i] = loss.detach().numpy()
        loss.backward()
    return losses.sum()
