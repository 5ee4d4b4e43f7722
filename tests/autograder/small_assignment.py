"""An ordinary assignment that nothing built: two notebooks with all kinds of cells, and data.

Its layout follows nbgrader's documentation, so that nbgrader itself can grade it too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.grading import cell_of

__all__ = [
    "DATA",
    "NAME",
    "PROBLEM1",
    "PROBLEM2",
    "SOLVED",
    "answer",
    "code",
    "hand_in",
    "markdown",
    "notebook",
    "problem1",
    "problem2",
    "released",
    "submission",
    "write_course",
]

Json = dict[str, Any]

NAME, PROBLEM1, PROBLEM2 = "ps1", "problem1", "problem2"
DATA = "amount\n1\n2\n3\n"
HELPER = "def twice(x):\n    return 2 * x\n"
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
# The instructor's solution regions, by the solution cell's name.
SOLVED = {
    "square": "return x * x",
    "total": "return sum(amounts)",
    "quiet": "return x + 1",
    "value": "return 2.0",
    "plot": "shown = [1, 2, 3]",
    "cube": "return x ** 3",
}


def code(name: str, source: str, **nbgrader: Any) -> Json:
    return _cell("code", name, source, nbgrader) | {"execution_count": None, "outputs": []}


def markdown(name: str, source: str, **nbgrader: Any) -> Json:
    return _cell("markdown", name, source, nbgrader)


def _cell(kind: str, name: str, source: str, nbgrader: Mapping[str, Any]) -> Json:
    metadata: Json = {}
    if nbgrader:
        flags = {"grade": False, "locked": False, "solution": False, "task": False}
        metadata["nbgrader"] = flags | {"grade_id": name, "schema_version": 3} | dict(nbgrader)
    return {"cell_type": kind, "id": name, "metadata": metadata, "source": source}


def notebook(*cells: Json) -> Json:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": list(cells),
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _function(name: str, arguments: str) -> Json:
    """A solution cell."""
    body = f"    ### BEGIN SOLUTION\n    {SOLVED[name]}\n    ### END SOLUTION"
    return code(name, f"def {name}({arguments}):\n{body}", solution=True)


def _test(name: str, points: float, shown: str, hidden: str = "") -> Json:
    """A grade cell."""
    region = f"\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS" if hidden else ""
    return code(name, shown + region, grade=True, locked=True, points=points)


def problem1() -> Json:
    return notebook(
        markdown("title", "# Problem set 1"),
        code(
            "setup",
            "import csv\n\nfrom helper import twice\n\n"
            'with open("data.csv") as file:\n'
            '    amounts = [int(row["amount"]) for row in csv.DictReader(file)]',
            locked=True,
        ),
        markdown("about-square", "## Squares\n\nWrite `square(x)`.", locked=True),
        _function("square", "x"),
        _test(
            "test_square",
            2,
            "assert square(2) == 4",
            'assert square(-3) == 9, "the square of -3 is 9"\nassert square(0) == 0',
        ),
        markdown("about-total", "## A total", locked=True),
        _function("total", "amounts"),
        _test(
            "test_total",
            3,
            "parts = 0.0\nparts += 1.5 * (total(amounts) == 6)",
            "parts += 1.5 * (total([]) == 0)\nparts",
        ),
        markdown("about-quiet", "## Without a word", locked=True),
        _function("quiet", "x"),
        _test("test_quiet", 1, "assert quiet(1) == 2"),
        _test("test_twice", 1, "assert twice(quiet(1)) == 4"),
        _function("value", ""),
        _test("test_value", 2, "value()"),
        markdown("about-words", "## In words", locked=True),
        markdown(
            "essay",
            "### BEGIN SOLUTION\nBecause it fits.\n### END SOLUTION",
            grade=True,
            solution=True,
            points=4,
        ),
        code(
            "plot",
            f"### BEGIN SOLUTION\n{SOLVED['plot']}\n### END SOLUTION",
            grade=True,
            solution=True,
            points=2,
        ),
        markdown(
            "project",
            "Do something of your own below.\n\n"
            "### BEGIN MARK SCHEME\nA secret point each.\n### END MARK SCHEME",
            task=True,
            locked=True,
            points=3,
        ),
        _test("test_zero", 0, "assert square(1) == 1"),
    )


def problem2() -> Json:
    return notebook(
        markdown("title", "# The second notebook"),
        _function("cube", "x"),
        # The same name as in the first notebook, which nbgrader allows.
        _test("test_square", 1, "assert cube(2) == 8", "assert cube(-2) == -8"),
    )


def write_course(root: Path, source_folder: str = "source", config: str = "") -> Path:
    """Write the course as an instructor has it: sources, data, and nbgrader's settings."""
    folder = root / source_folder / NAME
    folder.mkdir(parents=True)
    for name, build in ((PROBLEM1, problem1), (PROBLEM2, problem2)):
        (folder / f"{name}.ipynb").write_text(json.dumps(build()), encoding="utf-8")
    (folder / "data.csv").write_text(DATA, encoding="utf-8")
    (folder / "helper.py").write_text(HELPER, encoding="utf-8")
    settings = f"c = get_config()\nc.CourseDirectory.source_directory = {source_folder!r}\n"
    (root / "nbgrader_config.py").write_text(settings + config, encoding="utf-8")
    return root


def released(build: Callable[[], Json]) -> Json:
    """The release as expected: an oracle for nbgrader's own steps."""
    made = build()
    for cell in made["cells"]:
        text = "YOUR ANSWER HERE" if cell["cell_type"] == "markdown" else STUB
        cell["source"] = _without(cell["source"], "SOLUTION", text)
        cell["source"] = _without(cell["source"], "HIDDEN TESTS", None)
        cell["source"] = _without(cell["source"], "MARK SCHEME", None)
    return made


def _without(source: str, region: str, instead: str | None) -> str:
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        if f"BEGIN {region}" in line:
            inside = True
            indent = line[: len(line) - len(line.lstrip())]
            lines += [indent + new for new in (instead or "").split("\n")] if instead else []
        elif f"END {region}" in line:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def answer(made: Json, **bodies: str) -> Json:
    """The notebook with these solution cells filled in: the body of a function, or a whole cell."""
    made = deepcopy(made)
    for name, body in bodies.items():
        cell = cell_of(made, name)
        head, _, _ = cell["source"].partition("\n")
        lines = "\n".join(f"    {line}" for line in body.split("\n"))
        cell["source"] = f"{head}\n{lines}" if head.startswith("def ") else body
    return made


def submission(**bodies: str) -> dict[str, Json]:
    """Both notebooks, solved except for these solution cells."""
    first = SOLVED | {"essay": "It fits."} | bodies
    second = {"cube": first.pop("cube")}
    return {
        PROBLEM1: answer(released(problem1), **first),
        PROBLEM2: answer(released(problem2), **second),
    }


def hand_in(submitted: Path, student: str, notebooks: Mapping[str, Json]) -> Path:
    """Write a student's notebooks, and return their folder."""
    folder = submitted / student / NAME
    folder.mkdir(parents=True)
    for name, made in notebooks.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(made), encoding="utf-8")
    return folder
