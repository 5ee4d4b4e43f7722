"""Outputs: what a cell showed, as its process sent it, made safe and kept within bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.clean import safe_output

__all__ = ["MAX_TAGS", "error_output", "kept_outputs"]

MAX_TAGS = 200_000  # signs < in the outputs of all cells: HTML is cleaned, which takes time
_MAX_OUTPUTS = 300  # of one cell
_MAX_OUTPUT = 6_000_000  # characters of one cell's outputs as JSON, figures included
_TOO_MUCH = (
    f"over {_MAX_OUTPUT:,} characters of output, or {MAX_TAGS:,} tags of HTML in the notebook"
)


def kept_outputs(outputs: Sequence[Any], tags_left: int) -> tuple[list[dict[str, Any]], int]:
    """Return a cell's outputs, and how many of the notebook's `tags_left` are left after them."""
    kept: list[dict[str, Any]] = []
    left = _MAX_OUTPUT
    for output in outputs[:_MAX_OUTPUTS]:
        try:
            text = json.dumps(output)
        except (TypeError, ValueError):
            continue  # no output that the recorder makes
        left -= len(text)
        tags_left -= text.count("<")
        if left < 0 or tags_left < 0:
            return [error_output("TooMuchOutput", _TOO_MUCH)], tags_left
        if isinstance(output, Mapping):
            kept.append(safe_output(json.loads(text)))
    return kept, tags_left


def error_output(name: str, message: str) -> dict[str, Any]:
    """Return an exception as an output of nbformat 4."""
    return {"output_type": "error", "ename": name, "evalue": message, "traceback": [message]}
