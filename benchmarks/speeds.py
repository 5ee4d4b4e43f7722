"""How fast a device computes and copies: products in each format, and the link to the host."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from benchmarks.figures import Figure, NotRun

__all__ = ["copy_overlap", "fp8_product", "host_bandwidth", "products", "seconds_of", "wait"]

_FORMATS = (
    ("fp32", torch.float32, False),
    ("tf32", torch.float32, True),
    ("fp16", torch.float16, False),
    ("bf16", torch.bfloat16, False),
)
_FP8_CAPABILITY = (8, 9)  # Ada; Hopper is (9, 0)
_OVERLAP = 1.15  # times the longer of compute and copy


def products(device: torch.device) -> list[Figure]:
    """Time square products in each format."""
    on_gpu = device.type == "cuda"
    n = 8192 if on_gpu else 256
    rates = {}
    for name, dtype, tf32 in _FORMATS if on_gpu else _FORMATS[:1]:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
        seconds = seconds_of(lambda a=a, b=b: a @ b, device)  # type: ignore[misc]
        rates[name] = 2 * n**3 / seconds / 1e12
    torch.backends.cuda.matmul.allow_tf32 = False
    figures = [Figure(f"{name}, {n}x{n}", rate, "TFLOP/s") for name, rate in rates.items()]
    if on_gpu:  # the minimum for GPUs since 2020
        figures.append(Figure("bf16 over fp32", rates["bf16"] / rates["fp32"], "x", least=1.5))
    return figures


def fp8_product(device: torch.device) -> list[Figure]:
    """Time a square product of E4M3 numbers, if the device supports it."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < _FP8_CAPABILITY:
        raise NotRun("products in fp8 need a GPU of compute capability 8.9 (Ada, Hopper) or above")
    if not hasattr(torch, "_scaled_mm"):
        raise NotRun("this torch has no torch._scaled_mm")
    n = 8192
    a, b = (torch.randn(n, n, device=device).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device=device)
    low = seconds_of(
        lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16),
        device,
    )
    x, y = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    half = seconds_of(lambda: x @ y, device)
    return [
        Figure(f"fp8, {n}x{n}", 2 * n**3 / low / 1e12, "TFLOP/s"),
        Figure("fp8 over bf16", half / low, "x", least=1.1),
    ]


def host_bandwidth(device: torch.device) -> list[Figure]:
    """Time copies from the host and back, with pinned and pageable memory."""
    if device.type != "cuda":
        raise NotRun("there is no link from the host to itself")
    n_bytes = 2**28
    there = torch.empty(n_bytes, dtype=torch.uint8, device=device)
    rates = {}
    for kind in ("pinned", "pageable"):
        host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=kind == "pinned")
        rates[f"{kind}, to the GPU"] = _rate(lambda h=host: there.copy_(h), n_bytes, device)  # type: ignore[misc]
        rates[f"{kind}, to the host"] = _rate(lambda h=host: h.copy_(there), n_bytes, device)  # type: ignore[misc]
    figures = [Figure(name, rate, "GB/s") for name, rate in rates.items()]
    ratio = rates["pinned, to the GPU"] / rates["pageable, to the GPU"]
    return [*figures, Figure("pinned over pageable", ratio, "x", least=1.0)]


def copy_overlap(device: torch.device) -> list[Figure]:
    """Copy to pinned memory on a separate stream while products run; compare with each alone."""
    if device.type != "cuda":
        raise NotRun("streams need CUDA")
    n, side = 4096, torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    x = torch.randn(n, n, device=device)
    there = torch.empty(2**28, dtype=torch.uint8, device=device)
    host = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)

    def compute() -> None:
        for _ in range(8):
            x @ x

    def copy() -> None:
        with torch.cuda.stream(side):
            host.copy_(there, non_blocking=True)

    def both() -> None:
        copy()
        compute()

    alone = {"compute": seconds_of(compute, device), "copy": seconds_of(copy, device)}
    together = seconds_of(both, device)
    figures = [Figure(name, 1000 * seconds, "ms") for name, seconds in alone.items()]
    ratio = together / max(alone.values())
    return [*figures, Figure("both over the longer", ratio, "x", most=_OVERLAP)]


def _rate(copy: Callable[[], object], n_bytes: int, device: torch.device) -> float:
    return n_bytes / seconds_of(copy, device) / 1e9


def seconds_of(call: Callable[[], object], device: torch.device, repeats: int = 10) -> float:
    """Return the best time of several calls, after two warm-up calls."""
    best = float("inf")
    for number in range(repeats + 2):
        wait(device)
        begin = time.perf_counter()
        call()
        wait(device)
        if number >= 2:
            best = min(best, time.perf_counter() - begin)
    return best


def wait(device: torch.device) -> None:
    """Wait for the device to finish its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
