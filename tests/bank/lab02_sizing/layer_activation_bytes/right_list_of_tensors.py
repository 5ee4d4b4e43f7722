"""Lists every tensor with its elements and bytes an element."""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    wide = seq * batch * d_model
    pairs = seq * seq * batch * n_heads
    scores = {"standard": [(pairs, 2), (pairs, 1), (pairs, 2)], "flash": []}
    if attention not in scores:
        raise ValueError("attention is standard or flash")
    kept = {
        "attention": [(wide, 2)] * 5 + [(wide, 1)] + scores[attention],
        "mlp": [(wide, 2), (4 * wide, 2), (4 * wide, 2), (wide, 1)],
        "layer_norms": [(wide, 2), (wide, 2)],
    }
    return {part: sum(n * size for n, size in tensors) for part, tensors in kept.items()}
