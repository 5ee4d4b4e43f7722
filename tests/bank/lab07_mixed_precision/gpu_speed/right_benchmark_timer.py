"""torch.utils.benchmark, which warms up and synchronizes by itself."""

import torch
from torch.utils.benchmark import Timer


def speedup() -> dict[str, float]:
    def seconds(dtype):
        x = torch.randn(8192, 8192, device="cuda").to(dtype)
        w = torch.randn(8192, 8192, device="cuda").to(dtype)
        return Timer("x @ w", globals={"x": x, "w": w}).timeit(5).median

    torch.set_float32_matmul_precision("highest")
    result = {
        "float32": seconds(torch.float32),
        "float16": seconds(torch.float16),
        "bfloat16": seconds(torch.bfloat16),
    }
    torch.set_float32_matmul_precision("high")
    result["tf32"] = seconds(torch.float32)
    torch.set_float32_matmul_precision("highest")
    return result
