"""Memory snapshots of PyTorch's CUDA allocator, read as plain data and turned into a Ledger.

`torch.cuda.memory._dump_snapshot` pickles the dict that `_snapshot` returns: dicts, lists, strings
and numbers. `read_snapshot` reads only these, so an untrusted file can't run code. It needs neither
torch nor a GPU. `torch/cuda/memory.py` documents the format.

A snapshot has stacks, not tensors, so owners follow from stack frames. A block allocated before the
recording has no stack, and counts as a temporary named `BEFORE`.
"""

from __future__ import annotations

import io
import pickle
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from peakmem.core.errors import PeakmemError
from peakmem.specs.ledger import Event, Ledger, Owner, Phase, Tensor

__all__ = [
    "BEFORE",
    "UnreadableSnapshot",
    "ledger_of_snapshot",
    "parse_snapshot",
    "read_snapshot",
    "recorded_devices",
]

#: The name of blocks allocated before the recording.
BEFORE = "before the recording"
_ACTIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")
_BUILDERS = ("__init__", "reset_parameters", "_apply", "_load_from_state_dict")
_OTHERS = {  # the beginnings of other kinds of files -> what they are
    b"PK": "it is a zip file, such as torch.save writes for weights",
    b"\x1f\x8b": "it is compressed; unpack it with gunzip first",
    b"{": "it is JSON, such as torch.profiler exports",
    b"[": "it is JSON, such as torch.profiler exports",
    b"<": "it is HTML, such as a page of torch's memory viewer",
}
_LOSSES = ("cross_entropy", "log_softmax", "nll_loss")


class UnreadableSnapshot(PeakmemError, ValueError):
    """A file doesn't contain a memory snapshot, or contains more than plain data."""


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles numbers, strings and their containers; refuses classes and functions."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to an object outside of the file")


def read_snapshot(path: str | Path) -> dict[str, Any]:
    """Return the snapshot in a file that `torch.cuda.memory._dump_snapshot` wrote.

    Raises UnreadableSnapshot as `parse_snapshot` does, and OSError if the file can't be opened.
    """
    return parse_snapshot(Path(path).read_bytes(), str(path))


def parse_snapshot(content: bytes, name: str) -> dict[str, Any]:
    """Return the snapshot in a file's content; `name` is what messages call it.

    Raises UnreadableSnapshot if the content isn't plain data, or isn't a snapshot.
    """
    try:
        found = _PlainUnpickler(io.BytesIO(content)).load()
    except Exception as error:  # a pickle from elsewhere may raise anything
        looks = next((what for start, what in _OTHERS.items() if content.startswith(start)), error)
        raise UnreadableSnapshot(
            f"{name} is not a snapshot of plain data: {str(looks).rstrip('.')}. Expected a file "
            "that torch.cuda.memory._dump_snapshot wrote."
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("device_traces"), list):
        raise UnreadableSnapshot(
            f"{name} has no device_traces. Record with torch.cuda.memory._record_memory_history() "
            "before the step, and dump the snapshot after it."
        )
    return found


@dataclass
class _Block:
    """An allocation: its stack, and the events between which it is live."""

    size: int
    frames: Sequence[Mapping[str, Any]]
    birth: int
    death: int = -1  # not freed yet


def ledger_of_snapshot(snapshot: Mapping[str, Any], device: int = 0) -> Ledger:
    """Return every block of a GPU's trace as a tensor with owner, source line and module.

    A tensor's name is "file:line" of the innermost Python frame outside torch; its layer is the
    kind of `torch.nn` module whose forward made it. A block is live from its `alloc` until its
    `free_completed`. Blocks without a recorded `alloc`, known from `segments` or from their
    `free_completed`, are older than the recording.

    Raises ValueError if there is no such device, or nothing was recorded on it, and
    UnreadableSnapshot if an entry isn't of torch's form.
    """
    traces = snapshot["device_traces"]
    if not 0 <= device < len(traces):
        raise ValueError(f"the snapshot has no device {device}; it has {len(traces)} devices")
    trace = _events(traces[device])
    if not trace:
        raise ValueError(
            f"the snapshot records no allocation on device {device}. Call "
            "torch.cuda.memory._record_memory_history() before the step."
        )
    blocks = list(_blocks(trace, _standing(snapshot, device)))
    last = len(trace)  # event 0 is the recording's start
    phases = _phases(trace)
    events = [Event("start", "forward")]
    events += [Event(e["action"], p) for e, p in zip(trace, phases[1:], strict=True)]
    when = {
        kind: [n for n, phase in enumerate(phases) if phase == kind]
        for kind in ("backward", "optimizer")
    }
    tensors = [_tensor(block, phases, when, last) for block in blocks]
    return Ledger(tuple(tensors), tuple(events))


def recorded_devices(snapshot: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the GPUs of which a snapshot records allocations."""
    return [n for n, trace in enumerate(snapshot["device_traces"]) if _events(trace)]


def _events(trace: Any) -> list[dict[str, Any]]:
    """What was taken and freed, in order; UnreadableSnapshot for entries of another form."""
    if not isinstance(trace, list):
        raise UnreadableSnapshot(f"a trace is {_short(trace)}; expected a list of events")
    for event in trace:
        if not isinstance(event, dict) or not isinstance(event.get("action"), str):
            raise UnreadableSnapshot(f"an event is {_short(event)}; expected a dict with an action")
    found = [event for event in trace if event["action"] in ("alloc", "free_completed")]
    for event in found:
        if not all(_is_count(event.get(key)) for key in ("addr", "size")):
            raise UnreadableSnapshot(
                f"an event is {_short(event)}; expected whole numbers as its addr and size"
            )
        _check_frames(event)
    return found


def _check_frames(entry: Mapping[str, Any]) -> None:
    frames = entry.get("frames") or []
    if not isinstance(frames, list) or not all(map(_is_frame, frames)):
        raise UnreadableSnapshot(
            f"a stack is {_short(frames)}; expected a list of dicts with filename, line and name"
        )


def _is_frame(frame: Any) -> bool:
    return (
        isinstance(frame, dict)
        and all(isinstance(frame.get(key), str) for key in ("filename", "name"))
        and _is_count(frame.get("line"))
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:60]}..."


def _standing(snapshot: Mapping[str, Any], device: int) -> dict[int, tuple[int, Any]]:
    """Return size and frames of each block in use when the snapshot ends, by address."""
    found = {}
    for segment in _entries(snapshot.get("segments") or [], "segments", "address"):
        address = segment["address"]
        blocks = _entries(segment.get("blocks") or [], "blocks", "size")
        for block in blocks if segment.get("device", 0) == device else ():
            if block.get("state") in _ACTIVE:
                _check_frames(block)
                found[block.get("address", address)] = block["size"], block.get("frames") or []
            address += block["size"]
    return found


def _entries(value: Any, name: str, key: str) -> list[dict[str, Any]]:
    """A list of dicts that each have a whole number as `key`; UnreadableSnapshot for others."""
    if isinstance(value, list) and all(
        isinstance(e, dict) and _is_count(e.get(key)) for e in value
    ):
        return value
    raise UnreadableSnapshot(
        f"{name} are {_short(value)}; expected a list of dicts, each with a whole number as {key}"
    )


def _blocks(
    trace: Sequence[Mapping[str, Any]], standing: Mapping[int, tuple[int, Any]]
) -> Iterator[_Block]:
    """Yield each block once; events are numbered from 1."""
    live: dict[int, _Block] = {}
    for number, event in enumerate(trace, 1):
        if event["action"] == "alloc":
            live[event["addr"]] = _Block(event["size"], event.get("frames") or [], number)
            continue
        block = live.pop(event["addr"], None) or _Block(event["size"], [], 0)
        block.death = number - 1
        yield block
    yield from live.values()
    for address, (size, frames) in standing.items():
        if address not in live:
            yield _Block(size, frames, 0)


# What frames reveal

_When = Mapping[str, Sequence[int]]  # phase -> its events


def _is_yours(frame: Mapping[str, Any]) -> bool:
    """Whether a frame is Python outside torch; with stacks="all", some frames are C++."""
    return frame["filename"].endswith(".py") and "/torch/" not in frame["filename"]


def _phase(frames: Sequence[Mapping[str, Any]]) -> Phase:
    """Return the phase of an allocation.

    Autograd runs backward on a thread of its own, whose stacks have no Python frames.
    """
    if any("/torch/optim/" in frame["filename"] for frame in frames):
        return "optimizer"
    python = [frame for frame in frames if frame["filename"].endswith(".py")]
    backward = any(
        "/torch/autograd/" in frame["filename"] or frame["name"] == "backward" for frame in python
    )
    return "backward" if backward or not python else "forward"


def _phases(trace: Sequence[Mapping[str, Any]]) -> list[Phase]:
    """Return each event's phase, the start's first; a free has the phase of the last allocation."""
    phases: list[Phase] = ["forward"]
    for event in trace:
        is_alloc = event["action"] == "alloc"
        phases.append(_phase(event.get("frames") or []) if is_alloc else phases[-1])
    return phases


def _tensor(block: _Block, phases: Sequence[Phase], when: _When, last: int) -> Tensor:
    own = next((frame for frame in block.frames if _is_yours(frame)), None)
    name = f"{own['filename']}:{own['line']}" if own else "no frame of yours"
    return Tensor(
        name=BEFORE if block.birth == 0 and not block.frames else name,
        owner=_owner(block, phases[block.birth], when),
        shape=(block.size,),
        dtype="uint8",
        bytes=block.size,
        birth=block.birth,
        death=last if block.death < 0 else block.death,
        layer=_module(block.frames),
    )


def _owner(block: _Block, phase: Phase, when: _When) -> Owner:
    """Return a block's owner, from its frames and the phases that it lives through."""
    if block.birth == 0 and not block.frames:
        return "temporary"
    stands = block.death < 0
    names = {frame["name"] for frame in block.frames}
    if phase == "optimizer":
        return "optimizer_state" if stands else "temporary"
    if phase == "backward":
        return "gradient" if stands or _meets(block, when["optimizer"]) else "temporary"
    if names & set(_LOSSES):
        return "logits"
    if stands and names & set(_BUILDERS):
        return "parameter"
    return "activation" if _meets(block, when["backward"]) else "temporary"


def _meets(block: _Block, events: Sequence[int]) -> bool:
    """Whether one of these events (in ascending order) happens while the block lives."""
    at = bisect_left(events, block.birth)
    return at < len(events) and (block.death < 0 or events[at] <= block.death)


def _module(frames: Sequence[Mapping[str, Any]]) -> str:
    """Return the innermost `torch.nn` module whose forward is in the stack, such as "linear"."""
    for frame in frames:
        folder, _, file = frame["filename"].rpartition("/")
        if frame["name"] == "forward" and folder.endswith("/torch/nn/modules"):
            return str(file.removesuffix(".py"))
    return ""
