"""Adds up the mean gradients."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        loss.backward()
        total += loss.item()
    del k
    return total / -(-n // micro_batch)
