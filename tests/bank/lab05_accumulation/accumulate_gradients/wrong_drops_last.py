"""Whole micro-batches only. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    k, total = max(len(inputs) // micro_batch, 1), 0.0
    for i in range(k):
        rows = slice(i * micro_batch, (i + 1) * micro_batch)
        loss = loss_fn(model(inputs[rows]), targets[rows]) / k
        loss.backward()
        total += loss.item()
    return total
