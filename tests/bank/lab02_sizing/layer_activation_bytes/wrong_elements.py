"""Counts numbers and not bytes."""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 6 * sbh + standard * 3 * pairs, "mlp": 10 * sbh, "layer_norms": 2 * sbh}
