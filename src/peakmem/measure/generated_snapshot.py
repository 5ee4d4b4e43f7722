"""Writes memory snapshots event by event, in torch's format, without a GPU.

The form is the one that `torch/cuda/memory.py` documents for `_snapshot()`, without the fields that
only torch's own viewer reads. The snapshots are made up: no GPU recorded them.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Frame", "Recording", "frame"]

Frame = dict[str, Any]

_FIRST_ADDRESS = 2**40
_MICROSECONDS = 10  # between two events


def frame(filename: str, line: int, name: str) -> Frame:
    """Return one frame of a stack, as torch records it: a file, a line, and a function."""
    return {"filename": filename, "line": line, "name": name}


class Recording:
    """A trace of one GPU: blocks that are taken and freed, by names of your own.

    >>> recording = Recording()
    >>> recording.alloc("logits", 4096, frame("train.py", 7, "step"))
    >>> recording.free("logits")
    >>> [event["action"] for event in recording.snapshot()["device_traces"][0]]
    ['alloc', 'free_requested', 'free_completed']
    """

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._live: dict[str, tuple[int, int]] = {}  # name -> address and size
        self._next = _FIRST_ADDRESS

    def alloc(self, name: str, n_bytes: int, *frames: Frame) -> None:
        """Take a block; `frames` is its stack, the innermost first.

        Autograd's own thread has no Python stack, so what backward takes comes without frames.
        Raises ValueError if a block of that name is live.
        """
        if name in self._live:
            raise ValueError(f"{name!r} is live; free it first, or give the new block another name")
        self._live[name] = self._next, n_bytes
        self._next += n_bytes
        self._add("alloc", name, frames)

    def free(self, *names: str) -> None:
        """Free blocks, each requested and completed at once; KeyError if one is not live."""
        for name in names:
            self._add("free_requested", name, ())
            self._add("free_completed", name, ())
            del self._live[name]

    def snapshot(self) -> dict[str, Any]:
        """Return what was recorded so far, as `torch.cuda.memory._snapshot` would."""
        return {"segments": [], "device_traces": [list(self._events)]}

    def _add(self, action: str, name: str, frames: tuple[Frame, ...]) -> None:
        address, size = self._live[name]
        self._events.append(
            {
                "action": action,
                "addr": address,
                "size": size,
                "stream": 0,
                "time_us": _MICROSECONDS * len(self._events),
                "frames": list(frames),
            }
        )
