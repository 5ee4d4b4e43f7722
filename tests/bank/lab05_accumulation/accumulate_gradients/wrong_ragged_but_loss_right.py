"""Gradients by 1/K, the loss by shares. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        (loss / k).backward()
        total += loss.item() * len(x) / n
    del k
    return total
