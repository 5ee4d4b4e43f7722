"""Bounds the outputs of a notebook's cells, and makes them safe."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.base.cleaning import safe_output
from autograder.base.limits import OUTPUT_BYTES

__all__ = ["Kept", "error_output"]

_MAX_TAGS = 200_000  # `<` signs in the outputs of all cells, since cleaning HTML takes time
_MAX_OUTPUTS = 300  # outputs of one cell
_TOO_MUCH = (
    f"This cell's output was left out: the outputs of a notebook may take at most "
    f"{OUTPUT_BYTES / 2**20:g} MiB together, and hold {_MAX_TAGS:,} HTML tags."
)


@dataclass
class Kept:
    """The remaining allowance for all outputs of a notebook."""

    #: HTML tags.
    tags_left: int = _MAX_TAGS
    #: Bytes of JSON.
    bytes_left: int = OUTPUT_BYTES

    def keep(self, outputs: Sequence[Any]) -> list[dict[str, Any]]:
        """Return a cell's outputs; if they are too large, a single one that says so."""
        kept: list[dict[str, Any]] = []
        left = self.bytes_left
        for output in outputs[:_MAX_OUTPUTS]:
            try:
                text = json.dumps(output)
            except (TypeError, ValueError):
                continue  # the recorder never makes such an output
            self.tags_left -= text.count("<")
            if len(text) > left or self.tags_left < 0:
                return [error_output("TooMuchOutput", _TOO_MUCH)]
            if isinstance(output, Mapping):
                kept.append(safe_output(json.loads(text)))
                left -= len(html.escape(json.dumps(kept[-1])))  # its size wherever it is stored
        if left < 0:
            return [error_output("TooMuchOutput", _TOO_MUCH)]
        self.bytes_left = left
        return kept


def error_output(name: str, message: str) -> dict[str, Any]:
    """Return an exception as an output of nbformat 4."""
    return {"output_type": "error", "ename": name, "evalue": message, "traceback": [message]}
