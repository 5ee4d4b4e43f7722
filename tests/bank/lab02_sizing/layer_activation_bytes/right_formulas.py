"""The paper's three formulas."""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    s, b, h, a = seq, batch, d_model, n_heads
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    square = 5 * a * s**2 * b * (attention == "standard")
    return {"attention": 11 * s * b * h + square, "mlp": 19 * s * b * h, "layer_norms": 4 * s * b * h}
