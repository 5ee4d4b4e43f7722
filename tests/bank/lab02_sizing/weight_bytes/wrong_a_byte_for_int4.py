"""Takes a byte for the least that a number can have."""
BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 1}


def weight_bytes(n_params, dtype):
    if dtype not in BYTES:
        raise ValueError(dtype)
    return n_params * BYTES[dtype]
