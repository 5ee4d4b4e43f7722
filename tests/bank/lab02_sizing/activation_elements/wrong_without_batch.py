"""Counts one example."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["nc"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["m"] * d["p"]
    if op == "transformer":
        return d["seq_len"] * d["h"]
    raise ValueError(op)
