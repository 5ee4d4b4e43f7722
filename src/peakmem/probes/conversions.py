"""Refuses conversions between bits and small floats, by checking values while the code runs.

Three exercises of lab 1 take a number's bits apart with arithmetic. Source text doesn't show every
way to have a library do that: `np.sqrt(np.int16(1)).dtype` is float32, and "{}f".format("<") is a
format of `struct`. So the cells of these exercises are rewritten by `Watching`, which passes each
call, operation and store through a function of this module. The functions do nothing unless
`refused` is active.

Like all guards in the student's process, this one stops only students who follow the other rules;
code that looks for this module can switch it off.
"""

from __future__ import annotations

import array
import ast
import builtins
import operator
import struct
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from peakmem.core.errors import PeakmemError

__all__ = ["NotAllowed", "Watching", "compiled", "refused"]


class NotAllowed(PeakmemError):
    """The code had a library convert between bits and a 16- or 32-bit float."""


_found: list[str] | None = None  # what was refused while `refused` is active


@contextmanager
def refused() -> Iterator[None]:
    """Raise NotAllowed at each conversion in this block, and again at its end if code caught it.

    >>> names = {"kind": np.sqrt(np.int16(1)).dtype}
    >>> exec(compiled("def rounded(x): return kind.type(x)"), names)
    >>> with refused(): names["rounded"](0.1)
    Traceback (most recent call last):
    peakmem.probes.conversions.NotAllowed: float32 does this exercise's work, ...
    """
    global _found
    found: list[str] = []
    _found = found
    try:
        yield
    finally:
        _found = None
        if found:
            raise NotAllowed(found[0])


def compiled(source: str, filename: str = "<cell>") -> CodeType:
    """Return the code of a cell whose conversions are watched."""
    return compile(Watching().visit(ast.parse(source)), filename, "exec")


def _refuse(kind: str) -> None:
    if _found is not None:
        _found.append(f"{kind} does this exercise's work, under any name: use integers and float64")
        raise NotAllowed(_found[-1])


# What a watched cell calls. No code can spell these names, so none can bind them by accident.


def _call(function: Any, /, *arguments: Any, **options: Any) -> Any:
    __tracebackhide__ = True  # keeps this frame out of IPython's tracebacks
    if not options and _NUMBERS.issuperset(map(type, arguments)) and _has_no_state(function):
        result = function(*arguments)  # most calls: a number made from numbers isn't a conversion
        if _found is not None and type(result) not in _NUMBERS:
            _refuse_if(_used_beforehand(function, [*arguments], {}))
            _refuse_if(_made(function, [*arguments], result))
        return result
    if (options or BuiltinFunctionType in map(type, arguments)) and not _asks(function):
        arguments = tuple(map(_passed_on, arguments))
        options = {name: _passed_on(value) for name, value in options.items()}
    if _found is None:
        return function(*arguments, **options)
    values = [*arguments, *options.values()]
    _refuse_if(_used_beforehand(function, values, options))
    result = function(*arguments, **options)
    _refuse_if(_made(function, values, result))
    return result


def _has_no_state(function: Any) -> bool:
    """Whether this is a function or a class, rather than a method of an array or another object."""
    if isinstance(function, BuiltinFunctionType):
        return isinstance(function.__self__, ModuleType)
    return type(function) in (FunctionType, type, ABCMeta)


def _passed_on(value: Any) -> Any:
    """A built-in function, wrapped so that calls of it by others such as `map` are watched."""
    return partial(_call, value) if isinstance(value, BuiltinFunctionType) else value


def _operate(name: str, left: Any, right: Any) -> Any:
    __tracebackhide__ = True
    result = getattr(operator, name)(left, right)
    if _found is None or type(result) in _NUMBERS:
        return result
    if _small(result) and not (_small(left) and _small(right)):
        other = right if _small(left) else left
        _refuse_if(_small(result) if isinstance(other, (float, np.floating)) else "")
    return result


def _store(target: Any) -> Any:
    """Return the array that an item is stored in."""
    _refuse_if(_small(target) if isinstance(target, np.ndarray) else "")
    return target


def _set_dtype(dtype: Any) -> Any:
    _refuse_if(_small(np.dtype(dtype)) if _found is not None else "")
    return dtype


def _refuse_if(kind: str) -> None:
    if kind:
        _refuse(kind)


_HELPERS = {f"<{f.__name__}>": f for f in (_call, _operate, _store, _set_dtype)}


# What counts as a conversion.

_NUMBERS = frozenset({bool, int, float, Fraction})
# These functions query or describe types.
_QUESTIONS = (
    *(isinstance, issubclass, type, repr, str, print, hasattr, getattr, id, len, format),
    *(np.issubdtype, np.finfo, np.dtype, np.can_cast),
)
_QUESTION_IDS = frozenset(map(id, _QUESTIONS))  # a student's object may claim to equal one


def _asks(function: Any) -> bool:
    return id(function) in _QUESTION_IDS


def _used_beforehand(function: Any, values: list[Any], options: dict[str, Any]) -> str:
    """The kind of small float that a call names by a type or by a format code."""
    if _asks(function):
        return ""
    owner = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") in ("hex", "fromhex") and (
        owner is float or isinstance(owner, float)
    ):
        return f"float.{function.__name__}"
    types = [value for value in (function, *values) if isinstance(value, (type, np.dtype))]
    out = options.get("out")
    stores = [out] if isinstance(out, np.ndarray) else []
    return next(filter(None, map(_small, [*types, *stores])), "") or _coded(function, owner, values)


def _coded(function: Any, owner: Any, values: list[Any]) -> str:
    """The format with a small float that a `struct` function or a view uses."""
    if _is_of_struct(function) and values:
        code = values[0].decode() if isinstance(values[0], bytes) else values[0]
        return _code(code) if isinstance(code, str) else ""
    return next(filter(None, map(_format, (owner, *values))), "")


def _is_of_struct(function: Any) -> bool:
    return getattr(function, "__module__", "") == "_struct"


def _made(function: Any, values: list[Any], result: Any) -> str:
    """The kind of small float that a call converted to or from something else."""
    if _asks(function):
        return ""
    used = [getattr(function, "__self__", None), *values]
    small = [
        value for value in used if isinstance(value, (np.ndarray, np.generic)) and _small(value)
    ]
    if not small:
        # A ufunc on small integers computes in small floats: in honest code, an accident.
        return _format(result) or ("" if isinstance(function, np.ufunc) else _small(result))
    if _is_of_struct(function):
        return ""  # its format code has been checked
    raw = isinstance(result, (bytes, bytearray, memoryview)) or function == int.from_bytes
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind in "biuSV":
        raw = any(result.nbytes == value.nbytes for value in small) and result.dtype.kind != "b"
    written = result is None and any(isinstance(value, np.ndarray) for value in small)
    return _small(small[0]) if raw or written else ""


def _format(value: Any) -> str:
    """The format of a Struct, an array or a view, if it contains small floats."""
    if isinstance(value, (struct.Struct, memoryview)):
        return _code(value.format)
    return _code(value.typecode) if isinstance(value, array.array) else ""


def _code(code: str) -> str:
    return f"the code {code!r}" if any(letter in code for letter in "efF") else ""


def _small(value: Any) -> str:
    """The name of the small float type that a value has, or that it is; empty if there is none."""
    if isinstance(value, type):
        if getattr(value, "_type_", None) == "f":
            return value.__name__  # a type of ctypes
        if not issubclass(value, np.generic) or value.__subclasses__():
            return ""
        value = np.dtype(value)
    dtype = value if isinstance(value, np.dtype) else None
    if isinstance(value, (np.ndarray, np.generic)):
        dtype = value.dtype
    if dtype is None:
        return ""
    if dtype.fields:
        return next(filter(None, (_small(field[0]) for field in dtype.fields.values())), "")
    base = dtype.base
    is_small = base.itemsize < {"f": 8, "c": 16}.get(base.kind, 0)
    return _name(base) if is_small else ""


@cache  # numpy builds the name on every access
def _name(dtype: np.dtype[Any]) -> str:
    return dtype.name


class Watching(ast.NodeTransformer):
    """Rewrites a cell so that its calls, operations and stores pass through this module."""

    # These inspect their caller's frame.
    _BY_FRAME = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})

    def __init__(self) -> None:
        vars(builtins).update(_HELPERS)
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _MOST_FRAMES))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._BY_FRAME:
            return node
        return ast.copy_location(
            ast.Call(_helper(_call, node), [node.func, *node.args], node.keywords), node
        )

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        if (
            name is None
            or isinstance(node.left, ast.Constant)
            or isinstance(node.right, ast.Constant)
        ):
            return node  # a constant isn't a conversion: it may be half a gap, say
        text = ast.copy_location(ast.Constant(name), node)
        call = ast.Call(_helper(_operate, node), [text, node.left, node.right], [])
        return ast.copy_location(call, node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                target.value = _passed(_store, target.value)
            elif isinstance(target, ast.Attribute) and target.attr == "dtype":
                node.value = _passed(_set_dtype, node.value)
        return node


_MOST_FRAMES = 2_500  # a watched call takes two, and Python's default limit is 1,000
_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv"}


def _helper(function: Callable[..., Any], node: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name(f"<{function.__name__}>", ast.Load()), node)


def _passed(function: Callable[..., Any], node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(_helper(function, node), [node], []), node)
