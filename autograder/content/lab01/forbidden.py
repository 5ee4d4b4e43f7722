"""Tools that exercises on taking numbers apart forbid, because they would solve the exercise."""

from __future__ import annotations

from dataclasses import replace

from autograder.model.restrictions import Ban

__all__ = ["C_INTEGERS", "NO_CASTS", "NO_CASTS_NO_LOOPS"]

# C's integers and doubles, and the structures and pointers that reinterpret one as the other.
_C_TYPES = frozenset(
    {"byte", "ubyte", "short", "ushort", "int", "uint", "long", "ulong", "longlong", "ulonglong"}
    | {f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)}
    | {"double"}
)
_C_NAMES = frozenset(
    {f"c_{name}" for name in _C_TYPES}
    | {"Structure", "LittleEndianStructure", "BigEndianStructure", "Union", "sizeof"}
    | {"cast", "pointer", "POINTER", "byref"}
)

#: Allowed after all: an integer of a pattern's width is no shortcut, not even a C one.
C_INTEGERS = Ban(allows=frozenset(f"ctypes.{name}" for name in _C_NAMES))

# A leading dot means an attribute, an import or a dtype string, never a variable of that name.
_NAMES = frozenset(
    {"float16", "float32", "bfloat16", "c_float", ".half", ".single", "f2", "f4"}
    | {f"float8_{kind}" for kind in ("e4m3", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}
    | {"torch", "ml_dtypes", "gfloat"}
    # A complex number consists of two floats, and the others name or find dtypes.
    | {"complex64", ".csingle", ".singlecomplex", "c8", "Float16DType", "Float32DType"}
    | {"Complex64DType", "min_scalar_type", "promote_types", "result_type", "common_type"}
    | {"mintypecode", "sctypeDict", ".typecodes"}
)
_MODULES = frozenset({"torch", "ml_dtypes", "gfloat", "peakmem.numbers.formats", "peakmem.labs"})

# These take a format code of `struct`, `array` or `memoryview`, or a dtype.
_CODED = frozenset(
    {"numpy", "struct", "array", "memoryview", ".cast", ".astype", ".view", ".dtype", ".getfield"}
    | {".np", ".numpy"}
    | {"pack", "pack_into", "unpack", "unpack_from", "iter_unpack", "Struct", "calcsize"}
)
# Only characters of such codes, with an e or f among them. `f8` and the like are numpy's sizes, and
# "inf" is a number; what such a text means is known only when the code runs. Or one of a list of
# dtypes, as in "f4,f4".
_HALF_OR_SINGLE = (
    r"[<>=|]?\d*F|"  # two of single precision
    r"(?=.*,)(.*,)?\s*[<>=|]?\d*([efF]|f[24]|c8)\s*(,.*)?|"
    r"(?!inf$)[@=<>!|]?[\dxcbB?hHiIlLqQnNdspPef\s]*[ef](?!\d+$)[\dxcbB?hHiIlLqQnNdspPef\s]*"
)

_REASON = (
    "This exercise takes the bits apart with arithmetic. It may not use tools that do that for "
    "you: float16, float32, bfloat16 or float8 as a cast or a view, struct's codes e and f, "
    "float.hex and float.fromhex, torch, ml_dtypes, or this lab's `rounded`."
)

NO_CASTS = Ban(
    names=_NAMES,
    modules=_MODULES,
    codes=_HALF_OR_SINGLE,
    coded=_CODED,
    methods=frozenset({"hex", "fromhex"}),
    allows=C_INTEGERS.allows,
    conversions=True,
    reason=_REASON,
)
NO_CASTS_NO_LOOPS = replace(
    NO_CASTS,
    loops=True,
    conversions=False,  # its inputs are float32 arrays, whose bits it may view
    reason=_REASON + " Nor may it loop in Python: one numpy operation works on all elements.",
)
