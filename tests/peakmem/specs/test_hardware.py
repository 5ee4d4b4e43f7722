"""Accelerators against what users' tools print, and the data sheets' own relations."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from peakmem.core.units import GiB, MiB, both
from peakmem.specs import hardware
from peakmem.specs.hardware import ACCELERATORS, BOARDS, accelerator, smallest_board, unnamed

rows = pytest.mark.parametrize("row", ACCELERATORS.values(), ids=lambda row: row.name)

# The total capacity in torch's messages, in GiB, reported by users of these boards.
TORCH_GIB = {
    "rtx3070-8gb": 7.76,
    "rtx3080-10gb": 9.78,
    "rtx3090-24gb": 23.70,
    "a100-40gb": 39.5,
    "a100-80gb": 79.25,
    "v100-32gb": 31.75,
    "t4-16gb": 14.75,
    "l4-24gb": 22.03,
    "l40s-48gb": 44.39,
    "rtx4090-24gb": 23.65,
    "rtx5090-32gb": 31.37,
    "h200-141gb": 139.81,
}
# The board's total in nvidia-smi, in MiB, including the driver's own share.
NVIDIA_SMI_MIB = {
    "rtx3070-8gb": 8192,
    "t4-16gb": 15360,
    "l4-24gb": 23034,
    "a10-24gb": 23028,
    "a100-40gb": 40960,
    "a100-80gb": 81920,
    "h100-80gb": 81559,
    "l40s-48gb": 46068,
    "h200-141gb": 143771,
    "rtx4090-24gb": 24564,
    "rtx5090-32gb": 32607,
}
# Boards whose GDDR6 memory holds its own ECC bits.
ECC_INSIDE = {"t4-16gb", "a10-24gb", "l4-24gb", "l40s-48gb"}


def sold_gib(name: str) -> int:
    return int(name.split("-")[1].removesuffix("gb"))


def test_the_boards_of_the_course_are_there():
    assert {name.partition("-")[0] for name in ACCELERATORS} == {
        *("v100", "t4", "a100", "a10", "h100", "h200", "b200", "l4", "l40s", "a6000"),
        *("rtx3070", "rtx3080", "rtx3090", "rtx4070ti", "rtx4080", "rtx4090"),
        *("rtx5070", "rtx5070ti", "rtx5080", "rtx5090", "mi300x", "m1", "m1max", "m2"),
    }
    assert all(hasattr(hardware, name) for name in hardware.__all__)


@pytest.mark.parametrize(("name", "gib"), TORCH_GIB.items())
def test_memory_is_what_torch_reports(name, gib):
    assert accelerator(name).memory_bytes / GiB == pytest.approx(gib, rel=0.005)


@pytest.mark.parametrize(("name", "mib"), NVIDIA_SMI_MIB.items())
def test_a_program_has_a_little_less_than_nvidia_smi_says(name, mib):
    assert 0.96 * mib < accelerator(name).memory_bytes / MiB < mib


@rows
def test_what_is_sold_as_gb_are_gib_less_a_share(row):
    share = row.memory_bytes / GiB / sold_gib(row.name)
    if row.unified:
        assert share == pytest.approx(2 / 3, abs=1e-6)
    elif row.name in ECC_INSIDE:
        assert 0.9 < share < 0.94
    elif row.memory.reported:
        assert 0.95 < share <= 1  # so that an estimate is the careful end
    else:
        assert share == pytest.approx(0.95, abs=1e-6)


@rows
def test_a_memory_says_where_its_figure_is_from(row):
    assert accelerator(row.name) is row
    assert row.source
    assert row.memory.source.startswith("estimate") is not row.memory.reported


@rows
def test_figures_are_plausible(row):
    if row.unified:
        assert row.host_link_bytes_per_s == row.bandwidth_bytes_per_s
        return
    assert row.host_link_bytes_per_s <= row.peer_link_bytes_per_s < row.bandwidth_bytes_per_s
    rates = [row.tflops[fmt] for fmt in ("fp32", "tf32", "fp16", "fp8") if fmt in row.tflops]
    assert rates == sorted(rates)  # fewer bits are never slower
    assert row.tflops.get("bf16", row.tflops["fp16"]) == row.tflops["fp16"]


# Cores, their clock in GHz, and the 16-bit tensor rate over FP32's: NVIDIA's own formulas.
@pytest.mark.parametrize(
    ("name", "cores", "ghz", "tensor"),
    [
        ("t4-16gb", 2560, 1.59, 8),
        ("a10-24gb", 9216, 1.695, 4),
        ("a6000-48gb", 10752, 1.80, 4),
        ("l40s-48gb", 18176, 2.52, 4),
        ("rtx3070-8gb", 5888, 1.725, 2),
        ("rtx4070ti-12gb", 7680, 2.61, 2),
        ("rtx4080-16gb", 9728, 2.505, 2),
        ("rtx5070-12gb", 6144, 2.512, 2),
        ("rtx5070ti-16gb", 8960, 2.452, 2),
        ("rtx5080-16gb", 10752, 2.617, 2),
        ("rtx5090-32gb", 21760, 2.407, 2),
    ],
)
def test_rates_follow_from_cores_and_clock(name, cores, ghz, tensor):
    rates = accelerator(name).tflops
    assert rates["fp32"] == pytest.approx(2 * cores * ghz / 1000, rel=0.01)
    assert rates["fp16"] == pytest.approx(tensor * rates["fp32"], rel=0.015)


@given(st.integers(1, 250 * 10**9))
@example(accelerator("a10-24gb").memory_bytes)
def test_the_smallest_board_holds_it_and_no_smaller_one_does(n_bytes):
    found = smallest_board(n_bytes)
    holding = {b.memory_bytes for b in ACCELERATORS.values() if not b.unified}
    assert (found and found.memory_bytes) == min((n for n in holding if n >= n_bytes), default=None)
    device = unnamed(n_bytes, "a test")
    assert device == replace(found or BOARDS[-1], name="", memory=device.memory)
    assert (device.memory_bytes, device.memory.reported) == (n_bytes, False)


def test_rates_are_dense():
    """The lecture's figures for the H100, with sparsity, are twice ours."""
    slide = {"tf32": 989, "bf16": 1979, "fp16": 1979, "fp8": 3958}
    h100 = accelerator("h100-80gb")
    assert h100.tflops["fp32"] == pytest.approx(67, abs=0.5)  # no sparsity there
    for fmt, sparse in slide.items():
        assert 2 * h100.tflops[fmt] == pytest.approx(sparse, abs=0.6)
    # The A100's tensor cores: 108 units, 1024 fused multiply-adds a cycle each, at 1.41 GHz.
    assert accelerator("a100-80gb").tflops["bf16"] == pytest.approx(
        108 * 1024 * 2 * 1.41e9 / 1e12, rel=1e-3
    )


def test_what_is_not_there_is_refused():
    with pytest.raises(
        ValueError, match=r"'a100' \(did you mean 'a100-.*known are v100-16gb.*m2-24gb"
    ):
        accelerator("a100")
    with pytest.raises(ValueError, match=r"v100-16gb has no rate for 'bf16'; it has fp32, fp16"):
        accelerator("v100-16gb").flops_per_s("bf16")


def test_the_lecturers_guide_counts_the_estimates(repository: Path) -> None:
    guide = " ".join((repository / "docs/lecturers.md").read_text("utf-8").split())
    assert "two are estimates from the data sheet" in guide
    assert sum(not row.memory.reported for row in ACCELERATORS.values()) == 2
    assert "an A100 reports 79.25 GiB" in guide
    assert both(accelerator("a100-80gb").memory_bytes).endswith("(79.25 GiB)")
