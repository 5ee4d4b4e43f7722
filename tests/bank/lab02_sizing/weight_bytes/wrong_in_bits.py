"""Forgets to divide by 8."""
BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    if dtype not in BITS:
        raise ValueError(dtype)
    return n_params * BITS[dtype]
