"""Calls the keys as torch.finfo does."""


def format_limits(e, m):
    bias = 2 ** (e - 1) - 1
    return {
        "max": (2 - 2.0**-m) * 2.0**bias,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias - m),
        "eps": 2.0**-m,
    }
