"""What the GPU exercises show without a GPU is what was measured on one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from peakmem.labs import recorded

MEASURED = json.loads(
    (Path(__file__).parents[3] / "docs/measurements/nvidia-h200.json").read_text("utf-8")
)


def measured(part: str, name: str) -> float:
    """The value of a figure in the measurements."""
    (found,) = (p for p in MEASURED["parts"] if p["part"] == part)
    (value,) = (f["value"] for f in found["figures"] if f["name"] == name)
    return float(value)


def test_the_figures_are_those_of_the_measurements() -> None:
    assert MEASURED["device"] == recorded.DEVICE
    for memory, rate in recorded.COPIES.items():
        assert rate == round(measured("copies to the host", f"{memory}, to the GPU"), 1)
    short = {"float32": "fp32", "tf32": "tf32", "bfloat16": "bf16"}
    for name, rate in recorded.PRODUCTS.items():
        assert rate == round(measured("products", f"{short[name]}, 8192x8192"), 1)
    arms = {"keep all": "keep all", "segments of 3": "every 3", "each block alone": "full"}
    for name, (ms, mib) in recorded.CHECKPOINTS.items():
        assert ms == round(measured("checkpointing", f"{arms[name]}, time"), 1)
        assert mib == round(measured("checkpointing", f"{arms[name]}, peak"))


def test_they_are_printed_beside_their_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    recorded.print_copies()
    recorded.print_products()
    recorded.print_checkpoints()
    printed = capsys.readouterr().out
    assert printed.count("Recorded on an NVIDIA H200") == 3
    assert f"{measured('copies to the host', 'pinned over pageable'):.1f} times as fast" in printed
    assert f"{measured('products', 'bf16 over fp32'):.1f} x" in printed
    over = measured("checkpointing", "time of full over keep all") - 1
    assert f"({over:+4.0%})" in printed
