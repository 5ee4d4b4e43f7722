"""The sweep against counting at each event, and a ledger's peak."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.specs import ledger as module
from peakmem.specs.ledger import Event, Ledger, Tensor

EVENTS = (
    Event("embedding", "forward"),
    Event("linear", "forward"),
    Event("linear backward", "backward"),
    Event("adam", "optimizer"),
)
STEP = Ledger(
    (
        Tensor("w", "parameter", (10, 10), "fp32", 400, birth=0, death=3),
        Tensor("m", "optimizer_state", (10, 10), "fp32", 400, birth=0, death=3),
        Tensor("x", "activation", (50,), "fp32", 200, birth=0, death=2),
        Tensor("y", "logits", (300,), "fp32", 1200, birth=1, death=2),
        Tensor("w.grad", "gradient", (10, 10), "fp32", 400, birth=2, death=3),
        Tensor("root", "temporary", (10, 10), "fp32", 400, birth=3, death=3),
    ),
    EVENTS,
)


@st.composite
def ledgers(draw):
    n_events = draw(st.integers(1, 12))
    events = tuple(Event(f"op{i}", "forward") for i in range(n_events))
    lives = st.tuples(*[st.integers(0, n_events - 1)] * 2).map(sorted)
    sizes = st.tuples(st.integers(0, 100), lives)
    return Ledger(
        tuple(
            Tensor(f"t{i}", "temporary", (), "fp32", n_bytes, birth, death)
            for i, (n_bytes, (birth, death)) in enumerate(draw(st.lists(sizes, max_size=15)))
        ),
        events,
    )


@given(ledgers())
def test_the_sweep_is_a_count_at_each_event(ledger):
    counted = [
        sum(t.bytes for t in ledger.tensors if t.birth <= at <= t.death)
        for at in range(len(ledger.events))
    ]
    assert list(ledger.live_bytes) == counted
    assert ledger.peak_bytes == max(counted)
    assert [n_bytes for _, n_bytes in ledger.timeline()] == counted
    assert sum(ledger.by_owner().values()) == ledger.peak_bytes
    assert sum(t.bytes for t in ledger.live(len(counted) - 1)) == counted[-1]


def test_peak_phase_and_owners():
    assert STEP.live_bytes == (1000, 2200, 2600, 1600)
    assert (STEP.peak_bytes, STEP.peak_event, STEP.peak_phase) == (2600, 2, "backward")
    assert STEP.by_owner() == {
        "parameter": 400,
        "gradient": 400,
        "optimizer_state": 400,
        "activation": 200,
        "logits": 1200,
    }
    assert STEP.by_owner(0) == {"parameter": 400, "optimizer_state": 400, "activation": 200}
    assert STEP.timeline()[3] == (Event("adam", "optimizer"), 1600)
    assert STEP.last_event("forward") == 1


def test_the_peak_in_words():
    assert STEP.explain(largest=1).splitlines() == [
        "Peak: 2.60 KB (2.54 KiB), in the backward phase, at linear backward.",
        " 46.2%  logits: 1.20 KB (1.17 KiB)",
        " 15.4%  parameters: 400 B",
        " 15.4%  gradients: 400 B",
        " 15.4%  optimizer state: 400 B",
        "  7.7%  activations saved for backward: 200 B",
        "large: y (300, fp32): 1.20 KB (1.17 KiB)",
    ]


def test_a_ledger_of_nothing_has_a_peak_of_nothing():
    empty = Ledger((), EVENTS)
    assert (empty.peak_bytes, empty.by_owner()) == (0, {})
    assert empty.explain() == "Peak: 0 B, in the forward phase, at embedding."
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"owner": "weights"}, "owner 'weights' is unknown; use one of parameter"),
        ({"bytes": -1}, "expected bytes >= 0"),
        ({"birth": -1}, "birth <= death, but got 4 bytes from event -1 to 0"),
        ({"birth": 1}, "birth <= death"),
    ],
)
def test_tensors_that_cannot_be_are_refused(change, message):
    tensor = {"name": "t", "owner": "parameter", "shape": (1,), "dtype": "fp32", "bytes": 4}
    with pytest.raises(ValueError, match=message):
        Tensor(**{**tensor, "birth": 0, "death": 0, **change})


def test_ledgers_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="without events"):
        Ledger((), ())
    with pytest.raises(ValueError, match="w lives until event 3, but the last event is 0"):
        Ledger(STEP.tensors, EVENTS[:1])
    with pytest.raises(ValueError, match="has no optimizer phase; it has forward"):
        Ledger((), EVENTS[:1]).last_event("optimizer")
    with pytest.raises(ValueError, match="an event from 0 to 3, but got 4"):
        STEP.live(4)
