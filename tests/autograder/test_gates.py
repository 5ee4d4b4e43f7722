"""Everything that leaves the grader passes one gate per destination; no code bypasses one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.files import python_files

# By the gate's modules: the calls that only they may make.
GATES = {
    ("terminal",): {"print", "sys.stdout.write", "sys.stderr.write", "traceback.print_exc"},
    ("csv_table",): {"csv.writer", "csv.DictWriter"},
    # HTML that is not escaped again: cleaned, or our own
    ("feedback", "feedback_cells"): {"Markup", "Markup.escape"},
}
# Modules that run beside a student, or report on the machine alone; folders end in a slash.
ELSEWHERE = (
    "authoring/release.py",  # what students get, made of the course's own pages
    "grading/stock.py",  # prints into a notebook, in the student's own kernel
    "templates/",  # what students start
)


def calls_past_the_gates(package: Path) -> Iterator[str]:
    """Yield `module: call` for each call outside the gate it belongs to."""
    for path in python_files(package):
        name = path.relative_to(package).as_posix()
        if name.startswith(ELSEWHERE):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for gate, own in GATES.items():
            if path.stem not in gate:
                yield from (f"{name}: {call}" for call in calls if call in own)


def test_nothing_goes_round_a_gate(repository: Path) -> None:
    assert list(calls_past_the_gates(repository / "autograder")) == []


@pytest.mark.parametrize(
    "line",
    [
        "def f():\n    print('x')",
        "import csv\ncsv.DictWriter(f, [])",
        "from markupsafe import Markup\nMarkup(x)",
        "import traceback\ntraceback.print_exc()",
    ],
)
def test_a_way_round_a_gate_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands/new.py").write_text(line)
    (tmp_path / "terminal.py").write_text("print('x')")
    assert [found.partition(":")[0] for found in calls_past_the_gates(tmp_path)] == [
        "commands/new.py"
    ]
