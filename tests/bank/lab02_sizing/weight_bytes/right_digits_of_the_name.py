"""Reads the bits off the end of the name."""
import re


def weight_bytes(n_params: int, dtype: str) -> int:
    if dtype not in ("fp64", "fp32", "fp16", "bf16", "fp8", "int8", "int4"):
        raise ValueError(f"unknown dtype {dtype!r}")
    bits = int(re.search(r"\d+", dtype)[0])
    whole, rest = divmod(n_params * bits, 8)
    return whole + bool(rest)
