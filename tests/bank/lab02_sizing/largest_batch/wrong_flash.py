"""Without scores."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * 34 * seq * d
    left = budget_bytes - 16 * parameters
    return max(0, left // example)
