"""Lists the modules, and the names within them, that a solution may use.

Every other name is refused. Labs and tasks can add dotted names to the list, or remove some. If two
entries match a name, the longer one wins: `torch` allows all of torch, and `torch.load` excludes
that one function again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection

__all__ = ["ENTRIES", "EVALUATE", "REFLECTION", "is_refused_name", "refused_part"]

# Python's own modules that only compute, without access to files, processes or the interpreter.
_COMPUTING = (
    "__future__",
    "abc",
    "array",
    "bisect",
    "calendar",
    "cmath",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "graphlib",
    "heapq",
    "itertools",
    "json",
    "logging",
    "math",
    "numbers",
    "operator",
    "pprint",
    "queue",
    "random",
    "re",
    "statistics",
    "string",
    "struct",
    "textwrap",
    "time",
    "types",
    "typing",
    "unicodedata",
    "warnings",
    "weakref",
)
_HARMLESS_PARTS = (
    "gc.collect",
    "io.StringIO",
    "io.BytesIO",
    "inspect.signature",
    "sys.byteorder",
    "sys.float_info",
    "sys.getsizeof",
    "sys.maxsize",
    "sys.version_info",
    "sys.setrecursionlimit",
    "sys.stderr",
    "sys.stdout",
)
_LIBRARIES = ("IPython.display", "einops", "matplotlib", "numpy", "torch", "tqdm")
_TYPING = ("typing_extensions",)
_PEAKMEM = (
    "peakmem.Infeasible",
    "peakmem.OutOfMemory",
    "peakmem.errors",
    "peakmem.plots",
    "peakmem.units",
)

# Private modules of torch's: they compile and run code, list functions by name, and hold further
# versions of what exercises forbid by its public name.
_PRIVATE = tuple(
    f"torch.{name}"
    for name in (
        "_C",
        "_decomp",
        "_dynamo",
        "_export",
        "_functorch",
        "_higher_order_ops",
        "_inductor",
        "_jit_internal",
        "_library",
        "_ops",
        "_prims",
        "_refs",
        "_sources",
        "_subclasses",
        "_utils_internal",
        "_vendor",
    )
)
# Parts of allowed modules that do more than compute: files, processes, C code, code from text.
_TAKEN_OUT = (
    *_PRIVATE,
    "dataclasses._create_fn",
    "logging.config",
    "logging.handlers",
    "types.CodeType",
    "types.FunctionType",
    "typing.ForwardRef",
    "typing._eval_type",
    "typing.get_type_hints",
    "typing_extensions.ForwardRef",
    "typing_extensions.evaluate_forward_ref",
    "typing_extensions.get_type_hints",
    "numpy.ctypeslib",
    "numpy.distutils",
    "numpy.f2py",
    "numpy.fromfile",
    "numpy.load",
    "numpy.lib.format",
    "numpy.lib.npyio",
    "numpy.memmap",
    "numpy.test",
    "numpy.testing",
    "numpy.fromregex",
    "numpy.genfromtxt",
    "numpy.loadtxt",
    "numpy.save",
    "numpy.savetxt",
    "numpy.savez",
    "numpy.savez_compressed",
    "torch.classes",
    "torch.distributed",
    "torch.export.load",
    "torch.from_file",
    "torch.fx.graph_module",
    "torch.hub",
    "torch.jit.CompilationUnit",
    "torch.jit.fork",
    "torch.jit.load",
    "torch.load",
    "torch.multiprocessing",
    "torch.onnx",
    "torch.ops.higher_order",
    "torch.ops.load_library",
    "torch.overrides.get_overridable_functions",
    "torch.overrides.get_testing_overrides",
    "torch.overrides.resolve_name",
    "torch.package",
    "torch.save",
    "torch.serialization",
    "torch.storage",
    "torch.testing",
    "torch.utils._python_dispatch",
    "torch.utils.benchmark",
    "torch.utils.collect_env",
    "torch.utils.hipify",
    "torch.utils.model_zoo",
    "torch.utils.cpp_extension",
    "torch.utils.dlpack",
    "torch.UntypedStorage.from_file",
    "torch.FloatStorage.from_file",
)

#: The entries that all exercises share: True allows the name, False excludes it.
ENTRIES: dict[str, bool] = {
    **dict.fromkeys((*_COMPUTING, *_HARMLESS_PARTS, *_LIBRARIES, *_TYPING, *_PEAKMEM), True),
    **dict.fromkeys(_TAKEN_OUT, False),
}

#: Built-in names that run text, open files, or lead to IPython's shell or other names.
BUILTINS = frozenset(
    {
        "__annotations__",
        "__builtins__",
        "__import__",
        "__loader__",
        "__spec__",
        "breakpoint",
        "compile",
        "eval",
    }
    | {"exec", "exit", "get_ipython", "globals", "input", "open", "quit", "__builtin__"}
    | {"In", "Out", "_dh", "_ih", "_oh"}
)
# What IPython names the sources and results of the cells before: `_i`, `_i7`, `__`, `_7`.
_HISTORY = re.compile(r"_{1,3}|_i{1,3}|_i?[0-9]+")

#: Attributes that lead from an object to the interpreter, and so to everything.
REFLECTION = frozenset(
    {"__builtins__", "__closure__", "__code__", "__globals__", "__import__", "__loader__"}
    | {"__self__"}  # for `print`, this is `builtins`
    | {
        "bltns",
        "ctypes",
        "__spec__",
        "__subclasses__",
        "f_back",
        "f_builtins",
        "f_globals",
        "f_locals",
    }
    | {"gi_frame", "cr_frame", "ag_frame", "tb_frame", "load_module", "exec_module"}
)

#: Evaluates a text in a type, such as `Optional["..."]`. Students may have such a method too.
EVALUATE = "_evaluate"

# Attributes of a module that list its names or read one by its text.
_LISTING = frozenset({"__dict__", "__getattr__", "__getattribute__"})

# Modules imported by other modules are attributes of these, such as `random._os`. Some have the
# name of a function of numpy or torch that solutions may use.
_NAMESAKES = frozenset({"array", "chunk", "profile", "select", "signal", "trace"})
_FOREIGN = sys.stdlib_module_names - _NAMESAKES - set(_COMPUTING)


def is_refused_name(name: str) -> bool:
    """Tell whether a name that no cell binds is a refused name of Python or IPython.

    >>> [name for name in ("exec", "_12", "sum", "x_1") if is_refused_name(name)]
    ['exec', '_12']
    """
    return name in BUILTINS or bool(_HISTORY.fullmatch(name))


def refused_part(name: str, entries: dict[str, bool], refused: Collection[str] = ()) -> str:
    """Return the part of a dotted name that may not be used; empty if the whole name may.

    `entries` is the list, and `refused` excludes more names.

    >>> refused_part("math.sqrt", ENTRIES), refused_part("os.path.join", ENTRIES)
    ('', 'os')
    >>> refused_part("sys.maxsize", ENTRIES), refused_part("sys.modules", ENTRIES)
    ('', 'sys.modules')
    >>> refused_part("math.fsum", ENTRIES, {"math.fsum"})
    'math.fsum'
    >>> widened = {**ENTRIES, "torch.distributed.send": True}
    >>> [refused_part(f"torch.distributed{x}", widened) for x in ("", ".send", ".rpc")]
    ['', '', 'torch.distributed']
    """
    if name.startswith("."):
        return name  # a module in the notebook's folder
    parts = name.split(".")
    starts = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    known = [start for start in starts if start in entries or start in refused]
    if name not in refused and entries.get(name) is False and _has_allowed_parts(name, entries):
        return ""  # the module itself, on the way to an allowed part
    if known and (known[-1] in refused or not entries[known[-1]]):
        return known[-1]
    if not known:
        return _first_unknown(starts, entries)
    inner = starts[starts.index(known[-1]) + 1 :]
    return next((start for start in inner if _leads_out(start.rpartition(".")[2])), "")


def _has_allowed_parts(name: str, entries: dict[str, bool]) -> bool:
    return any(allowed and entry.startswith(f"{name}.") for entry, allowed in entries.items())


def _first_unknown(starts: list[str], entries: dict[str, bool]) -> str:
    """The first of these names such that no entry matches it or a part of it."""
    return next(
        (s for s in starts if not any(entry.startswith(f"{s}.") for entry in entries)), starts[-1]
    )


def _leads_out(part: str) -> bool:
    foreign = not _FOREIGN.isdisjoint({part, part.lstrip("_")})
    return part in REFLECTION or part in _LISTING or foreign
