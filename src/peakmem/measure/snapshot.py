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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from peakmem.core.errors import PeakmemError
from peakmem.specs.ledger import Event, Ledger, Owner, Phase, Tensor

__all__ = ["BEFORE", "UnreadableSnapshot", "ledger_of_snapshot", "read_snapshot"]

#: The name of blocks allocated before the recording.
BEFORE = "before the recording"
_ACTIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")
_BUILDERS = ("__init__", "reset_parameters", "_apply", "_load_from_state_dict")
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

    Raises UnreadableSnapshot if the file contains anything except plain data, or no snapshot, and
    OSError if it can't be opened.
    """
    content = Path(path).read_bytes()
    try:
        found = _PlainUnpickler(io.BytesIO(content)).load()
    except Exception as error:  # a pickle from elsewhere may raise anything
        raise UnreadableSnapshot(
            f"{path} is not a snapshot of plain data: {error}. Give a file that "
            "torch.cuda.memory._dump_snapshot wrote."
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("device_traces"), list):
        raise UnreadableSnapshot(
            f"{path} has no device_traces. Record with torch.cuda.memory._record_memory_history() "
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

    Raises ValueError if there is no such device, or if nothing was recorded on it.
    """
    traces = snapshot["device_traces"]
    if not 0 <= device < len(traces):
        raise ValueError(
            f"the snapshot has no device {device}; give a device from 0 to {len(traces) - 1}"
        )
    trace = [e for e in traces[device] if e["action"] in ("alloc", "free_completed")]
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
    tensors = [_tensor(block, phases, last) for block in blocks]
    return Ledger(tuple(tensors), tuple(events))


def _standing(snapshot: Mapping[str, Any], device: int) -> dict[int, tuple[int, Any]]:
    """Return size and frames of each block in use when the snapshot ends, by address."""
    found = {}
    for segment in snapshot.get("segments", []):
        address = segment["address"]
        for block in segment["blocks"] if segment.get("device", 0) == device else ():
            if block["state"] in _ACTIVE:
                found[block.get("address", address)] = block["size"], block.get("frames") or []
            address += block["size"]
    return found


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


def _tensor(block: _Block, phases: Sequence[Phase], last: int) -> Tensor:
    own = next((frame for frame in block.frames if _is_yours(frame)), None)
    name = f"{own['filename']}:{own['line']}" if own else "no frame of yours"
    stands = block.death < 0
    return Tensor(
        name=BEFORE if block.birth == 0 and not block.frames else name,
        owner=_owner(block, phases, last),
        shape=(block.size,),
        dtype="uint8",
        bytes=block.size,
        birth=block.birth,
        death=last if stands else block.death,
        layer=_module(block.frames),
    )


def _owner(block: _Block, phases: Sequence[Phase], last: int) -> Owner:
    """Return a block's owner, from its frames and the phases that it lives through."""
    if block.birth == 0 and not block.frames:
        return "temporary"
    end = last if block.death < 0 else block.death
    phase, later = phases[block.birth], set(phases[block.birth : end + 1])
    names = {frame["name"] for frame in block.frames}
    if phase == "optimizer":
        return "optimizer_state" if block.death < 0 else "temporary"
    if phase == "backward":
        return "gradient" if block.death < 0 or "optimizer" in later else "temporary"
    if names & set(_LOSSES):
        return "logits"
    if block.death < 0 and names & set(_BUILDERS):
        return "parameter"
    return "activation" if "backward" in later else "temporary"


def _module(frames: Sequence[Mapping[str, Any]]) -> str:
    """Return the innermost `torch.nn` module whose forward is in the stack, such as "linear"."""
    for frame in frames:
        folder, _, file = frame["filename"].rpartition("/")
        if frame["name"] == "forward" and folder.endswith("/torch/nn/modules"):
            return str(file.removesuffix(".py"))
    return ""
