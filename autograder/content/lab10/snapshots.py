"""Exercise: what holds the peak of a recorded memory snapshot, by each allocation's stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["drawn_snapshot", "holders", "who_holds_the_peak"]

Snapshot = Mapping[str, Any]
Event = Mapping[str, Any]
Holders = list[tuple[str, int]]


def _owner(event: Event) -> str:
    """The innermost frame that isn't torch's."""
    for frame in event["frames"]:
        if "/torch/" not in frame["filename"]:
            return f"{frame['filename']}:{frame['line']}"
    return "unknown"


def _of_innermost(event: Event) -> str:
    frames = event["frames"]
    return f"{frames[0]['filename']}:{frames[0]['line']}" if frames else "unknown"


def _of_outermost(event: Event) -> str:
    own = [f for f in event["frames"] if "/torch/" not in f["filename"]]
    return f"{own[-1]['filename']}:{own[-1]['line']}" if own else "unknown"


def _summed(blocks: Mapping[Any, tuple[str, int]], merge: bool = True) -> Holders:
    owners: dict[str, int] = {}
    for owner, size in blocks.values():
        owners[owner] = size + (owners.get(owner, 0) if merge else 0)
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


def holders(
    snapshot: Snapshot,
    *,
    frees: str = "free_completed",
    owner: Callable[[Event], str] = _owner,
    at: str = "peak",
    merge: bool = True,
    last: bool = False,
) -> Holders:
    """The owners of the memory allocated at the peak; options are mistakes."""
    live: dict[int, tuple[str, int]] = {}
    total, most, found = 0, 0, []
    everything: dict[int, tuple[str, int]] = {}
    for number, event in enumerate(snapshot["device_traces"][0]):
        if event["action"] == "alloc":
            live[event["addr"]] = everything[number] = (owner(event), event["size"])
            total += event["size"]
        elif event["action"] == frees and event["addr"] in live:
            total -= live.pop(event["addr"])[1]
        if total > most or (last and total == most):
            most, found = total, _summed(live, merge)
    if at == "peak":
        return found
    return _summed(live if at == "end" else everything)


def _ascending(snapshot: Snapshot) -> Holders:
    return holders(snapshot)[::-1]


def _largest_alone(snapshot: Snapshot) -> Holders:
    return holders(snapshot)[:1]


# Snapshots in the form that torch.cuda.memory documents for `_snapshot()`, its C++ frames left out.

_PACKAGES = "/opt/env/lib/python3.12/site-packages"
# Only `/torch/` marks torch's own files, not `torch` or the packages' folder.
_FILES = (
    "/home/you/train.py",
    "/home/you/torch_model.py",
    "/home/you/mytorch/loss.py",
    f"{_PACKAGES}/tiny/data.py",
)
_TORCH = (
    f"{_PACKAGES}/torch/nn/functional.py",
    f"{_PACKAGES}/torch/optim/adam.py",
    "/home/you/src/torch/nn/modules/linear.py",
)
_OTHERS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")


def _frames(rng: np.random.Generator) -> list[dict[str, Any]]:
    """A stack, innermost frame first: some frames of torch, then one or two of the program."""
    own = [
        {"filename": str(rng.choice(_FILES)), "line": int(rng.integers(1, 9)), "name": "forward"}
        for _ in range(int(rng.integers(1, 3)))
    ]
    filename = str(rng.choice(_TORCH))
    of_torch = {"filename": filename, "line": int(rng.integers(100, 999)), "name": "linear"}
    main = {"filename": "/home/you/main.py", "line": 3, "name": "<module>"}
    return [of_torch] * int(rng.integers(0, 3)) + own + [main]


def _alloc(addr: int, size: int, frames: list[dict[str, Any]]) -> dict[str, Any]:
    return {"action": "alloc", "addr": addr, "size": size, "stream": 0, "frames": frames}


def _free(action: str, addr: int, size: int) -> dict[str, Any]:
    return {"action": action, "addr": addr, "size": size, "stream": 0, "frames": []}


def _snapshot(events: list[dict[str, Any]], others: list[dict[str, Any]]) -> dict[str, Any]:
    timed = [{**event, "time_us": 10 * number} for number, event in enumerate(events)]
    return {"segments": [], "device_traces": [timed, others]}


def drawn_snapshot(rng: np.random.Generator, n_events: int) -> dict[str, Any]:
    """A snapshot of random events: reused addresses, and late, unknown or missing frees."""
    events: list[dict[str, Any]] = []
    live: dict[int, int] = {}
    asked: list[int] = []  # free requested, but not completed yet
    for number in range(n_events):
        kind = rng.random()
        rising = number < 0.6 * n_events
        if number % 9 == 4:  # a segment's address is that of its first block
            addr = int(rng.choice([7, *live]))
            events.append(_free(str(rng.choice(_OTHERS)), addr, 2**30))
        elif kind < (0.75 if rising else 0.3) or not live:
            addr = next(a for a in range(4096, 10**6, 512) if a not in live)
            live[addr] = 512 * int(rng.integers(1, 200))
            frames = [] if rng.random() < 0.08 else _frames(rng)
            if frames and rng.random() < 0.08:
                frames = frames[:1] if "/torch/" in frames[0]["filename"] else []
            events.append(_alloc(addr, live[addr], frames))
        elif asked and kind < 0.9:
            addr = asked.pop(0)
            events.append(_free("free_completed", addr, live.pop(addr)))
        else:
            waiting = [a for a in live if a not in asked]
            if waiting:
                addr = int(rng.choice(waiting))
                asked.append(addr)
                events.append(_free("free_requested", addr, live[addr]))
    events.insert(1, _free("free_completed", 2**40, 2**30))  # it existed before the recording
    return _snapshot(events, [_alloc(512, 2**35, _frames(rng))])


def _tie() -> dict[str, Any]:
    """Two equally high moments: the first is the peak."""

    def of(name: str) -> list[dict[str, Any]]:
        return [{"filename": f"/home/you/{name}.py", "line": 1, "name": "f"}]

    events = [
        _alloc(512, 1024, of("b")),
        _alloc(4096, 1024, of("a")),
        _free("free_requested", 512, 1024),
        _free("free_completed", 512, 1024),
        _alloc(512, 1024, of("late")),
    ]
    return _snapshot(events, [])


def _tie_of_lines() -> dict[str, Any]:
    """Owners of equal bytes in one file: as text, line 10 comes before line 9."""
    frames = [
        [{"filename": "/home/you/train.py", "line": line, "name": "f"}] for line in (9, 10, 100)
    ]
    return _snapshot([_alloc(512 * i, 1024, of) for i, of in enumerate(frames, 1)], [])


def _cases(rng: np.random.Generator) -> list[Case]:
    drawn = [drawn_snapshot(rng, int(rng.integers(40, 90))) for _ in range(5)]
    # Ties in bytes and in time, and a recording without events.
    fixed = [[_tie()], [_tie_of_lines()], [_snapshot([], [])]]
    return [
        *(Case(("value",), {"calls": [[snapshot]]}) for snapshot in drawn),
        Case(
            ("value",),
            {"calls": fixed},
            fixed=True,
            about="two owners hold equally much, or two moments are equally high, or there are no "
            "events.",
        ),
    ]


who_holds_the_peak = Task(
    id="lab10-who_holds_the_peak",
    parts={"value": 3},
    defines=("who_holds_the_peak",),
    probe="who_holds_the_peak",
    stretch=True,
    cases=_cases,
    judge=by_reference(
        holders,
        {
            "freed_when_requested": lambda s: holders(s, frees="free_requested"),
            "last_peak": lambda s: holders(s, last=True),
            "never_freed": lambda s: holders(s, frees="never"),
            "live_at_the_end": lambda s: holders(s, at="end"),
            "all_allocations": lambda s: holders(s, at="all"),
            "innermost_frame": lambda s: holders(s, owner=_of_innermost),
            "outermost_frame": lambda s: holders(s, owner=_of_outermost),
            "last_block_of_an_owner": lambda s: holders(s, merge=False),
            "smallest_first": _ascending,
            "largest_alone": _largest_alone,
        },
        write=lambda snapshot: f"a snapshot of {len(snapshot['device_traces'][0])} events",
        item="entry",
    ),
    mistakes={
        "freed_when_requested": "A block is in use until free_completed, not until free_requested.",
        "last_peak": "Among moments with equal sums, you take a later one. The first is the peak.",
        "never_freed": "You never subtract a block: look at the action free_completed.",
        "live_at_the_end": "You return the blocks that are live at the end. Remember which were "
        "live when the sum was largest.",
        "all_allocations": "You add up all allocations, including freed ones.",
        "innermost_frame": "Your owner is the innermost frame, which is often torch's. Take the "
        'first frame whose file name has no "/torch/" in it.',
        "outermost_frame": "Your owner is the outermost frame. Frames start with the innermost: "
        "take the first that isn't torch's.",
        "last_block_of_an_owner": "Add up the blocks of an owner with several blocks.",
        "smallest_first": "Sort the other way: the largest owner first.",
        "largest_alone": "You return the largest owner only. List all owners with live blocks.",
    },
)
