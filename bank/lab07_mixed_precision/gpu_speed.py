# %% right: benchmark_timer
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


# %% right: clock
"""Python's clock with a synchronize on both sides; the fastest of five."""

import time

import torch


def _time(dtype):
    x, w = torch.randn(2, 8192, 8192, device="cuda").to(dtype)
    best = float("inf")
    for attempt in range(6):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        torch.mm(x, w)
        torch.cuda.synchronize()
        if attempt:
            best = min(best, time.perf_counter() - begin)
    return best


def speedup():
    torch.set_float32_matmul_precision("high")
    tf32 = _time(torch.float32)
    torch.set_float32_matmul_precision("highest")
    return {
        "bfloat16": _time(torch.bfloat16),
        "float16": _time(torch.float16),
        "tf32": tf32,
        "float32": _time(torch.float32),
    }


# %% right: events
"""CUDA events around ten products."""

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
        seconds[name] = start.elapsed_time(end) / 1000 / 10
    torch.set_float32_matmul_precision(before)
    return seconds


# %% wrong: milliseconds
"""Forgets that elapsed_time returns milliseconds."""

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
        seconds[name] = start.elapsed_time(end) / 10
    torch.set_float32_matmul_precision(before)
    return seconds


# %% wrong: not_synchronized
"""Reads the clock while the GPU still works."""

import time

import torch


def _time(dtype):
    x, w = torch.randn(2, 8192, 8192, device="cuda").to(dtype)
    best = float("inf")
    for attempt in range(6):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        torch.mm(x, w)
        if attempt:
            best = min(best, time.perf_counter() - begin)
    return best


def speedup():
    torch.set_float32_matmul_precision("high")
    tf32 = _time(torch.float32)
    torch.set_float32_matmul_precision("highest")
    return {
        "bfloat16": _time(torch.bfloat16),
        "float16": _time(torch.float16),
        "tf32": tf32,
        "float32": _time(torch.float32),
    }


# %% wrong: returns_speedups
"""Returns how many times faster than float32."""

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
        seconds[name] = start.elapsed_time(end) / 1000 / 10
    torch.set_float32_matmul_precision(before)
    return {name: seconds["float32"] / s for name, s in seconds.items()}


# %% wrong: sum_of_repeats
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


# %% wrong: tf32_left_on
"""Switches TF32 on before float32 is timed."""

import torch


def speedup() -> dict[str, float]:
    seconds = {}
    settings = [
        ("float32", torch.float32, "high"),
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
        seconds[name] = start.elapsed_time(end) / 1000 / 10
    torch.set_float32_matmul_precision(before)
    return seconds


# %% wrong: tf32_never_on
"""Never switches TF32 on."""

import torch


def speedup() -> dict[str, float]:
    seconds = {}
    settings = [
        ("float32", torch.float32, "highest"),
        ("tf32", torch.float32, "highest"),
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
        seconds[name] = start.elapsed_time(end) / 1000 / 10
    torch.set_float32_matmul_precision(before)
    return seconds


# %% wrong: three_keys
"""Leaves TF32 out."""

import torch


def speedup() -> dict[str, float]:
    seconds = {}
    settings = [
        ("float32", torch.float32, "highest"),
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
        seconds[name] = start.elapsed_time(end) / 1000 / 10
    torch.set_float32_matmul_precision(before)
    return seconds


# %% wrong: times_the_setup
"""Makes the matrices on the CPU while the clock runs."""

import time

import torch


def _time(dtype):
    best = float("inf")
    for attempt in range(6):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        x, w = torch.randn(2, 8192, 8192).to("cuda", dtype)
        torch.mm(x, w)
        torch.cuda.synchronize()
        if attempt:
            best = min(best, time.perf_counter() - begin)
    return best


def speedup():
    torch.set_float32_matmul_precision("high")
    tf32 = _time(torch.float32)
    torch.set_float32_matmul_precision("highest")
    return {
        "bfloat16": _time(torch.bfloat16),
        "float16": _time(torch.float16),
        "tf32": tf32,
        "float32": _time(torch.float32),
    }
