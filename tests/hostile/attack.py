"""Attack: one hostile submission to lab 5, and its expected result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.content import find_task
from tests.autograder.uses import names_used_by
from tests.grading import LAB05, Notebook, cell_of, code_cell, released, solved

__all__ = ["FRAME", "Attack"]

_EXERCISE = "largest_micro_batch"  # worth 4 points


# Forbidden imports, hidden from the source check so that the attack meets the guards behind it.
_HIDE = '\nimport logging\nsetattr(logging.root, "attack", attack)\n'
_CALL = f"import logging\ndef {_EXERCISE}(*runs): return logging.root.attack(*runs)"


def _is_refused(task: str, sources: Sequence[str]) -> bool:
    return bool(names_used_by(find_task(task), *sources))


# Code that a cell needs to write to the grader's socket.
FRAME = """
import os
from peakmem.core import serialization
def to_grader(data):
    for fd in range(3, 64):
        try: os.write(fd, data)
        except OSError: pass
def frame(message):
    data = message if isinstance(message, bytes) else serialization.encode(message)
    return len(data).to_bytes(8, "big") + data
"""


@dataclass(frozen=True)
class Attack:
    """A student's code, and the points and message that it must get.

    `cells` are code cells separated by `# %%`. A cell that defines the exercise's function replaces
    the exercise's own cell; the others are added above it. If there is none, the exercise is solved
    honestly, so an attack that fails leaves its author the full 4 points. `points` is None if the
    exercise needs manual grading. Code that succeeds in doing anything forbidden prints REACHED.
    `says` is a pattern that the message must match, `shows` one for the feedback page.
    """

    name: str
    cells: str
    points: int | None
    says: str = ""
    shows: str = ""

    @property
    def task(self) -> str:
        return f"lab05-{_EXERCISE}"

    @property
    def status(self) -> str:
        """The expected row in the table of grades."""
        if self.points is None:
            return "could_not_judge"
        return {0: "wrong", 4: "right"}.get(self.points, "partly")

    def notebook(self, lab: str = LAB05, **places: object) -> Notebook:
        """The submission. In the code, `{name}` is replaced by the place with that name."""
        notebook = released(lab)  # the other exercises would only take time
        solution = cell_of(notebook, f"{self.task}-solution")
        solution["source"] = cell_of(solved(lab), f"{self.task}-solution")["source"]
        added = []
        for cell in self.cells.split("# %%"):
            source = cell.strip()
            for place, value in places.items():
                source = source.replace(f"{{{place}}}", str(value))
            if re.search(rf"^def {_EXERCISE}\b", source, re.MULTILINE):
                solution["source"] = source
            else:
                added.append(code_cell(source, tags=[f"added-{len(added)}"]))
        if _is_refused(self.task, [*(cell["source"] for cell in added), solution["source"]]):
            hidden = solution["source"].replace(_EXERCISE, "attack") + _HIDE
            added.append(code_cell(hidden, tags=[f"added-{len(added)}"]))
            solution["source"] = _CALL
        where = notebook["cells"].index(solution)
        for number, cell in enumerate(added):
            cell["id"] = f"added-{number}"
        notebook["cells"][where:where] = added
        return notebook
