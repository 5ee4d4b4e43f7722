"""Leaves vocab and context at GPT-3's."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (50257 + 2048 + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(0, left // example)
