"""Redacts the lines of hidden tests from what students are shown.

Hidden tests run in the student's process, so a determined student can read them there. Redaction
covers only what an honest run shows of them: lines of tracebacks, and lines that quote them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

__all__ = ["withheld", "without"]

_WITHHELD = "[a line that quotes a hidden test is left out]"
_SHORT = 8  # characters; a shorter line, such as `x = 1`, may occur elsewhere by chance
# How IPython numbers the lines of a traceback: `----> 3 assert f(2) == 4`.
_NUMBERED = re.compile(r"^(?:-*>)?\s*\d+ ?")

Json = dict[str, Any]


def without(hidden: Collection[str], text: str) -> str:
    r"""Return the text with each line that quotes a line of `hidden` replaced by a remark.

    >>> without({"assert f(2) == 4"}, "before\n----> 1 assert f(2) == 4")
    'before\n[a line that quotes a hidden test is left out]'
    """
    quoted = [line for line in hidden if len(line) >= _SHORT]
    return "\n".join(
        _WITHHELD if any(secret in line for secret in quoted) else line for line in text.split("\n")
    )


def withheld(outputs: Sequence[Mapping[str, Any]], hidden: Collection[str], own: str) -> list[Json]:
    """Return a cell's outputs without lines of `hidden`, except lines that the student wrote too.

    A traceback loses every frame that shows a hidden line, however short.
    """
    secrets = set(hidden) - {line.strip() for line in own.splitlines()}
    return (
        [_withheld(output, secrets) for output in outputs] if secrets else list(map(dict, outputs))
    )


def _withheld(output: Mapping[str, Any], secrets: set[str]) -> Json:
    kind = output["output_type"]
    if kind == "stream":
        return {**output, "text": without(secrets, output["text"])}
    if kind == "error":
        frames = [frame for frame in output["traceback"] if not _shows(frame, secrets)]
        kept = [without(secrets, frame) for frame in frames]
        return {**output, "evalue": without(secrets, output["evalue"]), "traceback": kept}
    texts = {
        k: v if k.startswith("image/") else without(secrets, v) for k, v in output["data"].items()
    }
    return {**output, "data": texts}


def _shows(frame: str, secrets: set[str]) -> bool:
    return any(_NUMBERED.sub("", line).strip() in secrets for line in frame.split("\n"))
