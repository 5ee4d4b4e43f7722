"""All below the smallest positive number counts as flushed."""


def flushed_fraction(grads, dtype, scale):
    smallest = {"float16": 2.0**-24, "bfloat16": 2.0**-133}
    if dtype not in smallest:
        raise ValueError(dtype)
    nonzero = flushed = 0
    for g in grads:
        v = (g[g != 0].double() * scale).abs()
        nonzero += v.numel()
        flushed += int((v < smallest[dtype]).sum())
    return flushed / nonzero if nonzero else 0.0
