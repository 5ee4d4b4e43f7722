"""Notebooks whose cells or metadata were edited, and files that aren't notebooks at all."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from tests.grading import LAB05, SEARCH, Notebook, cell_of, code_cell, released, solved

__all__ = ["FILES", "STRUCTURES", "Structure"]

_SOLUTION = f"{SEARCH}-solution"


@dataclass(frozen=True)
class Structure:
    """An edited notebook, and its author's points for the first exercise."""

    name: str
    edit: Callable[[Notebook], None]
    points: int
    of: Callable[[], Notebook] = solved
    write: Callable[[Notebook], bytes] = lambda notebook: json.dumps(notebook).encode()

    def handed_in(self) -> bytes:
        """The file's bytes."""
        notebook = self.of()
        self.edit(notebook)
        return self.write(notebook)


def _all_grade_ids_alike(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["grade_id"] = SEARCH


def _no_metadata(notebook: Notebook) -> None:
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] = {}
        cell["id"] = f"x{number}"


def _duplicated(notebook: Notebook) -> None:
    grade = cell_of(notebook, SEARCH)
    notebook["cells"] += [deepcopy(grade) for _ in range(3)]


def _deleted(notebook: Notebook) -> None:
    notebook["cells"] = [c for c in notebook["cells"] if not c["id"].startswith(SEARCH)]


def _grade_cell_deleted(notebook: Notebook) -> None:
    notebook["cells"].remove(cell_of(notebook, SEARCH))


def _split(notebook: Notebook) -> None:
    solution = cell_of(notebook, _SOLUTION)
    where = notebook["cells"].index(solution)
    twin = deepcopy(solution)
    solution["source"] = "def helper(run, upper): return upper"
    notebook["cells"].insert(where + 1, twin)


def _reordered(notebook: Notebook) -> None:
    title, setup, *rest = notebook["cells"]  # the setup's imports are used by all cells
    notebook["cells"] = [title, setup, *reversed(rest)]


def _retyped(notebook: Notebook) -> None:
    cell_of(notebook, SEARCH)["cell_type"] = "markdown"
    cell_of(notebook, f"{SEARCH}-check")["cell_type"] = "raw"


def _grade_cell_rewritten(notebook: Notebook) -> None:
    cell_of(notebook, SEARCH)["source"] = "4.0"
    cell_of(notebook, SEARCH)["metadata"]["nbgrader"] |= {"points": 100, "grade": False}


def _defined_again_last(notebook: Notebook) -> None:
    cell = code_cell("def largest_micro_batch(run, upper): return 1")
    notebook["cells"].append(cell | {"id": "again"})


def _forged_identity(notebook: Notebook) -> None:
    notebook["metadata"] |= {
        "student": "honest-a",
        "timestamp": "1999-01-01T00:00:00",
        "nbgrader": {"student_id": "honest-a", "timestamp": "1999-01-01T00:00:00"},
    }
    for cell in notebook["cells"]:
        cell["metadata"].get("nbgrader", {}).update({"student": "honest-a", "score": 4})


def _ids_alike(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["id"] = _SOLUTION


def _attached_scripts(notebook: Notebook) -> None:
    svg = "<svg onload=steal()><script>steal()</script></svg>"
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["attachments"] = {"x.svg": {"image/svg+xml": svg}, "x.png": {"image/png": svg}}
            cell["source"] += "\n![x](attachment:x.svg) <script>steal()</script>"


def _scripts_in_metadata(notebook: Notebook) -> None:
    evil = '"><script>steal()</script>{{ config }}\x1b[2J'
    state = {"x": {"model_module": "https://evil.example/x.js", "model_name": evil, "state": {}}}
    notebook["metadata"] |= {
        "title": evil,
        "authors": [{"name": evil}],
        "kernelspec": {"display_name": evil, "language": evil, "name": f"../../{evil}"},
        "language_info": {"name": evil, "pygments_lexer": evil, "file_extension": "/../../x"},
        "widgets": {"application/vnd.jupyter.widget-state+json": {"state": state}},
    }
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] |= {"tags": [evil], "name": evil, "slideshow": {"slide_type": evil}}
        if cell["id"] != _SOLUTION:
            cell["id"] = f"<script>{number}\x1b[2J"


def _odd_numbers(notebook: Notebook) -> None:
    notebook["metadata"]["odd"] = [float("nan"), float("-inf"), 10**4000]
    for cell in notebook["cells"]:
        cell["metadata"]["odd"] = deep = []
        for _ in range(100):
            deep.append([])
            deep = deep[0]


def _half_characters(notebook: Notebook) -> None:
    cell_of(notebook, _SOLUTION)["source"] += "\n# " + chr(0xD800) + chr(0)[:0] + chr(0xDFFF)
    notebook["metadata"][chr(0xD800)] = chr(0xDC00)


def _reads_otherwise(notebook: Notebook) -> None:
    """Put terminal codes and reordered text wherever a reader may see them."""
    evil = "\u202e } \u2066 harmless \u2069 \x1b]52;c;bHM=\x07\x9b2J"
    cell_of(notebook, _SOLUTION)["source"] += f"\n# {evil}"
    answer = cell_of(notebook, "lab05-explain")
    answer["source"] = f"{evil} &#x1b;[2J &#x202e; ![x](attachment:{evil[0]})"
    answer["attachments"] = {evil[0]: {"image/png": "iVBORw0KGgo="}}
    shown = code_cell("from IPython.display import HTML\nHTML('<b>&#x1b;[2J &#x202e;</b>')")
    notebook["cells"].append(shown | {"id": "shown"})


def _of_version_3(notebook: Notebook) -> bytes:
    """The notebook in nbformat 3, with headings of a nonexistent level."""
    cells = [dict(cell) for cell in notebook["cells"]]
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source")
    for level in (2.0, True, 10**9, "2", [2], None):
        cells.append({"cell_type": "heading", "level": level, "source": "x"})
    return json.dumps({"nbformat": 3.0, "worksheets": [{"cells": cells}]}).encode()


def _nothing(notebook: Notebook) -> None:
    """Leave the notebook unchanged; only its file is odd."""


STRUCTURES = [
    Structure("no-metadata", _no_metadata, 4),
    Structure("scripts-in-metadata", _scripts_in_metadata, 4),
    Structure("all-grade-ids-alike", _all_grade_ids_alike, 4),
    Structure("duplicated-grade-cells", _duplicated, 4),
    Structure("deleted", _deleted, 0),
    Structure("deleted-grade-cell", _grade_cell_deleted, 4),
    Structure("split-solution", _split, 4),
    Structure("reordered", _reordered, 4),
    Structure("retyped-grade-cells", _retyped, 4),
    Structure("rewritten-grade-cell", _grade_cell_rewritten, 0, released),
    Structure("forged-identity", _forged_identity, 0, released),
    Structure("defined-again-last", _defined_again_last, 0),
    Structure("all-ids-alike", _ids_alike, 4),
    Structure("attached-scripts", _attached_scripts, 4),
    Structure("odd-numbers", _odd_numbers, 4),
    Structure("half-characters", _half_characters, 4),
    Structure(
        "byte-order-mark", _nothing, 4, write=lambda n: b"\xef\xbb\xbf" + json.dumps(n).encode()
    ),
    Structure("reads-otherwise", _reads_otherwise, 4),
    Structure("odd-headings", _nothing, 4, write=_of_version_3),
    Structure("utf-16", _nothing, 4, write=lambda n: json.dumps(n).encode("utf-16")),
]


def _zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"../../{LAB05}.ipynb", b" " * (100 << 20))
        archive.writestr("/etc/cron.d/x", b"")
    return out.getvalue()


def _too_many_lists() -> bytes:
    return b'{"nbformat": 4, "cells": [' + b"[]," * 1_000_000 + b"[]]}"


def _too_deep() -> bytes:
    return b'{"nbformat": 4, "cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def _too_large() -> bytes:
    return b" " * (40 << 20)


def _too_many_cells() -> bytes:
    notebook = released()
    notebook["cells"] *= 200
    return json.dumps(notebook).encode()


def _too_much_code() -> bytes:
    notebook = released()
    notebook["cells"].append(code_cell("x\n" * 10**6) | {"id": "much"})
    return json.dumps(notebook).encode()


def _tar_of_devices() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, kind in (("../x", tarfile.CHRTYPE), ("/y", tarfile.SYMTYPE), ("z", b"1")):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.devmajor = kind, "/etc/shadow", 1
            archive.addfile(entry)
    return out.getvalue()


# Files in place of a notebook, and the reason shown to the instructor.
FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "zip-bomb": (_zip_bomb, "a zip archive"),
    "too-many-lists": (_too_many_lists, "structure is far larger"),
    "too-deep": (_too_deep, "nested more deeply"),
    "too-large": (_too_large, "over 20 MiB"),
    "too-many-cells": (_too_many_cells, "cells; expected at most"),
    "too-much-code": (_too_much_code, "answers need far fewer"),
    "packed": (lambda: gzip.compress(json.dumps(solved()).encode()), "isn't a notebook"),
    "tar-of-devices": (_tar_of_devices, "isn't a notebook"),
    "long-number": (lambda: b'{"nbformat": ' + b"4" * 9999 + b"}", "isn't a notebook"),
    "empty": (lambda: b"", "is empty"),
    "gradebook": (lambda: b"SQLite format 3\0" + bytes(99), "isn't a notebook"),
}
