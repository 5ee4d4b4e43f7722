"""A mean of means. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) / k
        loss.backward()
        total += loss.item()
    del k
    return total
