"""Outputs: what a student's process says a cell showed, brought into a form that is safe to keep."""

from __future__ import annotations

import base64
import binascii
from typing import Any

__all__ = ["clean"]

_TEXT_TYPES = ("text/plain", "text/markdown", "text/latex", "text/html")
_MAX_TEXT = 100_000  # characters of one text
_MAX_IMAGE = 4 * 2**20  # base64 characters of one picture
_MAX_OUTPUTS = 300
_PNG = b"\x89PNG\r\n\x1a\n"


def clean(outputs: list[Any]) -> list[dict[str, Any]]:
    """Return the outputs in nbformat 4's form, with nothing in them but text and PNG pictures.

    The list was made in the student's process, so anything may stand in it; what has not the form
    of an output is left out.
    """
    cleaned = (_output(output) for output in outputs[:_MAX_OUTPUTS])
    return [output for output in cleaned if output is not None]


def _output(output: Any) -> dict[str, Any] | None:
    if not isinstance(output, dict):
        return None
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": _text(output.get("text"))}
    if kind == "error":
        trace = output.get("traceback")
        lines = [_text(line) for line in trace[:100]] if isinstance(trace, list) else []
        name, value = _text(output.get("ename")), _text(output.get("evalue"))
        return {"output_type": "error", "ename": name, "evalue": value, "traceback": lines}
    if kind in ("display_data", "execute_result"):
        shown = {"output_type": kind, "data": _data(output.get("data")), "metadata": {}}
        if kind == "execute_result":
            shown["execution_count"] = None
        return shown
    return None


def _data(data: Any) -> dict[str, str]:
    if not isinstance(data, dict):
        return {}
    kept = {mime: _text(data[mime]) for mime in _TEXT_TYPES if mime in data}
    picture = data.get("image/png")
    if isinstance(picture, str) and len(picture) <= _MAX_IMAGE and _is_png(picture):
        kept["image/png"] = "".join(picture.split())
    return kept


def _is_png(picture: str) -> bool:
    try:
        return base64.b64decode(picture, validate=False).startswith(_PNG)
    except (binascii.Error, ValueError):
        return False


def _text(value: Any) -> str:
    return value[:_MAX_TEXT] if isinstance(value, str) else ""
