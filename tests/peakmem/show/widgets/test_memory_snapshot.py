"""The calculator that opens memory snapshots: its figures, its files, and what it refuses."""

from __future__ import annotations

import pickle
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from peakmem.core.units import both
from peakmem.measure.generated_gpt import generated_gpt
from peakmem.measure.generated_snapshot import Recording, frame
from peakmem.measure.snapshot import UnreadableSnapshot, ledger_of_snapshot
from peakmem.show.widgets import memory_snapshot

MINE = frame("/home/you/a/long/way/down/train.py", 7, "step")


def recorded(*sizes: int) -> dict[str, Any]:
    recording = Recording()
    for n, size in enumerate(sizes):
        recording.alloc(str(n), size, MINE)
    recording.free("0")
    return recording.snapshot()


def upload(calculator: Any, name: str, content: bytes) -> None:
    """Open a file as the browser's button does."""
    file = {"name": name, "type": "", "size": len(content), "content": memoryview(content)}
    calculator._upload.value = ({**file, "last_modified": datetime(2026, 1, 1, tzinfo=UTC)},)


def test_it_begins_at_an_examples_peak() -> None:
    calculator, ledger = memory_snapshot(), ledger_of_snapshot(generated_gpt())
    assert both(ledger.peak_bytes) in calculator._text.value
    for n_bytes in ledger.by_owner().values():
        assert both(n_bytes) in calculator._text.value
    assert "at the peak" in calculator._text.value


def test_remedies_shrink_the_examples_one_after_the_other() -> None:
    calculator = memory_snapshot()
    peaks = []
    for name in calculator._controls["snapshot"].options:
        calculator.snapshot = name
        peaks.append(calculator._ledger(name).peak_bytes)
        largest = max(calculator._ledger(name).by_owner().values())
        assert calculator._remedies.value.index(both(largest)) > 0
    assert peaks == sorted(peaks, reverse=True)
    assert len(set(peaks)) == 3


@pytest.mark.parametrize(
    ("by", "name"), [("owner", "logits"), ("module", "linear"), ("source line", "model.py:23")]
)
def test_places_add_up_to_the_peak(by: str, name: str) -> None:
    calculator = memory_snapshot()
    calculator.by = by
    assert name in calculator._text.value
    percents = [int(n) for n in re.findall(r"(\d+)%<", calculator._text.value)]
    assert percents.pop() == 100
    assert sum(percents) == pytest.approx(100, abs=4)


def test_another_moment_is_shown_and_another_snapshot_comes_back_to_its_peak() -> None:
    calculator = memory_snapshot()
    peak = calculator._ledger(calculator.snapshot).peak_event
    calculator.from_peak = -peak
    assert "at event 0<" in calculator._text.value
    assert "stroke-dasharray" in calculator._picture.value
    calculator.snapshot = calculator._controls["snapshot"].options[1]
    assert calculator.from_peak == 0
    calculator.from_peak = 10**6
    assert "from the peak cannot be 1000000" in calculator.message
    assert calculator.from_peak == 0


def test_a_file_is_opened_and_its_peak_shown() -> None:
    calculator = memory_snapshot(predict=True)
    calculator._guess.fields[0].value = "50"
    calculator._guess.show.click()
    upload(calculator, "mine.pickle", pickle.dumps(recorded(3_000_000, 1_000_000)))
    assert calculator.snapshot == "mine.pickle"
    assert not calculator.shown, "another snapshot asks anew"
    assert "4.00 MB (3.81 MiB)" in calculator._text.value
    calculator.by = "source line"
    assert "...a/long/way/down/train.py:7" in calculator._text.value
    upload(calculator, "mine.pickle", pickle.dumps(recorded(5_000_000)))
    assert "5.00 MB" in calculator._text.value, "the same name again is the new file"
    assert list(calculator._controls["snapshot"].options).count("mine.pickle") == 1
    calculator.set(**calculator._first)
    assert calculator.snapshot == "GPT-2, plain"
    assert calculator.message == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04", "x.pickle is not a snapshot of plain data: it is a zip file"),
        (pickle.dumps({"device_traces": []}), "records no allocation|has no device"),
        (pickle.dumps({"device_traces": [[]]}), "records no allocation on device 0"),
        (pickle.dumps({"device_traces": [[{"action": 3}]]}), "expected a dict with an action"),
        (pickle.dumps(Path), "it names pathlib"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(content: bytes, said: str) -> None:
    calculator = memory_snapshot()
    before = calculator._text.value
    upload(calculator, "x.pickle", content)
    assert re.search(said, calculator.message)
    assert (calculator.snapshot, calculator._text.value) == ("GPT-2, plain", before)
    assert "x.pickle" not in calculator._controls["snapshot"].options


def test_each_gpu_of_a_file_has_an_entry() -> None:
    traces = [recorded(1000)["device_traces"][0], [], recorded(7000)["device_traces"][0]]
    calculator = memory_snapshot()
    calculator.add_snapshot("two", {"segments": [], "device_traces": traces})
    assert [o for o in calculator._controls["snapshot"].options if o[0] == "t"] == [
        "two, GPU 0",
        "two, GPU 2",
    ]
    calculator.snapshot = "two, GPU 2"
    assert "7.00 kB" in calculator._text.value.replace("KB", "kB")


def test_it_begins_with_the_file_at_a_path(tmp_path: Path) -> None:
    (tmp_path / "step.pickle").write_bytes(pickle.dumps(recorded(2_000_000)))
    calculator = memory_snapshot(tmp_path / "step.pickle")
    assert calculator.snapshot == "step.pickle"
    calculator.snapshot = "GPT-2, plain"
    calculator.set(**calculator._first)
    assert calculator.snapshot == "step.pickle"
    (tmp_path / "weights.pt").write_bytes(b"PK\x03\x04")
    with pytest.raises(UnreadableSnapshot, match=r"weights\.pt is not a snapshot"):
        memory_snapshot(tmp_path / "weights.pt")


def test_a_long_recording_is_drawn_with_its_peak_and_few_points() -> None:
    recording = Recording()
    for n in range(5000):
        recording.alloc("spike" if n == 3210 else "x", 9_000_000 if n == 3210 else 1000, MINE)
        recording.free("spike" if n == 3210 else "x")
    calculator = memory_snapshot()
    calculator.add_snapshot("long", recording.snapshot())
    assert "peak, 9 MB" in calculator._picture.value
    heights = [float(y) for y in re.findall(r"\d,([\d.]+)", calculator._picture.value)]
    assert min(heights) == pytest.approx(222 - (222 - 34) / 1.08, abs=0.1), "the spike is drawn"
    assert len(calculator._picture.value) < 40_000


def test_a_recording_of_nothing_but_empty_blocks_is_shown() -> None:
    calculator = memory_snapshot()
    calculator.add_snapshot("empty", recorded(0))
    assert "0 B" in calculator._text.value
