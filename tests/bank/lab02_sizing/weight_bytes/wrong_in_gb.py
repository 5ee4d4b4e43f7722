"""Converts to GB, as the slide prints it."""
BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5}


def weight_bytes(n_params, dtype):
    if dtype not in BYTES:
        raise ValueError(dtype)
    return n_params / 1e9 * BYTES[dtype]
