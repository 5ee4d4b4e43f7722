"""Notebooks for benchmarks to grade, solved with the answer bank's correct answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.base.course import COURSE
from autograder.model.task import Lab
from autograder.trials.answer_bank import given_sources, read_bank, submission_with
from autograder.trials.entry import Entry
from autograder.trials.packing import together

__all__ = ["Notebook", "solved_notebooks", "write_notebook"]

Notebook = dict[str, Any]


def solved_notebooks(lab: Lab, release: Mapping[str, Any], count: int) -> Iterator[Notebook]:
    """Yield solved notebooks, taking each task's correct answers in turn.

    Answers that overwrite each other's names aren't combined: no student would submit such a
    notebook, and graders that run tests at different times would disagree about it.
    """
    entries = [entry for entry in read_bank(COURSE.bank, lab) if entry.kind == "right"]
    given = given_sources(release)
    for number in range(count):
        chosen: list[Entry] = []
        for task in lab.tasks:
            found = [entry for entry in entries if entry.task == task.id]
            start = number % len(found)
            in_turn = found[start:] + found[:start]
            fits = (entry for entry in in_turn if together([*chosen, entry], given))
            chosen.append(next(fits, in_turn[0]))
        yield submission_with(release, {entry.task: entry.source for entry in chosen})


def write_notebook(notebook: Notebook, path: Path) -> None:
    """Write a notebook as a file, creating its parent folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook))
