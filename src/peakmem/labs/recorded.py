"""Figures recorded on an H200, which the GPU exercises show on a machine without a GPU."""

from __future__ import annotations

__all__ = ["print_checkpoints", "print_copies", "print_products"]

DEVICE = "NVIDIA H200"
#: Copies to the GPU, in GB/s.
COPIES = {"pinned": 54.9, "pageable": 19.9}
#: Products of two 8192 x 8192 matrices, in Tflop/s.
PRODUCTS = {"float32": 50.9, "tf32": 408.4, "bfloat16": 762.0}
#: A training step by its segments, in ms and MiB at the peak.
CHECKPOINTS = {
    "keep all": (134.1, 8394),
    "segments of 3": (171.7, 3446),
    "each block alone": (166.0, 2516),
}


def print_copies() -> None:
    """Print how fast copies to the GPU were from pinned and from pageable memory."""
    print(f"Recorded on an {DEVICE}, in GB/s to the GPU:")
    for memory, rate in COPIES.items():
        print(f"{memory:9} {rate:5.1f}")
    print(f"Pinned copies are {COPIES['pinned'] / COPIES['pageable']:.1f} times as fast.")


def print_products() -> None:
    """Print how fast a large product was in three precisions, each beside float32."""
    print(f"Recorded on an {DEVICE}, two 8192 x 8192 matrices:")
    for name, rate in PRODUCTS.items():
        print(f"{name:9} {rate:6.1f} Tflop/s, {rate / PRODUCTS['float32']:4.1f} x")


def print_checkpoints() -> None:
    """Print the time and the peak of a training step with and without checkpoints."""
    print(f"Recorded on an {DEVICE}, a training step of a GPT with 12 blocks:")
    most = CHECKPOINTS["keep all"][0]
    for name, (ms, mib) in CHECKPOINTS.items():
        print(f"{name:16} {ms:6.1f} ms ({ms / most - 1:+4.0%}), {mib:,} MiB at the peak")
