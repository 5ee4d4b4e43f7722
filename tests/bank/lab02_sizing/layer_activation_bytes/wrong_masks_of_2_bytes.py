"""Masks as wide as what they mask. [earns 1]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 12 * sbh + standard * 6 * pairs, "mlp": 20 * sbh, "layer_norms": 4 * sbh}
