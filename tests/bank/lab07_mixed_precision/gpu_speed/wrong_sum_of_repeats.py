"""Returns the time of all ten products."""

import torch


def speedup() -> dict[str, float]:
    seconds = {}
    settings = [
        ("float32", torch.float32, "highest"),
        ("tf32", torch.float32, "high"),
        ("float16", torch.float16, "highest"),
        ("bfloat16", torch.bfloat16, "highest"),
    ]
    before = torch.get_float32_matmul_precision()
    for name, dtype, precision in settings:
        torch.set_float32_matmul_precision(precision)
        x = torch.randn(8192, 8192, device="cuda", dtype=dtype)
        w = torch.randn(8192, 8192, device="cuda", dtype=dtype)
        x @ w
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(10):
            x @ w
        end.record()
        torch.cuda.synchronize()
        seconds[name] = start.elapsed_time(end) / 1000
    torch.set_float32_matmul_precision(before)
    return seconds
