"""Student: the one primitive of grading. A student's notebook answers probes, and no more.

`LocalStudent` answers in this process: for tests, and for stock `nbgrader autograde`, which runs
in the student's kernel anyway. `autograder.sandbox` has the student that is safe to run.
"""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from autograder.task import Answer
from peakmem import plain
from peakmem.probes import UNWATCH, WATCH, Namespace

__all__ = ["Ask", "LocalStudent", "Student", "call_probe", "describe"]

Ask = Callable[[Any], Any]


class Student(Protocol):
    """What grading needs of a student: answers to probes."""

    def run(self, probe: str, inputs: Mapping[str, Any], ask: Ask | None = None) -> Answer:
        """Run the probe (`module:function`) on plain inputs and return what came back."""
        ...


class LocalStudent:
    """A student whose names live in this process. It isolates nothing and limits nothing."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def run(self, probe: str, inputs: Mapping[str, Any], ask: Ask | None = None) -> Answer:
        asked: list[tuple[Any, Any]] = []

        def record(question: Any) -> Any:
            if question in (WATCH, UNWATCH):
                return None  # from inside, nobody can watch the process from outside
            if ask is None:
                raise LookupError(f"this task answers no questions, but was asked {question!r}")
            reply = ask(question)
            asked.append((question, reply))
            return reply

        try:
            # Through the encoding and back, so that both ways to run a task see the same values.
            value = plain.decode(
                plain.encode(call_probe(probe, self._names, plain.decode(plain.encode(dict(inputs))), record))
            )
        except Exception as error:
            return Answer(raised=describe(error), asked=tuple(asked))
        return Answer(value=value, asked=tuple(asked))


def call_probe(probe: str, names: Mapping[str, Any], inputs: Mapping[str, Any], ask: Ask) -> Any:
    """Call the probe `module:function` on a student's names; `ask` only where it takes one."""
    module, _, function = probe.partition(":")
    target = getattr(importlib.import_module(module), function)
    extra = {"ask": ask} if "ask" in inspect.signature(target).parameters else {}
    return target(Namespace(names), **inputs, **extra)


def describe(error: BaseException) -> tuple[str, str, str]:
    """Return an exception as (type's name, message, the lines of the student's own cells)."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_cell(frame.filename)][-3:]
    lines = [f"  line {frame.lineno}, in {frame.name}: {frame.line or ''}".rstrip() for frame in own]
    return (type(error).__name__, str(error)[:500], "\n".join(lines))


def _is_cell(filename: str) -> bool:
    # IPython names a cell <ipython-input-...>, ipykernel /tmp/ipykernel_..., exec <string>.
    return filename.startswith("<") or "ipykernel_" in filename
