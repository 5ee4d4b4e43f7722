"""Whatever is unknown is taken for fp32."""
BITS = {"fp64": 64, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def weight_bytes(n_params, dtype):
    return -(-n_params * BITS.get(dtype, 32) // 8)
