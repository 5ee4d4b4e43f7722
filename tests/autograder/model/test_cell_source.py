"""The code that is read of a cell is the code that IPython runs."""

import ast
import json
import subprocess
import sys
import time

import pytest

from autograder.grading.imports import needed
from autograder.model.cell_source import parsed
from autograder.model.definitions import statements
from autograder.model.submission import RunCell

# Cells, and the names that IPython binds when it runs them.
CELLS = {
    "x = 1": {"x"},
    "%time x = 1": {"x"},
    "%time x = 1; \\\n y = 2": {"x", "y"},
    "%%time\nx = 1": {"x"},
    "%%capture\n%%time\nx = 1": {"x"},
    "%prun -q -s cumulative x = 1": {"x"},
    "%matplotlib inline\nx = 1": {"x"},
    "str?\nx = 1": {"x"},
    "!true\nx = 1": {"x"},
    "  x = 1\n  y = 2": {"x", "y"},
    ">>> x = 1\n>>> y = 2": {"x", "y"},
    "# >>>\n>>> x = 1": {"x"},
    "In [1]: x = 1": {"x"},
    "def f(): pass\n/f\nx = 1": {"f", "x"},
    "x = '\u2028'": {"x"},
    "x = 1\n# \u2028%xmode\u2028y = 2": {"x", "y"},
    "x = 1\n# \x0c%xmode\x0cy = 2": {"x", "y"},
    "x = '\\\r...: y'": {"x"},
    "x = 1\x0c\ny = 2": {"x", "y"},
    "x = 1\ry = 2": {"x", "y"},
    "x = 1\ndef f(:": set(),
    "time x = 1": set(),
}
_RUN = """
import json, sys
from autograder.sandbox.guest.shell import make_shell
shell, _ = make_shell(draws=False)
out, cells = sys.__stdout__, json.load(sys.stdin)
for cell in cells:
    before = set(shell.user_ns)
    shell.run_cell(cell)
    bound = set(shell.user_ns) - before
    print(json.dumps(sorted(n for n in bound if not n.startswith("_"))), file=out)
    shell.reset()
"""


def test_ipython_binds_these_names() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps(list(CELLS)),
        capture_output=True,
        text=True,
        check=True,
    )
    bound = [set(json.loads(line)) for line in done.stdout.splitlines()]
    assert dict(zip(CELLS, bound, strict=True)) == CELLS


@pytest.mark.parametrize("cell", CELLS)
def test_the_same_names_are_read(cell: str) -> None:
    names = frozenset[str]().union(*(statement.binds for statement in statements(cell)))
    assert names == CELLS[cell]


@pytest.mark.parametrize(
    "cell",
    [
        "%run a.py",
        "%load_ext a",
        "%alias_magic t time\n%t x = 1",
        "!echo {exec(text)}",
        "%cd {exec(text)}",
        "%time -q -q -q -q -q -q -q -q -q -q -q -q x = 1",
        "vars()['x'] = 1",
        "f.__globals__['x'] = 1",
        "__import__('__main__').__dict__['x'] = 1",
        "from IPython.core.macro import Macro",
        "import importlib as i",
        f"x = {'-' * 20_000}1",  # too deep to be read, whatever Python's limits are
    ],
)
def test_what_may_bind_any_name_is_told(cell: str) -> None:
    assert any(statement.binds_unseen for statement in statements(cell))


def test_a_call_inside_of_a_function_stays() -> None:
    ((node, source, _),) = parsed("def f(x):\n    y = !echo {x}\n    return y")
    assert "get_ipython" in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    assert source.splitlines()[-1] == "    return y"


def test_ipythons_displays_bind_nothing_unseen() -> None:
    cell = "from IPython import display\nfrom IPython.display import HTML\nimport gc"
    assert not any(statement.binds_unseen for statement in statements(cell))


def test_blank_lines_take_no_time() -> None:
    cell = "x = 1" + 100_000 * "\n"
    begun = time.process_time()
    assert needed([RunCell(0, cell, "own")])
    # Searches that began again at each line took 2 s for 20,000, which grows with the square.
    assert time.process_time() - begun < 5
