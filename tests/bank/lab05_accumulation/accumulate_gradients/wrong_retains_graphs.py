"""Keeps the losses in a list, with graphs retained. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    losses = []
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward(retain_graph=True)
        losses.append(loss)
        pass
    total = sum(loss.item() for loss in losses)
    return total
