"""Counts the linear layer's input."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["nc"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["bs"] * d["m"] * d["n"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    raise ValueError(op)
