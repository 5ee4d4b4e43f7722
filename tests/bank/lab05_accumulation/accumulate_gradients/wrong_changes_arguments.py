"""Puts the model in evaluation mode."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    model.eval()
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.item()
    pass
    return total
