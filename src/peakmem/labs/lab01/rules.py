"""What a student's code contains that the rules of lab 1's exercises forbid."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

__all__ = ["not_allowed", "python_loops"]

# Names and dtype strings that would take bits apart, or put them together, for a student.
_FORBIDDEN = frozenset(
    {"float16", "float32", "bfloat16", "float8_e4m3fn", "float8_e4m3", "fromhex", "c_float"}
    | {order + kind for order in ("", "<", ">", "=") for kind in ("f2", "f4")}
    | {"torch", "ml_dtypes", "rounded"}
)
_LOOP_CALLS = frozenset({"apply_along_axis", "fromiter", "frompyfunc", "map", "vectorize"})
_STRUCT_CODES = frozenset(order + kind for order in ("", *"<>=!@") for kind in "ef")


def not_allowed(function: Callable[..., Any]) -> list[str]:
    """Return the names in a function's own code that the rules of exercise 1.3 forbid.

    Grading checks the code more closely, and that of its helpers too.

    >>> not_allowed(lambda bits: np.uint32(bits).view(np.float32))
    ['float32']
    """
    used: set[str] = set()
    for code in _codes(function):
        used.update(code.co_names)
        used.update(text for text in code.co_consts if isinstance(text, str))
    return sorted(used & (_FORBIDDEN | (_STRUCT_CODES if "struct" in used else frozenset())))


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
