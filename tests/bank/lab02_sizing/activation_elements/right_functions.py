"""A function for each op, called with the dimensions by name."""
OPS = {
    "conv2d": lambda bs, nc, wo, ho: bs * nc * wo * ho,
    "linear": lambda bs, m, n, p: bs * m * p,
    "transformer": lambda bs, seq_len, h: bs * seq_len * h,
}


def activation_elements(op: str, **dims: int) -> int:
    if op not in OPS:
        raise ValueError(f"unknown op {op}")
    return OPS[op](**dims)
