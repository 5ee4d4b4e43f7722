"""Probes: plain functions that call a student's function and return plain data.

`peakmem.probes.labNN` has one probe for each exercise. The grader runs it in the student's process
on inputs that the grader chooses, and judges the answers elsewhere. Students have the same file and
may run it themselves, so a probe contains no secrets and no correct answers.

A probe is called as `probe(student, **inputs)`, where `student.name` is the student's function of
that name. A probe that needs replies from the grader while it runs also takes `ask`:
`ask(question)` returns the grader's reply; both are plain data. A probe that measures memory takes
`metered`; if it is False, the call runs without a meter, under a budget that the grader has set in
the kernel.
"""

from __future__ import annotations

import dis
import errno
import gc
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from peakmem.core import serialization
from peakmem.core.errors import NotDefined, RankError

__all__ = [
    "MARK",
    "Calls",
    "Namespace",
    "Outcomes",
    "as_sent",
    "call_each",
    "call_probe",
    "calling",
    "describe",
    "earlier_objects_set_aside",
    "is_mark",
    "is_refusal",
    "is_unwritten",
    "raised_type",
    "set_aside_for_good",
]

MARK = "ranks"  # key of reports that ranks are waiting, with the value "ready", then "done"
_ATOMS = {bool, int, float, str, type(None)}  # immutable plain data

Calls = Sequence[Sequence[Any]]  # the arguments of each call
Outcomes = list[tuple[Any, ...]]  # what `call_each` returns


class Namespace:
    """The names a student's notebook defines, read as attributes.

    >>> Namespace({"double": lambda x: 2 * x}).double(4)
    8

    Raises NotDefined, with the remedy, if the notebook doesn't define the name.
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


def call_each(function: Callable[..., Any], calls: Calls) -> Outcomes:
    """Call `function(*arguments)` for each item of `calls`; return one outcome per call, in order.

    An outcome is ("value", result), ("raised", type's name, message), or ("changed", i) if the
    function wrote into argument number i. The type's name is that of `raised_type`. Tensors are
    returned as arrays, and 0-dimensional arrays as numbers. Arguments are plain data,
    SimpleNamespaces and dataclasses of plain data, and lists of these.

    >>> call_each(lambda x: 1 / x, [(2.0,), (0,)])
    [('value', 0.5), ('raised', 'ZeroDivisionError', 'division by zero')]
    """
    return [_outcome(function, list(arguments)) for arguments in calls]


def calling(name: str) -> Callable[[Namespace, Calls], Outcomes]:
    """Return a probe that calls the student's function of this name, as `call_each` does.

    >>> calling("double")(Namespace({"double": lambda x: 2 * x}), [(4,)])
    [('value', 8)]
    """

    def probe(student: Namespace, calls: Calls) -> Outcomes:
        return call_each(getattr(student, name), calls)

    return probe


def _outcome(function: Callable[..., Any], arguments: list[Any]) -> tuple[Any, ...]:
    # A fast path: thousands of calls take only numbers, which can't be changed.
    before = {i: _state(a) for i, a in enumerate(arguments) if type(a) not in _ATOMS}
    try:
        value = function(*arguments)
        if type(value) not in _ATOMS:
            value = _numbers(value)
            serialization.encode(value)  # an answer that can't be sent must not spoil the others
    except Exception as error:
        return ("raised", raised_type(error), str(error)[:500])
    for index, state in before.items():
        if _state(arguments[index]) != state:
            return ("changed", index)
    return ("value", value)


def _state(argument: Any) -> bytes:
    """Return bytes that change if a function writes into the argument."""
    try:
        return serialization.encode(_attributes(argument))
    except (serialization.PlainError, TypeError, RecursionError):
        return b""  # the argument was plain data, so the function changed it


def _attributes(value: Any) -> Any:
    """Return the value with objects as dicts of their attributes."""
    if type(value) is list and not all(type(part) in _ATOMS for part in value):
        return [_attributes(part) for part in value]
    return vars(value) if type(value) is SimpleNamespace or is_dataclass(value) else value


def as_sent(value: Any) -> Any:
    """Return a student's value in the form in which the grader receives it: as plain data.

    >>> as_sent((np.float32(0.5), {np.int64(3)}))
    (0.5, {3})

    Raises PlainError if the value can't be turned into plain data.
    """
    return serialization.decode(serialization.encode(_numbers(value)))


def _numbers(value: Any) -> Any:
    """Return the value with tensors on any device as arrays, and 0-dimensional ones as numbers."""
    if isinstance(value, dict):
        return {key: _numbers(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_numbers, value))
    if hasattr(value, "__array__"):
        array = np.asarray(value.cpu() if hasattr(value, "cpu") else value)
        return array if array.ndim else array.item()
    return value


_aside_for_good = False


def set_aside_for_good() -> None:
    """Free garbage, and hide all other objects from the collector in this process and its forks.

    A flag in this module remembers the call, because asking the collector takes 60 ms once torch is
    loaded: it counts all hidden objects.
    """
    global _aside_for_good
    gc.collect()
    gc.freeze()
    _aside_for_good = True


@contextmanager
def earlier_objects_set_aside() -> Iterator[None]:
    """Hide all existing objects from Python's garbage collector until the block ends.

    Older garbage must not be freed while the process is measured. Besides, collecting only the
    block's own garbage is quick, whereas traversing all of torch's objects takes a tenth of a
    second. After `set_aside_for_good`, this frees older garbage first and hides nothing, because
    the end of the block would make all hidden objects visible again to every later collection.

    >>> with earlier_objects_set_aside():
    ...     gc.get_freeze_count() > 0
    True
    """
    if _aside_for_good:
        gc.collect()
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def call_probe(
    probe: str, names: Mapping[str, Any], inputs: Mapping[str, Any], ask: Callable[[Any], Any]
) -> Any:
    """Call the probe `module:function` on a student's names, with `ask` if the probe takes it."""
    module, _, function = probe.partition(":")
    target = getattr(importlib.import_module(module), function)
    extra = {"ask": ask} if "ask" in inspect.signature(target).parameters else {}
    return target(Namespace(names), **inputs, **extra)


def is_mark(question: Any) -> bool:
    """Whether a question only reports that ranks are waiting.

    >>> is_mark({"ranks": "ready"}), is_mark("ready")
    (True, False)
    """
    return isinstance(question, dict) and question.keys() == {MARK}


def is_refusal(error: BaseException) -> bool:
    """Whether an exception means that memory was exhausted.

    torch raises a RuntimeError, as for most errors, so only the text distinguishes it. oneDNN,
    which computes GELU, only says that it couldn't create a primitive, not why.

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
        return True  # exhausted memory in a native thread aborts the rank
    if isinstance(error, RuntimeError):
        return any(
            sign in str(error)
            for sign in (
                "allocate memory",
                "bad_alloc",
                "bad allocation",
                "could not create a primitive",
            )
        )
    return isinstance(error, MemoryError)


def describe(error: BaseException) -> tuple[str, str, str]:
    """Return an exception as (type's name, message, the lines of the student's own cells)."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_cell(frame.filename)][-3:]
    lines = [f"  line {f.lineno}, in {f.name}: {f.line or ''}".rstrip() for f in own]
    return (_kind(error), str(error)[:500], "\n".join(lines))


def is_unwritten(error: BaseException) -> bool:
    """Tell whether an exercise that isn't written raised this error.

    torch's kernels raise NotImplementedError too, such as `<<` on floats. They have no `raise`
    statement.
    """
    if not isinstance(error, NotImplementedError):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return True
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def raised_type(error: BaseException) -> str:
    """Return the name of an exception's type, or of its base if a student defined the class.

    >>> class UnknownScheme(ValueError): pass
    >>> raised_type(UnknownScheme()), raised_type(KeyError())
    ('ValueError', 'KeyError')
    """
    if isinstance(error, NotImplementedError):
        return _kind(error)
    return next(one.__name__ for one in type(error).__mro__ if _is_imported(one))


def _is_imported(one: type) -> bool:
    module = sys.modules.get(one.__module__)
    return one.__module__ != "__main__" and getattr(module, one.__name__, None) is one


def _kind(error: BaseException) -> str:
    """The name of an exception's type; RuntimeError, the base, if torch lacks an operation."""
    if isinstance(error, NotImplementedError) and not is_unwritten(error):
        return RuntimeError.__name__
    return type(error).__name__


def _is_cell(filename: str) -> bool:
    # IPython calls a cell's file <ipython-input-...>, ipykernel /tmp/ipykernel_..., exec <string>.
    return filename.startswith("<") or "ipykernel_" in filename
