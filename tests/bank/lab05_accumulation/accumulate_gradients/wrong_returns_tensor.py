"""Adds up losses that are tensors, detached. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.detach()
    del k
    return total
