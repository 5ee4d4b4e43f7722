"""Takes the picture for a square."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["nc"] * d["wo"] * d["wo"]
    if op == "linear":
        return d["bs"] * d["m"] * d["p"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    raise ValueError(op)
