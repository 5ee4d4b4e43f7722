"""Answers probes in this process: for tests, and for stock `nbgrader autograde`.

Stock grading runs in the student's kernel anyway. `autograder.sandbox.host.student` is the safe
alternative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autograder.model.task import Answer
from peakmem.core import serialization
from peakmem.probes import call_probe, describe, is_mark

__all__ = ["Ask", "LocalStudent"]

Ask = Callable[[Any], Any]


class LocalStudent:
    """A student whose names live in this process. It provides no isolation and no limits."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def run(self, probe: str, inputs: Mapping[str, Any], ask: Ask | None = None) -> Answer:
        """Run the probe (`module:function`) on plain inputs, and return its answer."""
        asked: list[tuple[Any, Any]] = []

        def record(question: Any) -> Any:
            if is_mark(question):
                return None  # nothing watches ranks from outside here
            if ask is None:
                raise LookupError(f"this task answers no questions, but was asked {question!r}")
            reply = ask(question)
            asked.append((question, reply))
            return reply

        try:
            # Encoded and decoded, so that judges see the same values as from the sandbox.
            arguments = serialization.decode(serialization.encode(dict(inputs)))
            value = serialization.decode(
                serialization.encode(call_probe(probe, self._names, arguments, record))
            )
        except (Exception, SystemExit) as error:  # sys.exit() must not end the grading
            return Answer(raised=describe(error), asked=tuple(asked))
        return Answer(value=value, asked=tuple(asked))
