"""Accelerators as data: memory, bandwidths and arithmetic rates, each row with its source.

Figures are those of the data sheets. Three conventions make them comparable:

- Memory is the data sheet's number in GB of 10^9 bytes. A board has a little more (an "80 GB" A100
  reports 80 GiB), and the driver and the CUDA context take some of it, so this is the careful end.
- Arithmetic rates are dense. Data sheets since the A100 also print rates "with sparsity", which are
  twice as high and hold only for matrices with two zeros in every four numbers.
- Links count one direction. Data sheets print both directions added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from peakmem.units import GB

__all__ = ["ACCELERATORS", "Accelerator", "accelerator"]

_PCIE3, _PCIE4, _PCIE5 = 16 * GB, 32 * GB, 64 * GB  # 16 lanes, one direction

_V100 = "NVIDIA V100 data sheet (January 2020), SXM2 column"
_A100 = "NVIDIA A100 data sheet (June 2021)"
_H100 = "NVIDIA H100 data sheet and Hopper architecture white paper (2022), sparse rates halved"
_H200 = "NVIDIA H200 data sheet (2023), sparse rates halved"
_GA102 = "NVIDIA Ampere GA102 architecture white paper (2020), FP32 accumulation"
_AD102 = "NVIDIA Ada architecture white paper (2022), FP32 accumulation"
_L4 = "NVIDIA L4 data sheet (2023), sparse rates halved"


@dataclass(frozen=True)
class Accelerator:
    """One device of one kind.

    Attributes:
        name: its key in ACCELERATORS.
        memory_bytes: device memory.
        bandwidth_bytes_per_s: between the processor and its memory.
        host_link_bytes_per_s: to the host's memory, one direction.
        peer_link_bytes_per_s: to another such device, one direction; equal to the host's link
            where there is no NVLink.
        tflops: dense 10^12 operations a second by format: fp32, tf32, bf16, fp16, fp8. A format
            that the device has no fast arithmetic for is absent.
        source: where the figures are printed.
    """

    name: str
    memory_bytes: int
    bandwidth_bytes_per_s: int
    host_link_bytes_per_s: int
    peer_link_bytes_per_s: int
    tflops: Mapping[str, float]
    source: str

    def flops_per_s(self, fmt: str) -> float:
        """Return dense operations a second in a format; ValueError where it has none.

        >>> accelerator("a100-80gb").flops_per_s("bf16")
        312000000000000.0
        """
        if fmt not in self.tflops:
            raise ValueError(
                f"{self.name} has no rate for {fmt!r}; it has {', '.join(self.tflops)}"
            )
        return self.tflops[fmt] * 1e12


_V100_TFLOPS = {"fp32": 15.7, "fp16": 125.0}
_A100_TFLOPS = {"fp32": 19.5, "tf32": 156.0, "bf16": 312.0, "fp16": 312.0}
_H100_TFLOPS = {"fp32": 66.9, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9}
_H100_PCIE_TFLOPS = {"fp32": 51.0, "tf32": 378.0, "bf16": 756.0, "fp16": 756.0, "fp8": 1513.0}
_3080_TFLOPS = {"fp32": 29.8, "tf32": 29.8, "bf16": 59.5, "fp16": 59.5}
_3090_TFLOPS = {"fp32": 35.6, "tf32": 35.6, "bf16": 71.0, "fp16": 71.0}
_4090_TFLOPS = {"fp32": 82.6, "tf32": 82.6, "bf16": 165.2, "fp16": 165.2, "fp8": 330.3}
_L4_TFLOPS = {"fp32": 30.3, "tf32": 60.0, "bf16": 121.0, "fp16": 121.0, "fp8": 242.0}

_ROWS = (
    #            name, memory, bandwidth, host link, peer link, rates, source
    Accelerator("v100-16gb", 16 * GB, 900 * GB, _PCIE3, 150 * GB, _V100_TFLOPS, _V100),
    Accelerator("v100-32gb", 32 * GB, 900 * GB, _PCIE3, 150 * GB, _V100_TFLOPS, _V100),
    Accelerator("a100-40gb", 40 * GB, 1555 * GB, _PCIE4, 300 * GB, _A100_TFLOPS, _A100),
    Accelerator("a100-80gb", 80 * GB, 2039 * GB, _PCIE4, 300 * GB, _A100_TFLOPS, _A100),
    Accelerator("a100-40gb-pcie", 40 * GB, 1555 * GB, _PCIE4, 300 * GB, _A100_TFLOPS, _A100),
    Accelerator("a100-80gb-pcie", 80 * GB, 1935 * GB, _PCIE4, 300 * GB, _A100_TFLOPS, _A100),
    Accelerator("h100-80gb", 80 * GB, 3350 * GB, _PCIE5, 450 * GB, _H100_TFLOPS, _H100),
    Accelerator("h100-80gb-pcie", 80 * GB, 2000 * GB, _PCIE5, 300 * GB, _H100_PCIE_TFLOPS, _H100),
    Accelerator("h200-141gb", 141 * GB, 4800 * GB, _PCIE5, 450 * GB, _H100_TFLOPS, _H200),
    Accelerator("rtx3080-10gb", 10 * GB, 760 * GB, _PCIE4, _PCIE4, _3080_TFLOPS, _GA102),
    Accelerator("rtx3090-24gb", 24 * GB, 936 * GB, _PCIE4, 56 * GB, _3090_TFLOPS, _GA102),
    Accelerator("rtx4090-24gb", 24 * GB, 1008 * GB, _PCIE4, _PCIE4, _4090_TFLOPS, _AD102),
    Accelerator("l4-24gb", 24 * GB, 300 * GB, _PCIE4, _PCIE4, _L4_TFLOPS, _L4),
)

ACCELERATORS: Mapping[str, Accelerator] = MappingProxyType({row.name: row for row in _ROWS})


def accelerator(name: str) -> Accelerator:
    """Return the accelerator of that name; ValueError, with the names there are, for another.

    SXM boards where the name does not say PCIe.

    >>> accelerator("h200-141gb").memory_bytes
    141000000000
    """
    if name not in ACCELERATORS:
        raise ValueError(f"unknown accelerator {name!r}; known are {', '.join(ACCELERATORS)}")
    return ACCELERATORS[name]
