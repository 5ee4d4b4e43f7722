"""Finds what the rules of lab 1's exercises forbid in a student's code."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

__all__ = ["not_allowed", "python_loops"]

# Names and dtype strings that would take bits apart, or put them together, for a student.
_FORBIDDEN = frozenset(
    {"float16", "float32", "bfloat16", "complex64", "float8_e4m3fn", "float8_e4m3", "c_float"}
    | {order + kind for order in ("", "<", ">", "=") for kind in ("f2", "f4", "c8")}
    | {"torch", "ml_dtypes", "rounded"}
)
_DTYPES = frozenset({"half", "single", "csingle"})  # attributes and texts, not variables
_LOOP_CALLS = frozenset(
    {"apply_along_axis", "fromiter", "frompyfunc", "map", "starmap", "vectorize"}
)
# Codes of `struct`, `array`, `memoryview` and numpy, and what takes them.
_CODES = frozenset(order + kind for order in ("", *"<>=!@") for kind in "efF")
_TAKE_CODES = frozenset({"struct", "array", "cast", "dtype", "frombuffer", "full", "view"})
# Instructions after a name or text that is only compared, looked up, or used as a format.
_COMPARISONS = ("COMPARE_OP", "IS_OP", "CONTAINS_OP")
_NO_CODES = ("BINARY_SUBSCR", "BUILD_CONST_KEY_MAP", "FORMAT_VALUE", "FORMAT_WITH_SPEC")
_QUESTIONS = frozenset({"finfo", "isinstance", "issubdtype"})


def not_allowed(function: Callable[..., Any]) -> list[str]:
    """Return the names in a function's own code that the rules of exercise 1.3 forbid.

    Grading checks the code more closely, and that of its helpers too.

    >>> not_allowed(lambda bits: np.uint32(bits).view(np.float32))
    ['float32']
    >>> not_allowed(lambda x: x.dtype == np.float32)
    []
    """
    used: set[str] = set()
    for code in _codes(function):
        used.update(_used(list(dis.get_instructions(code))))
    codes = _CODES if used & _TAKE_CODES else frozenset()
    return sorted(used & (_FORBIDDEN | _DTYPES | codes | {"fromhex"}))


def _used(instructions: Sequence[dis.Instruction]) -> Iterator[str]:
    """Yield names and texts, except variables and those that are only compared or queried."""
    for i, one in enumerate(instructions):
        before = [earlier.argval for earlier in instructions[max(i - 4, 0) : i]]
        after = instructions[i + 1].opname if i + 1 < len(instructions) else ""
        if after in _COMPARISONS or not _QUESTIONS.isdisjoint(map(str, before)):
            continue
        if one.argval == "fromhex" and before[-1:] not in (["float"], ["float64"]):
            continue  # that of bytes
        if "CONST" not in one.opname:
            harmless = _CODES | (_DTYPES if "GLOBAL" in one.opname else set())
            if one.argval not in harmless and "_FAST" not in one.opname:
                yield str(one.argval)
            continue
        for part in one.argval if isinstance(one.argval, tuple) else [one.argval]:
            if isinstance(part, str) and not (part in _CODES and after in _NO_CODES):
                yield part


def python_loops(function: Callable[..., Any]) -> list[str]:
    """Return what loops in a function's own code; exercise 1.6 forbids it.

    >>> python_loops(lambda x: np.array([int(bits) >> 16 for bits in x]))
    ['a loop or comprehension']
    """
    found: set[str] = set()
    for code in _codes(function):
        found.update(_LOOP_CALLS.intersection(code.co_names))
        jumps = {instruction.opname for instruction in dis.get_instructions(code)}
        if any(name == "FOR_ITER" or "JUMP_BACKWARD" in name for name in jumps):
            found.add("a loop or comprehension")
    return sorted(found)


def _codes(function: Callable[..., Any]) -> Iterator[CodeType]:
    """The function's code, and that of the comprehensions and functions in it."""
    codes = [function.__code__] if hasattr(function, "__code__") else []
    for code in codes:  # grows
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
        yield code
