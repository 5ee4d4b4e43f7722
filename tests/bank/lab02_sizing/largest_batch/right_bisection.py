"""Doubles until it breaks the budget, then bisects."""
def needed(seq, shape, batch):
    d, L = shape.d_model, shape.n_layers
    layer = 4 * d * d + 4 * d + 8 * d * d + 5 * d + 4 * d
    parameters = shape.vocab * d + shape.context * d + L * layer + 2 * d
    return 16 * parameters + L * batch * seq * (34 * d + 5 * shape.n_heads * seq)


def largest_batch(seq, shape, budget_bytes):
    fits, breaks = 0, 1
    while needed(seq, shape, breaks) <= budget_bytes:
        fits, breaks = breaks, 2 * breaks
    while breaks - fits > 1:
        middle = (fits + breaks) // 2
        if needed(seq, shape, middle) <= budget_bytes:
            fits = middle
        else:
            breaks = middle
    return fits
