"""Generated snapshots: in torch's form, with the sizes of GPT-2's tensors."""

from __future__ import annotations

from typing import Any

import pytest
from torch.cuda import _memory_viz

from peakmem.measure.generated_gpt import LAYERS, generated_gpt
from peakmem.measure.generated_snapshot import Recording, frame
from peakmem.measure.snapshot import ledger_of_snapshot
from peakmem.specs.ledger import Ledger
from peakmem.specs.models import model, parameter_count

KINDS: list[dict[str, Any]] = [{}, {"blocks": True}, {"blocks": True, "loss_chunks": 8}]
LOGITS = 4 * 4 * 1024 * 50257
SCORES = 4 * 4 * 12 * 1024**2


def ledger(**kind: Any) -> Ledger:
    return ledger_of_snapshot(generated_gpt(**kind))


@pytest.mark.parametrize("kind", KINDS)
def test_what_lasts_is_what_gpt2_has(kind: dict[str, Any]) -> None:
    """At the end of a step: parameters, and two moments for each."""
    found = ledger(**kind)
    n_parameters = sum(parameter_count(model("gpt2")).values())
    assert found.by_owner(len(found.events) - 1) == {
        "parameter": 4 * n_parameters,
        "optimizer_state": 8 * n_parameters,
    }
    before_the_update = found.last_event("backward")
    gradients = [t for t in found.live(before_the_update) if t.owner == "gradient"]
    assert sum(t.bytes for t in gradients) == 4 * n_parameters


@pytest.mark.parametrize("kind", KINDS)
def test_torchs_own_viewer_reads_it(kind: dict[str, Any]) -> None:
    assert "MEM[1099511627776:147.2MiB]" in _memory_viz.trace(generated_gpt(**kind))


def test_blocks_keep_no_probabilities_and_chunks_no_logits() -> None:
    plain, blocks, chunks = (ledger(**kind) for kind in KINDS)
    sizes = [sorted({t.bytes for t in found.tensors}) for found in (plain, blocks, chunks)]
    assert SCORES in sizes[0]
    assert SCORES not in sizes[1]
    assert LOGITS in sizes[0]
    assert LOGITS in sizes[1]
    assert sizes[2][-1] < LOGITS
    waiting = [t for t in plain.live() if t.bytes == SCORES]
    assert len(waiting) == LAYERS, "each layer's probabilities wait for backward"
    assert plain.peak_bytes - blocks.peak_bytes == LAYERS * SCORES
    assert blocks.peak_bytes > chunks.peak_bytes
    assert round(LAYERS * SCORES / 1e9, 1) == 2.4, "lecture 5 says so"


def test_a_recording_knows_what_is_live() -> None:
    recording = Recording()
    recording.alloc("x", 8, frame("train.py", 1, "f"))
    with pytest.raises(ValueError, match="'x' is live; free it first"):
        recording.alloc("x", 8)
    recording.free("x")
    recording.alloc("x", 16)
    with pytest.raises(KeyError):
        recording.free("y")
    assert ledger_of_snapshot(recording.snapshot()).live_bytes == (0, 8, 0, 16)
