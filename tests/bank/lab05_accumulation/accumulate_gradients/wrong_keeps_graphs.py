"""Adds up the losses, and calls backward once. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        total = total + loss_fn(model(x), y) * len(x) / len(inputs)
    total.backward()
    return total.item()
