"""Match, one product an op."""
def activation_elements(op, **dims):
    match op:
        case "conv2d":
            return dims["bs"] * dims["nc"] * dims["wo"] * dims["ho"]
        case "linear":
            return dims["bs"] * dims["m"] * dims["p"]
        case "transformer":
            return dims["bs"] * dims["seq_len"] * dims["h"]
    raise ValueError(op)
