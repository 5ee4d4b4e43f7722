"""Evaluates, and puts the mode back."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    mode = model.training
    model.train(not mode)
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    model.train(mode)
    return total
