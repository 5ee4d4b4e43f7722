"""Describes one call of a probe in a student's process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autograder.sandbox.host.in_process import Ask

__all__ = ["Call"]


@dataclass(frozen=True)
class Call:
    """One call of a probe."""

    #: The probe, as `module:function`.
    probe: str
    #: Its keyword arguments.
    inputs: Mapping[str, Any]
    #: Replies to its questions, if it asks any.
    ask: Ask | None
    #: The seconds that it may be charged.
    seconds: float
    #: The name of the kept state that provides the notebook's names.
    state: str
    #: The number of ranks that it starts.
    ranks: int = 0

    def request(self) -> dict[str, Any]:
        """Return the request that makes the process run the probe."""
        return {
            "probe": self.probe,
            "inputs": dict(self.inputs),
            "seconds": self.seconds,
            "state": self.state,
        }
