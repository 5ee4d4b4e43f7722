"""The benchmark of few bits on a model trained for seconds, and the faults it must notice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.quantization import Row, _after_training, measured, problems
from benchmarks.sentences import LETTERS, sentences
from benchmarks.small_gpt import SHAPE, Trainer
from benchmarks.solutions import solved

TINY = replace(SHAPE, n_layers=1, d_model=32)
LAB = "lab09_quantization"


@pytest.fixture(scope="module")
def names() -> Mapping[str, Any]:
    return solved(LAB)


@pytest.fixture(scope="module")
def rows(names: Mapping[str, Any]) -> dict[tuple[str, str], Row]:
    return {(row.kind, row.way): row for row in measured(names, TINY, steps=60)}


def recorded(repository: Path) -> list[Row]:
    found = json.loads((repository / "docs/measurements/quantization.json").read_text("utf-8"))
    return [Row(**row) for row in found["rows"]]


def test_training_learns_and_few_bits_cost(rows: dict[tuple[str, str], Row]) -> None:
    after = "rounded after training"
    fp32 = rows[after, "fp32"].loss
    assert fp32 < 3.0  # ln 28 = 3.33 is a guess
    assert rows[after, "int8, one scale per row"].loss == pytest.approx(fp32, rel=0.01)
    assert rows[after, "int8 products"].loss == pytest.approx(fp32, rel=0.02)
    assert rows["optimizer", "Adam"].loss == fp32
    assert rows["optimizer", "8-bit Adam"].loss == pytest.approx(fp32, rel=0.02)
    assert rows["optimizer", "Adam"].bits == pytest.approx(64, rel=0.01)
    assert rows["optimizer", "8-bit Adam"].bits == pytest.approx(16.25, rel=0.03)


def test_the_record_has_the_rows_of_the_benchmark(
    rows: dict[tuple[str, str], Row], repository: Path
) -> None:
    assert [(row.kind, row.way) for row in recorded(repository)] == list(rows)
    assert problems(recorded(repository)) == []


def test_a_quantizer_that_drops_the_scale_of_rows_is_noticed(names: Mapping[str, Any]) -> None:
    one = names["quantize_symmetric"]
    broken = dict(names, quantize_symmetric=lambda w, bits, axis=None: one(w / 2, bits, axis))
    trainer = Trainer(TINY, steps=60)
    found = list(_after_training(broken, trainer, trainer.train().model))
    rest = [
        Row(kind, way, 8.0, 0.1)
        for kind, way in (
            ("trained rounded", "int3, one scale per row"),
            ("trained rounded", "ternary"),
            ("optimizer", "Adam"),
            ("optimizer", "8-bit Adam"),
        )
    ]
    assert any("int8, one scale per row" in said for said in problems([*found, *rest]))


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("rounded after training", "int4, one scale per row"),
        ("trained rounded", "int3, one scale per row"),
        ("trained rounded", "ternary"),
        ("optimizer", "8-bit Adam"),
    ],
)
def test_a_row_that_contradicts_the_lab_is_told(repository: Path, kind: str, way: str) -> None:
    worse = [
        replace(row, loss=9.0) if (row.kind, row.way) == (kind, way) else row
        for row in recorded(repository)
    ]
    assert any(said.startswith(f"{kind} {way}: a loss of 9.0000") for said in problems(worse))


def test_sentences_are_the_same_each_time_and_right() -> None:
    text = sentences(20_000, seed=3)
    assert text == sentences(20_000, seed=3) != sentences(20_000, seed=4)
    assert set(text) <= set(LETTERS)
    assert "nine plus nine is eighteen." in text
    assert "one ships" not in text


def test_solutions_leave_modules_importable() -> None:
    import sys

    before = list(sys.meta_path)
    assert torch.is_tensor(solved(LAB)["WEIGHT"])
    assert sys.meta_path == before
