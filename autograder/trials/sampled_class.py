"""Makes a class of invented students whose scores are known before grading.

Answers come from the answer bank: right ones, and wrong ones that are named after a mistake and so
earn exactly what their docstring says (`check_bank` lists exceptions as inexact). Students are of
each of KINDS in turn, so that a class has everything that makes honest notebooks messy.
Exercises that need a GPU are answered correctly or not at all.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.base.csv_table import csv_bytes
from autograder.model.status import shown
from autograder.model.task import Lab, Task
from autograder.notebooks.released import release_of
from autograder.trials.answer_bank import given_sources, read_bank, submission_with
from autograder.trials.entry import Entry
from autograder.trials.packing import bound_names, helps_others, together

__all__ = ["COLUMNS", "KINDS", "ClassFolder", "sample_class"]

COLUMNS = ("student", "lab", "task", "score", "status", "mistake")
Notebook = dict[str, Any]


@dataclass(frozen=True)
class ClassFolder:
    """The folder of a sampled class."""

    #: The folder as the user named it.
    path: Path

    @property
    def submitted(self) -> Path:
        """The submissions, as <student>/<lab>/<lab>.ipynb."""
        return self.path / "submitted"

    @property
    def truth(self) -> Path:
        """The true grades, a CSV file with COLUMNS."""
        return self.path / "truth.csv"


def sample_class(
    labs: Sequence[Lab],
    students: int,
    seed: int,
    out: Path,
    bank: Path,
    releases: Path,
    *,
    has_gpu: bool = False,
) -> None:
    """Write a ClassFolder of `students` submissions, to the labs in turn, and their true grades.

    A student submits one lab. `bank` and `releases` are the folders of the answer bank and of
    released labs; `has_gpu` tells whether exercises that need a GPU will be graded. The same
    arguments write the same bytes. A true score is empty if the exercise won't be judged.

    Raises FileExistsError if `out` isn't empty, since old files could be taken for this class.
    """
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} is not empty; give a new folder, or delete it first")
    folder = ClassFolder(out)
    rows: list[tuple[str, ...]] = []
    for number, lab in enumerate(labs):
        release, entries = release_of(lab.name, releases), read_bank(bank, lab)
        for turn, index in enumerate(range(number, students, len(labs))):
            student = f"s{index + 1:03d}"
            # Each lab starts at another kind, so that all kinds occur even with few students.
            kind = KINDS[(turn + number * len(KINDS) // len(labs)) % len(KINDS)]
            draw = random.Random(f"{seed} {lab.name} {student}")
            notebook, answers = _work(lab, release, entries, kind, draw)
            _write_notebook(folder.submitted / student / lab.name / f"{lab.name}.ipynb", notebook)
            rows += [(student, lab.name, t.id, *_known(t, answers, has_gpu)) for t in lab.tasks]
    rows.sort(key=lambda row: (row[1], row[0]))  # by lab, then by student
    folder.truth.write_bytes(csv_bytes([COLUMNS, *rows]))


def _write_notebook(path: Path, notebook: Notebook) -> None:
    path.parent.mkdir(parents=True)
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode())


def _known(task: Task, answers: Mapping[str, Entry], has_gpu: bool) -> tuple[str, str, str]:
    """The score, the status and the mistake that grading this work must give."""
    entry = answers.get(task.id)
    if task.needs_gpu and not has_gpu:
        return "", shown("needs_gpu"), ""
    if entry is None:
        return "0", shown("wrong"), ""
    if entry.kind == "right":
        return f"{task.points:g}", shown("right"), ""
    return f"{entry.earns:g}", shown("partly" if entry.earns else "wrong"), entry.mistake or ""


def _work(
    lab: Lab,
    release: Mapping[str, Any],
    entries: Sequence[Entry],
    kind: str,
    draw: random.Random,
) -> tuple[Notebook, dict[str, Entry]]:
    """One student's notebook, and by task the answers of the bank that count in it."""
    if kind == "empty":
        return {**release, "cells": []}, {}
    if kind == "untouched":
        return dict(release), {}
    answerable = [
        task
        for task in lab.tasks
        if not task.needs_gpu
        and any(
            e.task == task.id and e.kind == "right" and not helps_others(lab, e) for e in entries
        )
    ]
    mess = _MESSES.get(kind) if answerable else None
    spoiled = draw.choice(answerable) if mess else None
    answers = _answers(lab, release, entries, draw, kind == "all right", spoiled)
    notebook = submission_with(release, {task: entry.source for task, entry in answers.items()})
    _answer_manual_questions(notebook)
    if mess and spoiled:
        mess(notebook, spoiled)
        if kind in _COSTLY:
            del answers[spoiled.id]
    return notebook, answers


def _answer_manual_questions(notebook: Notebook) -> None:
    """Answer each question that an instructor grades, whose score isn't known."""
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("grade") and marks.get("solution"):
            cell["source"] = "A sample student's prose answer."


def _answers(
    lab: Lab,
    release: Mapping[str, Any],
    entries: Sequence[Entry],
    draw: random.Random,
    all_right: bool,
    surely: Task | None,
) -> dict[str, Entry]:
    """Draw an answer to each task, such that none sees another's names; `surely` is answered."""
    given = given_sources(release)
    answers: dict[str, Entry] = {}
    for task in sorted(lab.tasks, key=lambda task: task is not surely):
        wanted = "right"
        if not all_right and task is not surely:
            wanted = draw.choices(("right", "wrong", "unsolved"), (0.5, 0.35, 0.15))[0]
        if wanted == "wrong" and task.needs_gpu:
            wanted = "unsolved"
        fitting = [
            entry
            for entry in entries
            if entry.task == task.id
            and entry.kind == wanted
            and (entry.kind == "right" or entry.mistake)
            and together([*answers.values(), entry], given)
        ]
        if task is surely:
            fitting = [entry for entry in fitting if not helps_others(lab, entry)]
        if fitting:
            answers[task.id] = draw.choice(fitting)
    return _without_strangers(lab, answers, surely)


def _without_strangers(
    lab: Lab, answers: Mapping[str, Entry], surely: Task | None
) -> dict[str, Entry]:
    """Drop answers that define, say as a helper, what an unanswered exercise asks for."""
    kept = dict(answers)
    while True:
        # The answer to `surely` may be spoiled later, so no other answer may replace it.
        unsure = [task for task in lab.tasks if task.id not in kept or task is surely]
        strangers = [
            entry.task
            for entry in kept.values()
            for task in unsure
            if task.id != entry.task and bound_names(entry.source) & set(task.defines)
        ]
        removable = [task for task in strangers if surely is None or task != surely.id]
        if not removable:
            return kept
        del kept[removable[-1]]


# Each mess changes the notebook at one correctly answered task.


def _place(notebook: Notebook, task: Task) -> int:
    ids = [c["metadata"].get("nbgrader", {}).get("grade_id") for c in notebook["cells"]]
    return ids.index(f"{task.id}-solution")


def _helper_in_an_added_cell(notebook: Notebook, task: Task) -> None:
    """Move the work to a helper of another name, in an added cell above."""
    place = _place(notebook, task)
    solution = notebook["cells"][place]
    source, calls = solution["source"], []
    for name in task.defines:
        helper = f"{name}_helper"
        is_class = re.search(rf"^class {name}\b", source, re.MULTILINE)
        source = re.sub(rf"(?<![\w.]){name}\b", helper, source)
        calls.append(
            f"class {name}({helper}):\n    pass"
            if is_class
            else f"def {name}(*arguments, **options):\n    return {helper}(*arguments, **options)"
        )
    solution["source"] = "\n\n\n".join(calls)
    notebook["cells"].insert(place, _added_cell("helper", source))


def _copied_cell(notebook: Notebook, task: Task) -> None:
    place = _place(notebook, task)
    copied = deepcopy(notebook["cells"][place]) | {"id": "copied"}
    notebook["cells"].insert(place + 1, copied)


def _deleted_cell(notebook: Notebook, task: Task) -> None:
    del notebook["cells"][_place(notebook, task)]


def _no_metadata(notebook: Notebook, task: Task) -> None:
    """Save as Colab does: in an older format, without ids and without nbgrader's metadata."""
    notebook["nbformat_minor"] = 0
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        cell.pop("id", None)


def _syntax_error(notebook: Notebook, task: Task) -> None:
    notebook["cells"][_place(notebook, task)]["source"] += "\n\nprint("


def _warnings(notebook: Notebook, task: Task) -> None:
    solution = notebook["cells"][_place(notebook, task)]
    solution["source"] = f"{_NOISE}\n\n{solution['source']}"


_NOISE = """\
import sys
import warnings

warnings.warn("this function may change")
print("written to stderr", file=sys.stderr)"""


def _added_cell(name: str, source: str) -> dict[str, Any]:
    empty: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": []}
    return empty | {"cell_type": "code", "id": name, "source": source}


_MESSES: dict[str, Callable[[Notebook, Task], None]] = {
    "helper in an added cell": _helper_in_an_added_cell,
    "copied cell": _copied_cell,
    "deleted cell": _deleted_cell,
    "no metadata": _no_metadata,
    "syntax error": _syntax_error,
    "warnings": _warnings,
}
_COSTLY = frozenset({"deleted cell", "syntax error"})  # these cost their exercise
KINDS = ("all right", "mixed", *_MESSES, "mixed", "untouched", "mixed", "empty")
