"""Some configurations predicted and measured; `course.py bench accuracy` runs the whole grid."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.accuracy import BOUNDS, held, measure, summary, table, write
from benchmarks.grid import configurations, quick
from benchmarks.peaks import Row
from peakmem.measure.trace import trace
from peakmem.predict.step_ledger import build_ledger


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    with warnings.catch_warnings(action="ignore"):
        return [measure(case, torch.device("cpu")) for case in quick()]


def test_predictions_are_those_that_are_measured(rows: list[Row]) -> None:
    known = [row for row in rows if row.predicted_bytes is not None]
    assert len(known) >= 4
    assert max(abs(row.errors()["build_ledger"]) for row in known) <= 0.01
    assert held(rows, BOUNDS)


GPUS = ("nvidia-h200", "nvidia-h100-80gb-hbm3")


def record(repository: Path, part: str, gpu: str = GPUS[0]) -> list[dict[str, Any]]:
    """The figures of a part of the run on a GPU."""
    whole = json.loads((repository / f"docs/measurements/{gpu}.json").read_text("utf-8"))
    (found,) = (each for each in whole["parts"] if each["part"] == part)
    return list(found["figures"])


def on_the_gpu(repository: Path, gpu: str) -> dict[str, int]:
    """A configuration's name -> bytes that its step on a GPU requested at its peak."""
    return {
        row["name"]: row["measured_bytes"]
        for row in record(repository, "accuracy of predictions", gpu)[0]["detail"]
    }


@pytest.mark.parametrize("gpu", GPUS)
def test_what_the_docs_say_of_the_gpus_is_on_record(gpu: str, repository: Path) -> None:
    rows = record(repository, "accuracy of predictions", gpu)[0]["detail"]
    assert len(rows) == 76
    for row in rows:
        assert abs(row["traced_bytes"] - row["measured_bytes"]) <= SEEDS, row["name"]
    said = (repository / "docs/lecturers.md").read_text("utf-8")
    context, workspaces, _ = record(repository, "context of a process", gpu)
    assert f"took {context['value']:.0f} MiB for CUDA's context" in said
    assert f"and {workspaces['value']:g} MiB for workspaces" in said
    for figure in record(repository, "plans", gpu):
        if figure["name"].endswith(", peak"):
            assert abs(figure["value"] - 1) < 0.001
        if figure["name"].endswith(", overlap"):
            assert figure["value"] < 1.03


def test_the_labs_have_full_points_on_a_gpu(repository: Path) -> None:
    labs = [figure for figure in record(repository, "labs") if figure["unit"] == "points"]
    assert len(labs) == 10
    assert all(figure["value"] == figure["least"] for figure in labs)


SEEDS = 8 * 16  # fused attention keeps 16 bytes of random numbers' state, in 8 layers


@pytest.mark.parametrize("gpu", GPUS)
def test_predictions_for_cuda_are_what_a_gpu_showed(gpu: str, repository: Path) -> None:
    measured = on_the_gpu(repository, gpu)
    cases = [case for case in configurations(large=True) if case.shape and case.name in measured]
    assert len(cases) >= 55
    for case in cases:
        assert case.shape is not None
        predicted = build_ledger(case.shape, case.recipe, profile="torch-cuda").peak_bytes
        assert 0 <= measured[case.name] - predicted <= SEEDS, case.name


@pytest.mark.parametrize(
    "name",
    [
        "GPT-2 amp_bf16 sdpa",  # a GELU of many operators, and the loss
        "Llama 16:2 heads fp32 flash",  # grouped heads that no fused kernel runs
        "GPT 8x1024 fp32 standard checkpoint every_k",  # its peak is in softmax's backward
        "GPT 8x1024 fp32 flash adamw fused",  # counters on the device
    ],
)
def test_a_trace_for_cuda_is_what_a_gpu_showed(name: str, repository: Path) -> None:
    (case,) = (case for case in configurations(large=True) if case.name == name)
    with warnings.catch_warnings(action="ignore"):
        traced = trace(case.build, "torch-cuda").peak_bytes
    assert 0 <= on_the_gpu(repository, GPUS[0])[name] - traced <= SEEDS


def test_the_grid_is_large_and_has_every_kind() -> None:
    names = [case.name for case in configurations()]
    assert len(set(names)) == len(names) >= 60
    for word in ("GPT", "GPT-2", "Llama 4:2", "BERT", "ViT", "eager", "sdpa", "dropout", "parts"):
        assert any(word in name for name in names), word
    assert len(quick()) >= 6
    assert [case.name for case in configurations(large=True)] != names


EXACT = Row("exact", 1000, 1000, 1000)


@pytest.mark.parametrize(
    ("row", "right"),
    [
        (EXACT, True),
        (replace(EXACT, predicted_bytes=1010), True),
        (replace(EXACT, predicted_bytes=1011), False),  # does not fit, it says, and it does
        (replace(EXACT, predicted_bytes=990), False),  # fits, it says, and it does not
    ],
)
def test_the_right_side_of_the_fits_test(row: Row, right: bool) -> None:
    assert row.right_side(row.predicted_bytes or 0) == right


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        (EXACT, True),
        (replace(EXACT, predicted_bytes=None), True),
        (replace(EXACT, predicted_bytes=1011), False),
        (replace(EXACT, traced_bytes=1009), True),
        (replace(EXACT, traced_bytes=1011), False),
        (replace(EXACT, traced_bytes=980), False),  # a false "fits"
    ],
)
def test_bounds_can_be_broken(row: Row, kept: bool) -> None:
    assert held([EXACT] * 99 + [row], BOUNDS) == kept


def test_what_is_shown_and_written(rows: list[Row], tmp_path: Path) -> None:
    shown = table(rows).splitlines()
    assert len(shown) == len(rows) + 1
    assert rows[0].name in shown[1]
    assert f"{rows[0].measured_bytes:,}" in shown[1]
    assert [line.partition(":")[0] for line in summary(rows)] == ["build_ledger", "trace"]
    write(rows, tmp_path, "here", "a device")
    found = json.loads((tmp_path / "here.json").read_text())
    assert found["device"] == "a device"
    assert [Row(**row) for row in found["configurations"]] == rows
    assert (tmp_path / "here.png").stat().st_size > 10_000
