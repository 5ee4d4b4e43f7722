"""Makes a step of its own."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.item()
    for p in model.parameters():
        p.data -= 0.1 * p.grad
    return total
