"""By recursion: the first piece, and then the rest."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    n = len(inputs)

    def rest(start):
        if start >= n:
            return 0.0
        x, y = inputs[start : start + micro_batch], targets[start : start + micro_batch]
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        value = loss.item()
        del loss
        return value + rest(start + micro_batch)

    return rest(0)
