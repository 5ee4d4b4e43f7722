"""4 bytes an element."""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 21 * sbh + standard * 9 * pairs, "mlp": 37 * sbh, "layer_norms": 8 * sbh}
