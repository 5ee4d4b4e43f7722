"""Accelerators as data: memory, bandwidths and arithmetic rates, each row with its source.

Rates and bandwidths come from data sheets; memory is what a tool reports on such a board. Four
conventions make the figures comparable:

- Memory is what the driver offers a program, as `torch.cuda.get_device_properties` or `deviceQuery`
  print it. A board sold with "80 GB" has 80 GiB, of which the driver reserves some: an A100 reports
  79.25 GiB. On boards with GDDR6, ECC bits take another 6 %. Driver releases move the figure by up
  to 1 %. The process's own CUDA context is not subtracted.
- On a Mac, the GPU shares the host's memory, and Metal recommends how much of it a program should
  use: two thirds in these rows, and more on newer systems.
- Arithmetic rates are dense. Since the A100, data sheets also print rates "with sparsity", which
  are twice as high and hold only for matrices with two zeros in every four numbers.
- Links count one direction. Data sheets print the sum of both directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from peakmem.core.errors import named
from peakmem.core.units import GB, GiB, KiB, MiB

__all__ = [
    "ACCELERATORS",
    "BOARDS",
    "Accelerator",
    "Memory",
    "accelerator",
    "smallest_board",
    "unnamed",
]


@dataclass(frozen=True)
class Memory:
    """The device memory that a program can use, and the source of the figure."""

    #: The usable memory.
    bytes: int
    #: The tool that printed the figure and where, or how it was estimated.
    source: str
    #: Whether a tool printed it on such a device; if not, it is an estimate from the data sheet.
    reported: bool = True


@dataclass(frozen=True)
class Accelerator:
    """A model of accelerator; the figures are those of one device."""

    #: Its key in ACCELERATORS; empty for a device that is known by its memory alone.
    name: str
    #: Device memory, with its own source.
    memory: Memory
    #: Between the processor and its memory.
    bandwidth_bytes_per_s: int
    #: To host memory, one direction.
    host_link_bytes_per_s: int
    #: To another such device, one direction, sum of all links; the host's link if there is no
    #: faster one.
    peer_link_bytes_per_s: int
    #: Dense rate by format (fp32, tf32, bf16, fp16, fp8), in 10^12 operations per second. Formats
    #: without fast arithmetic are absent.
    tflops: Mapping[str, float]
    #: Source of all figures except memory.
    source: str
    #: Whether it shares the host's memory, so that offloading has nowhere to go.
    unified: bool = False

    @property
    def memory_bytes(self) -> int:
        """Device memory that a program can use."""
        return self.memory.bytes

    def flops_per_s(self, fmt: str) -> float:
        """Return the dense operations per second in a format.

        Raises ValueError, listing the device's formats, if there is no rate for it.

        >>> accelerator("a100-80gb").flops_per_s("bf16")
        312000000000000.0
        """
        if fmt not in self.tflops:
            raise ValueError(
                f"{self.name} has no rate for {fmt!r}; it has {', '.join(self.tflops)}"
            )
        return self.tflops[fmt] * 1e12


_PCIE3, _PCIE4, _PCIE5 = 16 * GB, 32 * GB, 64 * GB  # 16 lanes, one direction
_THUNDERBOLT = 5 * GB  # 40 Gbit/s

_V100 = "NVIDIA V100 data sheet (January 2020), SXM2 column"
_T4 = "NVIDIA T4 data sheet (2019)"
_A100 = "NVIDIA A100 data sheet (June 2021)"
_A10 = "NVIDIA A10 data sheet (2021)"
_H100 = "NVIDIA H100 data sheet and Hopper architecture white paper (2022), sparse rates halved"
_H200 = "NVIDIA H200 data sheet (2023), sparse rates halved"
_B200 = "NVIDIA HGX B200 data sheet (2025), an eighth of eight boards, sparse rates halved"
_L4 = "NVIDIA L4 data sheet (2023), sparse rates halved"
_L40S = "NVIDIA L40S data sheet (2023)"
_GA102 = "NVIDIA Ampere GA102 architecture white paper (2020), FP32 accumulation"
_AD102 = "NVIDIA Ada architecture white paper (2022), FP32 accumulation"
_GB202 = "NVIDIA RTX Blackwell architecture white paper (2025), FP32 accumulation"
_MI300X = "AMD Instinct MI300X data sheet (2023)"
_APPLE = "Apple's announcements of the M1 (2020), M1 Max (2021) and M2 (2022)"

_V100_TFLOPS = {"fp32": 15.7, "fp16": 125.0}
_T4_TFLOPS = {"fp32": 8.1, "fp16": 65.0}
_A100_TFLOPS = {"fp32": 19.5, "tf32": 156.0, "bf16": 312.0, "fp16": 312.0}
_A10_TFLOPS = {"fp32": 31.2, "tf32": 62.5, "bf16": 125.0, "fp16": 125.0}
_H100_TFLOPS = {"fp32": 66.9, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9}
_H100_PCIE_TFLOPS = {"fp32": 51.0, "tf32": 378.0, "bf16": 756.0, "fp16": 756.0, "fp8": 1513.0}
_B200_TFLOPS = {"fp32": 75.0, "tf32": 1125.0, "bf16": 2250.0, "fp16": 2250.0, "fp8": 4500.0}
_L4_TFLOPS = {"fp32": 30.3, "tf32": 60.0, "bf16": 121.0, "fp16": 121.0, "fp8": 242.0}
_L40S_TFLOPS = {"fp32": 91.6, "tf32": 183.0, "bf16": 362.0, "fp16": 362.0, "fp8": 733.0}
_A6000_TFLOPS = {"fp32": 38.7, "tf32": 77.4, "bf16": 154.8, "fp16": 154.8}
_3070_TFLOPS = {"fp32": 20.3, "tf32": 20.3, "bf16": 40.6, "fp16": 40.6}
_3080_TFLOPS = {"fp32": 29.8, "tf32": 29.8, "bf16": 59.5, "fp16": 59.5}
_3090_TFLOPS = {"fp32": 35.6, "tf32": 35.6, "bf16": 71.0, "fp16": 71.0}
_4070TI_TFLOPS = {"fp32": 40.1, "tf32": 40.1, "bf16": 80.2, "fp16": 80.2, "fp8": 160.4}
_4080_TFLOPS = {"fp32": 48.7, "tf32": 48.7, "bf16": 97.5, "fp16": 97.5, "fp8": 194.9}
_4090_TFLOPS = {"fp32": 82.6, "tf32": 82.6, "bf16": 165.2, "fp16": 165.2, "fp8": 330.3}
_5070_TFLOPS = {"fp32": 30.9, "tf32": 30.9, "bf16": 61.7, "fp16": 61.7, "fp8": 123.5}
_5070TI_TFLOPS = {"fp32": 43.9, "tf32": 43.9, "bf16": 87.9, "fp16": 87.9, "fp8": 175.8}
_5080_TFLOPS = {"fp32": 56.3, "tf32": 56.3, "bf16": 112.6, "fp16": 112.6, "fp8": 225.1}
_5090_TFLOPS = {"fp32": 104.8, "tf32": 104.8, "bf16": 209.5, "fp16": 209.5, "fp8": 419.0}
_MI300X_TFLOPS = {"fp32": 163.4, "tf32": 653.7, "bf16": 1307.4, "fp16": 1307.4, "fp8": 2614.9}

_PROPERTIES = "torch.cuda.get_device_properties"
_OUT_OF_MEMORY = "torch's out-of-memory message"
_DEVICE_QUERY = "CUDA's deviceQuery"


def _gib(printed: float, source: str) -> Memory:
    """Return memory that a tool printed in GiB, to two decimal places."""
    return Memory(round(printed * 100) * GiB // 100, source)


def _estimated(sold_gib: int) -> Memory:
    """Return a conservative estimate: every board without ECC bits reports a larger share."""
    return Memory(
        sold_gib * GiB * 95 // 100, f"estimate: 95% of the {sold_gib} GiB sold", reported=False
    )


def _metal(printed_bytes: int, where: str) -> Memory:
    return Memory(printed_bytes, f"Metal's recommendedMaxWorkingSetSize, {where}")


# Each board's memory as reported. Without an address, the source is a tool's output in a public
# log.
_MEMORY = {
    "v100-16gb": Memory(16160 * MiB, _PROPERTIES),
    "v100-32gb": _gib(31.74, f"{_OUT_OF_MEMORY}, github.com/liucongg/ChatGLM-Finetuning/issues/73"),
    "t4-16gb": Memory(15095 * MiB, _PROPERTIES),
    "a100-40gb": _gib(39.50, f"{_OUT_OF_MEMORY}, github.com/TianheWu/CoSeR/issues/10"),
    "a100-80gb": _gib(79.25, f"{_OUT_OF_MEMORY}, github.com/HiDream-ai/VAREdit/issues/6"),
    "a100-40gb-pcie": Memory(42_298_834_944, _DEVICE_QUERY),
    "a100-80gb-pcie": Memory(84_974_239_744, _DEVICE_QUERY),
    "a10-24gb": Memory(23_696_375_808, _DEVICE_QUERY),
    "h100-80gb": Memory(81089 * MiB, _PROPERTIES),
    "h100-80gb-pcie": Memory(81008 * MiB, _PROPERTIES),
    "h200-141gb": _gib(139.80, _OUT_OF_MEMORY),
    "b200-180gb": _gib(178.35, "CUDA's totalGlobalMem, github.com/pytorch/ao/pull/4002"),
    "l4-24gb": Memory(
        23_583_784_960,
        f"{_DEVICE_QUERY}, github.com/bottlerocket-os/bottlerocket-kernel-kit/pull/139",
    ),
    "l40s-48gb": Memory(47_576_711_168, "CUDA's totalGlobalMem, by cuda-device-query"),
    "a6000-48gb": Memory(48676 * MiB, f"{_PROPERTIES}, ECC off"),
    "rtx3070-8gb": _gib(7.78, f"{_OUT_OF_MEMORY}, github.com/akshitac8/OW-DETR/issues/46"),
    "rtx3080-10gb": _gib(9.78, f"{_OUT_OF_MEMORY}, github.com/zai-org/CogVideo/issues/34"),
    "rtx3090-24gb": _gib(23.70, f"{_OUT_OF_MEMORY}, github.com/GaoLii/DSP/issues/10"),
    "rtx4070ti-12gb": _estimated(12),
    "rtx4080-16gb": Memory(16049 * MiB, _PROPERTIES),
    "rtx4090-24gb": Memory(25_386_352_640, _DEVICE_QUERY),
    "rtx5070-12gb": Memory(
        (12227 - 464) * MiB,
        "nvidia-smi's total less its reserved, github.com/shkhln/libc6-shim/issues/14",
    ),
    "rtx5070ti-16gb": _estimated(16),
    "rtx5080-16gb": _gib(15.47, _OUT_OF_MEMORY),
    "rtx5090-32gb": Memory(33_668_857_856, _DEVICE_QUERY),
    "mi300x-192gb": Memory(
        201_310_208 * KiB, "ROCm's rocminfo, github.com/ROCm/legacy-rocm-build/issues/4414"
    ),
    "m1-16gb": _metal(16 * GiB * 2 // 3, "github.com/ise-uiuc/magicoder/issues/19"),
    "m1max-32gb": _metal(32 * GiB * 2 // 3, "github.com/ggml-org/llama.cpp/pull/2011"),
    "m2-8gb": _metal(8 * GiB * 2 // 3, "github.com/li-plus/chatglm.cpp/issues/76"),
    "m2-24gb": _metal(16 * GiB, "as printed by ggml"),
}

_Row = tuple[str, int, int, int, Mapping[str, float], str]
_ROWS: tuple[_Row, ...] = (
    # name, bandwidth, host link, peer link, rates, source
    ("v100-16gb", 900 * GB, _PCIE3, 150 * GB, _V100_TFLOPS, _V100),
    ("v100-32gb", 900 * GB, _PCIE3, 150 * GB, _V100_TFLOPS, _V100),
    ("t4-16gb", 300 * GB, _PCIE3, _PCIE3, _T4_TFLOPS, _T4),
    ("a100-40gb", 1555 * GB, _PCIE4, 300 * GB, _A100_TFLOPS, _A100),
    ("a100-80gb", 2039 * GB, _PCIE4, 300 * GB, _A100_TFLOPS, _A100),
    ("a100-40gb-pcie", 1555 * GB, _PCIE4, 300 * GB, _A100_TFLOPS, _A100),
    ("a100-80gb-pcie", 1935 * GB, _PCIE4, 300 * GB, _A100_TFLOPS, _A100),
    ("a10-24gb", 600 * GB, _PCIE4, _PCIE4, _A10_TFLOPS, _A10),
    ("h100-80gb", 3350 * GB, _PCIE5, 450 * GB, _H100_TFLOPS, _H100),
    ("h100-80gb-pcie", 2000 * GB, _PCIE5, 300 * GB, _H100_PCIE_TFLOPS, _H100),
    ("h200-141gb", 4800 * GB, _PCIE5, 450 * GB, _H100_TFLOPS, _H200),
    ("b200-180gb", 7750 * GB, _PCIE5, 900 * GB, _B200_TFLOPS, _B200),
    ("l4-24gb", 300 * GB, _PCIE4, _PCIE4, _L4_TFLOPS, _L4),
    ("l40s-48gb", 864 * GB, _PCIE4, _PCIE4, _L40S_TFLOPS, _L40S),
    ("a6000-48gb", 768 * GB, _PCIE4, 56 * GB, _A6000_TFLOPS, _GA102),
    ("rtx3070-8gb", 448 * GB, _PCIE4, _PCIE4, _3070_TFLOPS, _GA102),
    ("rtx3080-10gb", 760 * GB, _PCIE4, _PCIE4, _3080_TFLOPS, _GA102),
    ("rtx3090-24gb", 936 * GB, _PCIE4, 56 * GB, _3090_TFLOPS, _GA102),
    ("rtx4070ti-12gb", 504 * GB, _PCIE4, _PCIE4, _4070TI_TFLOPS, _AD102),
    ("rtx4080-16gb", 717 * GB, _PCIE4, _PCIE4, _4080_TFLOPS, _AD102),
    ("rtx4090-24gb", 1008 * GB, _PCIE4, _PCIE4, _4090_TFLOPS, _AD102),
    ("rtx5070-12gb", 672 * GB, _PCIE5, _PCIE5, _5070_TFLOPS, _GB202),
    ("rtx5070ti-16gb", 896 * GB, _PCIE5, _PCIE5, _5070TI_TFLOPS, _GB202),
    ("rtx5080-16gb", 960 * GB, _PCIE5, _PCIE5, _5080_TFLOPS, _GB202),
    ("rtx5090-32gb", 1792 * GB, _PCIE5, _PCIE5, _5090_TFLOPS, _GB202),
    ("mi300x-192gb", 5300 * GB, _PCIE5, 448 * GB, _MI300X_TFLOPS, _MI300X),
    ("m1-16gb", 68 * GB, 68 * GB, _THUNDERBOLT, {"fp32": 2.6}, _APPLE),
    ("m1max-32gb", 400 * GB, 400 * GB, _THUNDERBOLT, {"fp32": 10.4}, _APPLE),
    ("m2-8gb", 100 * GB, 100 * GB, _THUNDERBOLT, {"fp32": 3.6}, _APPLE),
    ("m2-24gb", 100 * GB, 100 * GB, _THUNDERBOLT, {"fp32": 3.6}, _APPLE),
)

ACCELERATORS: Mapping[str, Accelerator] = MappingProxyType(
    {
        name: Accelerator(
            name,
            _MEMORY[name],
            bandwidth,
            host_link_bytes_per_s=host,
            peer_link_bytes_per_s=peer,
            tflops=rates,
            source=source,
            unified=source == _APPLE,
        )
        for name, bandwidth, host, peer, rates, source in _ROWS
    }
)

#: Devices that fit into any machine, so no Macs, in ascending order of memory.
BOARDS: tuple[Accelerator, ...] = tuple(
    sorted(
        (device for device in ACCELERATORS.values() if not device.unified),
        key=lambda device: device.memory_bytes,
    )
)


def accelerator(name: str) -> Accelerator:
    """Return the accelerator of that name. Raises ValueError, listing all names, for any other.

    Names without "pcie" mean SXM boards where a model has both.

    >>> accelerator("h100-80gb-pcie").memory_bytes // 2**20
    81008
    """
    return named("accelerator", name, ACCELERATORS)


def smallest_board(n_bytes: int) -> Accelerator | None:
    """Return the board with the least memory that holds `n_bytes`; None if none does.

    >>> smallest_board(20 * 10**9).name
    'l4-24gb'
    """
    return next((board for board in BOARDS if board.memory_bytes >= n_bytes), None)


def unnamed(memory_bytes: int, source: str) -> Accelerator:
    """Return a device with this much memory and no name; rates and links are a similar board's.

    The similar board is the smallest one with at least as much memory, or the largest of all.

    >>> unnamed(12 * 10**9, "a guess").tflops == accelerator("rtx4070ti-12gb").tflops
    True
    """
    similar = smallest_board(memory_bytes) or BOARDS[-1]
    return replace(similar, name="", memory=Memory(memory_bytes, source, reported=False))
