"""Reads a cell as IPython runs it, which isn't always as it is written.

IPython removes indents and prompts, and turns magics, shell escapes and questions into calls. The
checks of source text have to see what will run, so they read each cell through this module. It runs
none of the cell's code.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

__all__ = ["Part", "parsed"]

# A valid cell without a prompt on a line runs as it is written, unless IPython sees more lines in
# it than Python: it ends them at form feeds and U+2028 too, so a comment may hold further lines.
_PROMPT = re.compile(r"\s*(>>>|\.\.\.)|.{0,9}In \[")
_FURTHER_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Stands for a cell that is nested too deeply to be read here. It may bind any name, because a
# student's process may raise the limit and run it.
_TOO_DEEP = "exec('nested too deep')"
_LINE_END = re.compile(r"\r\n?|\n")  # as Python counts lines

# Magics that run their text, after any options, as code in the notebook's namespace.
_RUNNING = frozenset({"capture", "prun", "time", "timeit"})
# Calls and magics that bind no name of the notebook.
_HARMLESS = frozenset(
    {"autoreload", "cd", "conda", "env", "getoutput", "ls", "lsmagic", "mamba", "matplotlib"}
    | {"pinfo", "pinfo2", "pip", "precision", "pwd", "system", "uv", "who", "whos", "xmode"}
)
_EXPANDED = re.compile(r"[{$]")  # IPython evaluates text in braces
_MOST_OPTIONS = 12


class Part(NamedTuple):
    """A statement that runs for a cell."""

    #: Its syntax tree.
    node: ast.stmt
    #: Its source.
    source: str
    #: Whether a magic runs it; that may fail silently, or bind none of its names.
    by_magic: bool = False


def parsed(cell: str) -> list[Part]:
    r"""Return the statements that run for a cell; empty if it isn't valid.

    The code that a magic runs replaces it. A magic that might bind any name stays the call of
    `get_ipython` that IPython turns it into, and a cell that is nested too deeply becomes a call of
    `exec`.

    >>> [part.source for part in parsed("%time a = 1\n%matplotlib inline\nb = 2")]
    ['a = 1', 'b = 2']
    """
    try:
        return _parsed(cell)
    except (RecursionError, MemoryError):
        return _with_sources(ast.parse(_TOO_DEEP).body, _TOO_DEEP)


def _parsed(cell: str) -> list[Part]:
    nodes = _parse(cell)
    if nodes is not None and not _reads_otherwise(cell):
        return _with_sources(nodes, cell)
    code = _transformed(cell)
    return [opened for part in _with_sources(_parse(code) or [], code) for opened in _opened(part)]


def _parse(code: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError):
        return None


def _reads_otherwise(cell: str) -> bool:
    """Tell whether IPython may run a valid cell differently from how it is written."""
    return bool(_FURTHER_ENDS.search(cell)) or any(map(_PROMPT.match, cell.splitlines()))


def _transformed(cell: str) -> str:
    from IPython.core.inputtransformer2 import TransformerManager  # late, since it loads slowly

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of lines that end in U+2028
            return TransformerManager().transform_cell(cell)
    except Exception:  # any error here keeps the cell from running there, too
        return ""


def _with_sources(nodes: Sequence[ast.stmt], code: str) -> list[Part]:
    lines = [line.encode() for line in _LINE_END.split(code)]
    return [Part(node, _source(node, lines)) for node in nodes]


def _source(node: ast.stmt, lines: Sequence[bytes]) -> str:
    """A statement's source text; `lines` are UTF-8, because columns count bytes."""
    decorators = getattr(node, "decorator_list", ())
    first = min(part.lineno for part in (node, *decorators))
    last = node.end_lineno or first
    begin = node.col_offset if first == node.lineno else 0  # a decorator is on a separate line
    if first == last:  # one slice, since a line may hold a hundred thousand statements
        return lines[last - 1][begin : node.end_col_offset].decode()
    own = [*lines[first - 1 : last - 1], lines[last - 1][: node.end_col_offset]]
    own[0] = own[0][begin:]
    return b"\n".join(own).decode()


def _opened(part: Part) -> Iterator[Part]:
    """The statements that a top-level statement runs, if it is a magic."""
    name, texts = _magic(part.node)
    if name in _HARMLESS and not any(map(_EXPANDED.search, texts)):
        return
    code = [inner for text in texts for inner in _code_in(text)]
    if name not in _RUNNING or not code:
        yield part
    yield from (inner._replace(by_magic=True) for inner in code)


def _magic(node: ast.stmt) -> tuple[str, list[str]]:
    """The name and the texts of the magic that a statement calls; empty if it isn't one."""
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


def _code_in(text: str) -> list[Part]:
    """The statements in a magic's text, which may start with options."""
    starts = islice(re.finditer(r"\A\s*|(?<=[ \t])(?=\S)", text), _MOST_OPTIONS)
    tries = (parsed(text[start.end() :]) for start in starts)
    return next(filter(None, tries), [])
