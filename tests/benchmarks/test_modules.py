"""The table of every module of torch beside trace: complete, and able to fail."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.module_cases import NO_STEP, OWN, Sample, listed_modules, own_samples
from benchmarks.modules import Row, allocated_bytes, compare, held, summary, write
from peakmem.measure.meter import measure

RERUN = "torch has modules that the table lacks: add steps, and rerun `course.py bench modules`"
EXACT = Row("module", "nn.Exact", samples=2, lowest=1.0, highest=1.0)


def test_every_module_of_torch_has_a_step_or_a_reason() -> None:
    assert sorted({*OWN, *NO_STEP}) == listed_modules(), RERUN
    assert not {*OWN} & {*NO_STEP}


def test_the_committed_table_has_every_module_and_none_is_off(repository: Path) -> None:
    path = repository / "docs/measurements/trace_modules.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [Row(**row) for row in found["rows"]]
    names = {row.name.removeprefix("nn.") for row in rows if row.kind == "module"}
    assert set(listed_modules()) <= names | {*found["no_step"]}, RERUN
    assert held(rows)
    assert found["summary"] == summary(rows)
    # A module that was measured was traced, or refused with a sentence.
    assert not [row.name for row in rows if row.samples and row.highest is None and not row.refused]


def test_a_sample_of_modules_is_exact_or_refused() -> None:
    names = ["EmbeddingBag", "Flatten", "LSTM", "LazyLinear", "MSELoss"]
    with warnings.catch_warnings(action="ignore"):
        rows = compare(own_samples(names))
    assert sorted(row.name for row in rows) == [f"nn.{name}" for name in names]
    assert held(rows)
    assert [row.name for row in rows if row.refused] == ["nn.LazyLinear"]


def grows(device: torch.device) -> Callable[[], object]:
    """A build_step that behaves differently when traced: the table must show the deviation."""
    traced = torch._guards.detect_fake_mode() is not None
    x = torch.ones(100 if traced else 200, requires_grad=True)
    return lambda: (x * 2).sum().backward()


def fails(device: torch.device) -> Callable[[], object]:
    """A build_step that fails in a trace only."""
    if torch._guards.detect_fake_mode() is not None:
        raise ZeroDivisionError
    return grows(device)


def test_a_trace_that_is_off_or_fails_is_noticed() -> None:
    with warnings.catch_warnings(action="ignore"):
        off, broken = compare([Sample("module", "off", grows), Sample("module", "broken", fails)])
    assert not held([EXACT, off])
    assert off.highest is not None
    assert off.highest < 0.6
    assert broken.failed == ("ZeroDivisionError: ",)
    assert "off by over 0.1 %: off" in summary([EXACT, off])[0]


@pytest.mark.parametrize(("ratio", "kept"), [(1.0009, True), (1.0011, False), (0.9989, False)])
def test_bounds_can_be_broken(ratio: float, kept: bool) -> None:
    assert held([EXACT, replace(EXACT, lowest=min(ratio, 1.0), highest=max(ratio, 1.0))]) == kept


def test_the_allocator_sees_scratch_that_the_meter_does_not() -> None:
    bilinear = nn.Bilinear(16, 16, 8)

    def plain(device: torch.device) -> Callable[[], object]:
        x = torch.ones(100, 100, requires_grad=True)
        return lambda: x.tanh().sum().backward()

    def scratch(device: torch.device) -> Callable[[], object]:
        x = torch.ones(640, 16, requires_grad=True)
        return lambda: bilinear(x, x).sum().backward()

    assert allocated_bytes(plain) == measure(plain, "cpu").peak_bytes
    assert allocated_bytes(scratch) > 1.5 * measure(scratch, "cpu").peak_bytes


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    rows = [EXACT, replace(EXACT, name="nn.Refused", highest=None, lowest=None, refused=("why",))]
    write(rows, tmp_path)
    found = json.loads((tmp_path / "trace_modules.json").read_text(encoding="utf-8"))
    read = [Row(**row) for row in found["rows"]]
    assert [(row.name, row.highest, list(row.refused)) for row in read] == [
        ("nn.Exact", 1.0, []),
        ("nn.Refused", None, ["why"]),
    ]
    assert found["summary"] == summary(rows)
