"""Probes: plain functions that call a student's function and return plain data.

`peakmem.probes.labNN` holds one probe an exercise. The grader runs it in the student's process, on
inputs that it chose, and judges the answers elsewhere; students have the same file and may run it
themselves. So nothing in a probe is secret, and nothing in it knows what is right.

A probe is `probe(student, **inputs)`: `student.name` is the student's function of that name. One
that needs an answer from the grader while it runs takes a parameter `ask` as well: `ask(question)`
returns the grader's reply, both plain data. One whose memory is measured takes a parameter
`metered`: False makes the call bare, under a budget that the grader had the kernel set.
"""

from __future__ import annotations

import errno
import gc
import importlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from peakmem.core import serialization
from peakmem.core.errors import NotDefined, RankError

__all__ = [
    "MARK",
    "Namespace",
    "as_sent",
    "call_each",
    "call_probe",
    "describe",
    "earlier_objects_set_aside",
    "is_mark",
    "is_refusal",
]

MARK = "ranks"  # the key of what a probe says when its ranks hold still: "ready", then "done"
_ATOMS = {bool, int, float, str, type(None)}  # plain data as they are, and never changed


class Namespace:
    """The names a student's notebook defines, read as attributes.

    >>> Namespace({"double": lambda x: 2 * x}).double(4)
    8

    Raises NotDefined, with the remedy, for a name that is not there.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise NotDefined(
                f"{name} is not defined. Define it in its exercise's cell, under exactly this "
                "name, and run the notebook from the top."
            ) from None


def call_each(
    function: Callable[..., Any], calls: Sequence[Sequence[Any]]
) -> list[tuple[Any, ...]]:
    """Call `function(*arguments)` for each item of `calls`; return one outcome a call, in order.

    An outcome is ("value", what it returned), ("raised", type's name, message), or ("changed", i)
    where it wrote into its argument number i. A tensor comes back as an array, and an array
    without dimensions as the number that it holds.

    >>> call_each(lambda x: 1 / x, [(2.0,), (0,)])
    [('value', 0.5), ('raised', 'ZeroDivisionError', 'division by zero')]
    """
    return [_outcome(function, list(arguments)) for arguments in calls]


def _outcome(function: Callable[..., Any], arguments: list[Any]) -> tuple[Any, ...]:
    # Nobody can write into a number, and thousands of calls take nothing else.
    before = {i: serialization.encode(a) for i, a in enumerate(arguments) if type(a) not in _ATOMS}
    try:
        value = function(*arguments)
        if type(value) not in _ATOMS:
            value = _numbers(value)
            serialization.encode(value)  # one answer that cannot be sent must not spoil the others
    except Exception as error:
        return ("raised", type(error).__name__, str(error)[:500])
    for index, encoded in before.items():
        if serialization.encode(arguments[index]) != encoded:
            return ("changed", index)
    return ("value", value)


def as_sent(value: Any) -> Any:
    """Return a student's value as the grader gets it: plain data, whatever library made it.

    >>> as_sent((np.float32(0.5), {np.int64(3)}))
    (0.5, {3})

    Raises PlainError for what is no plain data.
    """
    return serialization.decode(serialization.encode(_numbers(value)))


def _numbers(value: Any) -> Any:
    """The value with its tensors as arrays, and what has no dimensions as a number."""
    if isinstance(value, dict):
        return {key: _numbers(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_numbers, value))
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return array if array.ndim else array.item()
    return value


@contextmanager
def earlier_objects_set_aside() -> Iterator[None]:
    """Keep Python's collector away from all objects that are there already.

    What is garbage among them must not be freed while the process is watched; and to collect
    what the block makes takes a moment only, where going through all of torch takes a tenth of a
    second.

    >>> with earlier_objects_set_aside():
    ...     gc.get_freeze_count() > 0
    True
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def call_probe(
    probe: str, names: Mapping[str, Any], inputs: Mapping[str, Any], ask: Callable[[Any], Any]
) -> Any:
    """Call the probe `module:function` on a student's names; `ask` only where it takes one."""
    module, _, function = probe.partition(":")
    target = getattr(importlib.import_module(module), function)
    extra = {"ask": ask} if "ask" in inspect.signature(target).parameters else {}
    return target(Namespace(names), **inputs, **extra)


def is_mark(question: Any) -> bool:
    """Tell whether a question only says that ranks hold still.

    >>> is_mark({"ranks": "ready"}), is_mark("ready")
    (True, False)
    """
    return isinstance(question, dict) and question.keys() == {MARK}


def is_refusal(error: BaseException) -> bool:
    """Tell whether an exception says that there was no memory to be had.

    torch raises a RuntimeError for that, as for most things, and only its text tells.

    >>> is_refusal(MemoryError()), is_refusal(RuntimeError("can't allocate memory: ..."))
    (True, True)
    >>> is_refusal(RuntimeError("shapes differ"))
    False
    >>> is_refusal(RankError("rank 1 was killed by SIGABRT", rank=1))
    True
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, RankError) and error.kind in ("", "MemoryError"):
        return True  # a rank dies of it in a thread that is not Python's
    if isinstance(error, RuntimeError):
        return any(
            sign in str(error) for sign in ("allocate memory", "bad_alloc", "bad allocation")
        )
    return isinstance(error, MemoryError)


def describe(error: BaseException) -> tuple[str, str, str]:
    """Return an exception as (type's name, message, the lines of the student's own cells)."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_cell(frame.filename)][-3:]
    lines = [f"  line {f.lineno}, in {f.name}: {f.line or ''}".rstrip() for f in own]
    return (type(error).__name__, str(error)[:500], "\n".join(lines))


def _is_cell(filename: str) -> bool:
    # IPython names a cell <ipython-input-...>, ipykernel /tmp/ipykernel_..., exec <string>.
    return filename.startswith("<") or "ipykernel_" in filename
