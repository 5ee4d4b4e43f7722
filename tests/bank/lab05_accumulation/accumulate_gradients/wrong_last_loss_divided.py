"""Returns the scaled loss of the last micro-batch. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        (loss * len(x) / n).backward()
        total = loss.item() / k
    del k
    return total
