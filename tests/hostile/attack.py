"""Attack: one hostile submission to lab 5, and what has to come of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.grading import LAB05, Notebook, cell_of, code_cell, solved

__all__ = ["Attack"]

_SOLUTION = "lab05-largest_micro_batch-solution"


@dataclass(frozen=True)
class Attack:
    """Code that a student hands in, and the points and the message that it has to get.

    `cells` are cells of code with `# %%` between them. The one that defines the exercise's
    function stands in its place; the others are added above it. Without such a one the exercise is
    solved honestly, so an attack that reaches nothing leaves its author the full 4 points. What
    reads or does anything that it should not prints REACHED. `says` is a pattern that is found in
    the message, `shows` one that is found on the feedback page.
    """

    name: str
    cells: str
    points: int
    says: str = ""
    shows: str = ""

    def notebook(self, lab: str = LAB05, **places: object) -> Notebook:
        """The submission. `{name}` in the code stands for the place of that name."""
        notebook = solved(lab)
        solution = cell_of(notebook, _SOLUTION)
        added = []
        for cell in self.cells.split("# %%"):
            source = cell.strip()
            for place, value in places.items():
                source = source.replace(f"{{{place}}}", str(value))
            if "def largest_micro_batch" in source:
                solution["source"] = source
            else:
                added.append(code_cell(source, tags=[f"added-{len(added)}"]))
        where = notebook["cells"].index(solution)
        for number, cell in enumerate(added):
            cell["id"] = f"added-{number}"
        notebook["cells"][where:where] = added
        return notebook
