"""A small released notebook, not built from a source, with one cell of every kind."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["LAB", "STUBS", "code", "markdown", "own", "release", "solved"]

LAB = "lab05_accumulation"
STUBS = {
    "double": "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
    "halve": "import math\n\ndef halve(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
}


def code(name: str, source: str, *tags: str, **nbgrader: Any) -> dict[str, Any]:
    return markdown(name, source, *tags, **nbgrader) | {
        "cell_type": "code",
        "execution_count": None,
        "outputs": [],
    }


def markdown(name: str, source: str, *tags: str, **nbgrader: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"tags": list(tags)} if tags else {}
    if nbgrader:
        flags = {"grade": False, "locked": False, "solution": False, "task": False}
        metadata["nbgrader"] = flags | {"grade_id": name, "schema_version": 3} | nbgrader
    return {"cell_type": "markdown", "id": name, "metadata": metadata, "source": source}


def own(name: str, source: str) -> dict[str, Any]:
    """A cell that a student adds."""
    return code(name, source)


def release() -> dict[str, Any]:
    """Two exercises, each with all its cells, a given cell between them, and one in words."""
    cells = [
        markdown("lab05-title", "# A lab", locked=True),
        code("lab05-setup", "import peakmem\nlimit = 10", locked=True),
        code("lab05-cell-1", "predicted = None  # your prediction"),
        code("lab05-double-solution", STUBS["double"], solution=True),
        code("lab05-double-check", "assert double(2) == 4", "raises-exception", **_checks),
        code("lab05-double", "# hidden cases run here", grade=True, locked=True, points=2),
        code("lab05-given", "scale = limit * 2", locked=True),
        code("lab05-cell-2", "print(double(limit))", "demo"),
        code("lab05-halve-solution", STUBS["halve"], solution=True),
        code("lab05-halve", "# hidden cases run here too", grade=True, locked=True, points=1),
        markdown("lab05-explain", "YOUR ANSWER HERE", grade=True, solution=True, points=2),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


_checks: dict[str, Any] = {"grade": True, "locked": True, "points": 0}


def solved(**sources: str) -> dict[str, Any]:
    """The release with the named exercises' solution cells filled in."""
    notebook = copy.deepcopy(release())
    for cell in notebook["cells"]:
        name = cell["id"].removeprefix("lab05-").removesuffix("-solution")
        if name in sources and cell["id"].endswith("-solution"):
            cell["source"] = sources[name]
    return notebook
