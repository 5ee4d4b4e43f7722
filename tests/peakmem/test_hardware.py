"""Accelerators against the data sheets' own relations between their figures."""

import pytest

from peakmem import hardware
from peakmem.hardware import ACCELERATORS, accelerator
from peakmem.units import GB

rows = pytest.mark.parametrize("row", ACCELERATORS.values(), ids=lambda row: row.name)


def test_the_boards_of_the_course_are_there():
    assert len(ACCELERATORS) == 13
    assert {name.partition("-")[0] for name in ACCELERATORS} == {
        *("v100", "a100", "h100", "h200", "rtx3080", "rtx3090", "rtx4090", "l4")
    }
    assert all(hasattr(hardware, name) for name in hardware.__all__)


@rows
def test_a_name_says_the_memory_and_finds_its_row(row):
    assert row.memory_bytes == int(row.name.split("-")[1].removesuffix("gb")) * GB
    assert accelerator(row.name) is row
    assert row.source


@rows
def test_figures_are_plausible(row):
    assert row.host_link_bytes_per_s <= row.peer_link_bytes_per_s < row.bandwidth_bytes_per_s
    rates = [row.tflops[fmt] for fmt in ("fp32", "tf32", "fp16", "fp8") if fmt in row.tflops]
    assert rates == sorted(rates)  # fewer bits are never slower
    assert row.tflops.get("bf16", row.tflops["fp16"]) == row.tflops["fp16"]


def test_rates_are_dense():
    """What the lecture's table prints for the H100, with sparsity, is twice ours."""
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
    with pytest.raises(ValueError, match=r"'a100'; known are v100-16gb.*l4-24gb"):
        accelerator("a100")
    with pytest.raises(ValueError, match=r"v100-16gb has no rate for 'bf16'; it has fp32, fp16"):
        accelerator("v100-16gb").flops_per_s("bf16")
