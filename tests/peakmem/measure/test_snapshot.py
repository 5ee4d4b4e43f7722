"""Recorded memory snapshots: read as plain data only, and added up as brute force does.

All of them are generated from lists of events in the documented format; none was recorded on a GPU.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.cuda import _memory_viz

from autograder.content.lab10.snapshots import drawn_snapshot, holders
from peakmem.measure.snapshot import (
    BEFORE,
    UnreadableSnapshot,
    ledger_of_snapshot,
    parse_snapshot,
    read_snapshot,
    recorded_devices,
)
from peakmem.show.snapshot_report import (
    draw_snapshot,
    remedies_of,
    snapshot_lines,
    snapshot_report,
)

Event = dict[str, Any]
MINE, TORCH = "/home/you/train.py", "/opt/env/torch"


def frame(name: str, filename: str = MINE, line: int = 1) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


def alloc(addr: int, size: int, *frames: Mapping[str, Any]) -> Event:
    own = {"addr": addr, "size": size, "stream": 0, "time_us": 0}
    return {"action": "alloc", **own, "frames": list(frames)}


def free(addr: int, size: int) -> Event:
    own = {"addr": addr, "size": size, "stream": 0, "time_us": 0}
    return {"action": "free_completed", **own, "frames": []}


def snapshot_of(*events: Event, segments: Any = ()) -> dict[str, Any]:
    return {"segments": list(segments), "device_traces": [list(events)]}


def written(path: Path, value: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


# Reading


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_comes_back_as_it_was(tmp_path: Path, protocol: int) -> None:
    snapshot = drawn_snapshot(np.random.default_rng(0), 30)
    assert read_snapshot(written(tmp_path / "a.pickle", snapshot, protocol)) == snapshot


class _Touch:
    """Runs a command when it is unpickled by anybody who lets it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_file_that_would_run_something_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    bad = written(tmp_path / "bad.pickle", {"device_traces": [_Touch(made)]})
    with pytest.raises(UnreadableSnapshot, match=r"it names \w+\.mkdir"):
        read_snapshot(bad)
    assert not made.exists()
    pickle.loads(bad.read_bytes())  # the guard is what stops it
    assert made.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Ran out of input"),
        (b"not a pickle", "not a snapshot of plain data"),
        (pickle.dumps([1, 2]), "no device_traces"),
        (pickle.dumps({"device_traces": 3}), "no device_traces"),
        (b"\x80\x04Pname\n.", "outside of the file"),
        (pickle.dumps({"device_traces": [np.zeros(1)]}), "it names numpy"),
    ],
)
def test_what_is_no_snapshot_is_said_to_be_none(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UnreadableSnapshot, match=said):
        read_snapshot(tmp_path / "x")


@pytest.mark.parametrize(("snapshot", "device"), [(snapshot_of(), 0), (snapshot_of(), 1)])
def test_a_device_without_a_recording_is_named(snapshot: Any, device: int) -> None:
    with pytest.raises(ValueError, match=f"device {device}"):
        ledger_of_snapshot(snapshot, device)


# Adding up


@pytest.mark.parametrize("seed", range(6))
def test_the_peak_and_its_holders_are_those_of_a_replay(seed: int) -> None:
    """Against the reference of lab 10's exercise, which knows no blocks of before."""
    snapshot = drawn_snapshot(np.random.default_rng(seed), 80)
    trace = snapshot["device_traces"][0]
    trace.remove(next(e for e in trace if e["action"] == "free_completed" and e["addr"] == 2**40))
    ledger = ledger_of_snapshot(snapshot)
    places: dict[str, int] = {}
    for tensor in ledger.live():
        name = "unknown" if tensor.name == "no frame of yours" else tensor.name
        places[name] = places.get(name, 0) + tensor.bytes
    assert sorted(places.items(), key=lambda item: (-item[1], item[0])) == holders(snapshot)


def test_torchs_own_viewer_reads_what_is_generated() -> None:
    text = _memory_viz.trace(drawn_snapshot(np.random.default_rng(0), 30))
    assert "alloc" in text


def test_what_was_there_before_counts() -> None:
    segment = {
        "address": 4096,
        "device": 0,
        "blocks": [
            {"size": 100, "state": "inactive"},
            {"size": 50, "state": "active_allocated", "frames": []},
            {"size": 20, "state": "active_allocated", "frames": []},  # at 4246: in the trace
        ],
    }
    other = {"address": 0, "device": 1, "blocks": [{"size": 9**9, "state": "active_allocated"}]}
    events = alloc(4246, 20, frame("f")), free(7, 1000), alloc(9, 300, frame("f"))
    ledger = ledger_of_snapshot(snapshot_of(*events, segments=[segment, other]))
    assert ledger.live_bytes == (1050, 1070, 70, 370)
    assert [t.bytes for t in ledger.live(0) if t.name == BEFORE] == [1000, 50]


# Owners

FORWARD = frame("forward", f"{TORCH}/nn/modules/linear.py", 9)
OWN = frame("step")
ADAM = frame("step", f"{TORCH}/optim/adam.py")


def test_owners_are_told_by_stacks_and_lives() -> None:
    built = frame("__init__", f"{TORCH}/nn/modules/linear.py")
    loss = frame("cross_entropy", f"{TORCH}/nn/functional.py")
    engine = frame("_engine_run_backward", f"{TORCH}/autograd/graph.py")
    ledger = ledger_of_snapshot(
        snapshot_of(
            alloc(1, 1, built, OWN),  # stays: a parameter
            alloc(2, 2, FORWARD, OWN),  # until backward: an activation
            alloc(3, 4, FORWARD, OWN),
            free(3, 4),  # within forward: a temporary
            alloc(4, 8, loss, OWN),  # logits
            alloc(5, 16),  # no frame of Python: autograd's thread
            alloc(6, 32, engine, OWN),
            free(6, 32),  # a temporary of backward
            free(2, 2),
            free(4, 8),
            alloc(9, 256, frame("at::empty", "??"), frame("Engine", "torch/csrc/engine.cpp")),
            free(9, 256),  # of C++ alone: autograd's too
            alloc(7, 64, ADAM, OWN),  # stays: the optimizer's state
            alloc(8, 128, ADAM, OWN),
            free(8, 128),
            free(5, 16),  # a gradient lives until the optimizer's step
        )
    )
    owners = {tensor.bytes: tensor.owner for tensor in ledger.tensors}
    assert owners == {
        1: "parameter",
        2: "activation",
        4: "temporary",
        8: "logits",
        16: "gradient",
        32: "temporary",
        256: "temporary",
        64: "optimizer_state",
        128: "temporary",
    }
    assert {t.name for t in ledger.tensors if t.bytes in (16, 256)} == {"no frame of yours"}
    modules = {tensor.bytes: tensor.layer for tensor in ledger.tensors}
    assert (modules[2], modules[8]) == ("linear", "")
    phases = [event.phase for event in ledger.events]
    assert phases.count("optimizer") == 4
    assert ledger.events[6].phase == ledger.events[7].phase == "backward"


# The report


def test_the_report_says_who_where_and_what_would_help(tmp_path: Path) -> None:
    snapshot = snapshot_of(alloc(1, 3 * 2**20, FORWARD, OWN), alloc(2, 2**20), free(1, 3 * 2**20))
    path, picture = written(tmp_path / "s.pickle", snapshot), tmp_path / "s.png"
    lines = snapshot_report(str(path), plot=str(picture))
    assert lines[0].startswith("peak: 4.19 MB (4.00 MiB), at event 2 of 3")
    assert any("75.0%  activation" in line for line in lines)
    assert any(line.endswith(f"{MINE}:1 in linear") for line in lines)
    remedies = [line for line in lines if line.startswith("- ")]
    assert [line.partition(":")[0] for line in remedies] == ["- activations", "- gradients"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_picture_is_as_high_as_the_peak() -> None:
    ledger = ledger_of_snapshot(
        snapshot_of(alloc(1, 3 * 10**6, OWN), free(1, 3 * 10**6), alloc(2, 512))
    )
    (ax,) = draw_snapshot(ledger).axes
    assert max(path.vertices[:, 1].max() for path in ax.collections[0].get_paths()) == 3.0
    assert "MB" in ax.get_ylabel()


def test_many_places_are_summed_up() -> None:
    events = [alloc(n, 100, frame("f", line=n)) for n in range(20)]
    text = "\n".join(snapshot_lines(ledger_of_snapshot(snapshot_of(*events))))
    assert "and 8 more places: 800 B" in text


# Files that are something else, or broken


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04", "a zip file, such as torch.save writes"),
        (b"\x1f\x8b\x08", "it is compressed"),
        (b'{"traceEvents": []}', "JSON, such as torch.profiler exports"),
        (b"[]", "JSON"),
        (b"<!DOCTYPE html>", "HTML"),
    ],
)
def test_a_file_of_another_kind_is_named(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableSnapshot, match=f"^a.pickle is not a snapshot .*{said}.*Expected"):
        parse_snapshot(content, "a.pickle")


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (None, "a trace is None; expected a list"),
        ([3], "an event is 3; expected a dict with an action"),
        ([{"action": "alloc", "addr": 1}], "expected whole numbers as its addr and size"),
        ([{"action": "alloc", "addr": 1, "size": -1}], "expected whole numbers"),
        ([{"action": "alloc", "addr": 1, "size": 2.5}], "expected whole numbers"),
        ([{**alloc(1, 2), "frames": [{"name": "f"}]}], "expected a list of dicts with filename"),
        ([{**alloc(1, 2), "frames": "f"}], "a stack is 'f'"),
    ],
)
def test_an_entry_of_another_form_is_named(trace: Any, said: str) -> None:
    with pytest.raises(UnreadableSnapshot, match=said):
        ledger_of_snapshot({"segments": [], "device_traces": [trace]})


@pytest.mark.parametrize(
    ("segments", "said"),
    [
        (5, "segments are 5"),
        ([{"blocks": []}], "whole number as address"),
        ([{"address": 0, "blocks": [{"state": "inactive"}]}], "whole number as size"),
    ],
)
def test_a_segment_of_another_form_is_named(segments: Any, said: str) -> None:
    with pytest.raises(UnreadableSnapshot, match=said):
        ledger_of_snapshot({"segments": segments, "device_traces": [[alloc(1, 2)]]})


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["addr", "size", "frames", "state", "blocks"]), inner)
    ),
    max_leaves=6,
)
ENTRY = st.dictionaries(st.sampled_from(["addr", "size", "frames", "address", "blocks"]), PLAIN)


@given(events=st.lists(ENTRY | PLAIN, max_size=4), segments=PLAIN | st.lists(ENTRY))
def test_no_plain_data_stops_the_reader(events: list[Any], segments: Any) -> None:
    events = [{"action": "alloc", **e} if isinstance(e, dict) else e for e in events]
    try:
        ledger = ledger_of_snapshot({"segments": segments, "device_traces": [events]})
    except ValueError:
        return
    assert ledger.peak_bytes >= 0


def test_the_devices_with_a_recording_are_told() -> None:
    traces = [[], [alloc(1, 2)], [{"action": "snapshot"}], [free(1, 2)]]
    assert recorded_devices({"device_traces": traces}) == [1, 3]


def test_the_peak_without_an_owner_is_that_of_the_other_blocks() -> None:
    snapshot = drawn_snapshot(np.random.default_rng(3), 80)
    ledger = ledger_of_snapshot(snapshot)
    found = remedies_of(ledger)
    assert [one.held_bytes for one in found] == sorted(ledger.by_owner().values(), reverse=True)
    for one in found:
        plurals = {"parameters": "parameter", "gradients": "gradient", "activations": "activation"}
        plurals |= {"temporaries": "temporary", "optimizer state": "optimizer_state"}
        owner = plurals.get(one.owner, one.owner)
        rest = [t for t in ledger.tensors if t.owner != owner]
        live = [
            sum(t.bytes for t in rest if t.birth <= event <= t.death)
            for event in range(len(ledger.events))
        ]
        assert one.peak_without == max(live)
