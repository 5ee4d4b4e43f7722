"""Reads a cell as IPython runs it, which isn't always as it is written.

IPython removes indents and prompts, and turns magics, shell escapes and questions into calls. The
checks of source text have to see what will run, so they read each cell through this module. It runs
none of the cell's code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice

__all__ = ["parsed"]

# A valid cell without a prompt on a line runs as it is written.
_PROMPT = re.compile(r"^\s*(>>>|\.\.\.)|^.{0,9}In \[", re.MULTILINE)
_LINE_END = re.compile(r"\r\n?|\n")  # as Python counts lines

# Magics that run their text as code in the notebook's namespace, some after options.
_RUNNING = frozenset({"capture", "prun", "time", "timeit"})
# Calls and magics that bind no name of the notebook.
_HARMLESS = frozenset(
    {"autoreload", "cd", "conda", "env", "getoutput", "ls", "lsmagic", "mamba", "matplotlib"}
    | {"pinfo", "pinfo2", "pip", "precision", "pwd", "system", "uv", "who", "whos", "xmode"}
)
_EXPANDED = re.compile(r"[{$]")  # IPython evaluates what braces hold
_MOST_OPTIONS = 12


def parsed(cell: str) -> list[tuple[ast.stmt, str]]:
    r"""Return the statements that run for a cell, each with its source; none if it isn't valid.

    The code that a magic runs stands in its place. A magic that might bind any name is left as the
    call of `get_ipython` that IPython makes of it.

    >>> [source for _, source in parsed("%time a = 1\n%matplotlib inline\nb = 2")]
    ['a = 1', 'b = 2']
    """
    nodes = _parse(cell)
    if nodes is not None and not _PROMPT.search(cell):
        return _with_sources(nodes, cell)
    code = _transformed(cell)
    return [
        opened
        for node, source in _with_sources(_parse(code) or [], code)
        for opened in _opened(node, source)
    ]


def _parse(code: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _transformed(cell: str) -> str:
    from IPython.core.inputtransformer2 import TransformerManager  # late, since it is slow to load

    try:
        return TransformerManager().transform_cell(cell)
    except Exception:  # whatever it is, it keeps the cell from running there too
        return ""


def _with_sources(nodes: Sequence[ast.stmt], code: str) -> list[tuple[ast.stmt, str]]:
    lines = [line.encode() for line in _LINE_END.split(code)]
    return [(node, _source(node, lines)) for node in nodes]


def _source(node: ast.stmt, lines: Sequence[bytes]) -> str:
    """A statement's source text; `lines` are UTF-8, because columns count bytes."""
    decorators = getattr(node, "decorator_list", ())
    first = min(part.lineno for part in (node, *decorators))
    last = node.end_lineno or first
    begin = node.col_offset if first == node.lineno else 0  # a decorator has a line of its own
    if first == last:  # one slice, since a line may hold a hundred thousand statements
        return lines[last - 1][begin : node.end_col_offset].decode()
    own = [*lines[first - 1 : last - 1], lines[last - 1][: node.end_col_offset]]
    own[0] = own[0][begin:]
    return b"\n".join(own).decode()


def _opened(node: ast.stmt, source: str) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that a top-level statement stands for, if it is a magic."""
    name, texts = _magic(node)
    if name in _HARMLESS and not any(map(_EXPANDED.search, texts)):
        return
    code = [statement for text in texts for statement in _code_in(text)]
    if name not in _RUNNING or not code:
        yield node, source
    yield from code


def _magic(node: ast.stmt) -> tuple[str, list[str]]:
    """The name of the magic that a statement consists of, and its texts; empty if it is none."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Call)
        and getattr(call.func.value.func, "id", "") == "get_ipython"
    ):
        return "", []
    texts = [str(argument.value) for argument in call.args if isinstance(argument, ast.Constant)]
    if call.func.attr not in ("run_line_magic", "run_cell_magic"):
        return call.func.attr, texts
    return (texts[0], texts[1:]) if texts else ("", [])


def _code_in(text: str) -> list[tuple[ast.stmt, str]]:
    """The statements in a magic's text, which may start with options."""
    starts = islice(re.finditer(r"\A\s*|(?<=[ \t])(?=\S)", text), _MOST_OPTIONS)
    tries = (parsed(text[start.end() :]) for start in starts)
    return next(filter(None, tries), [])
