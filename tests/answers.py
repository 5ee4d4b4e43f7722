"""Answers of the course's bank, for tests: one by name, or some as a separate bank."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from autograder.content import find_lab, lab_of
from autograder.model.task import Task
from autograder.trials.answer_bank import read_bank
from autograder.trials.entry import Entry
from tests.grading import REPOSITORY

__all__ = [
    "BANK",
    "answer",
    "answers",
    "first_right",
    "mistakes_shown",
    "source_of",
    "write_answers",
]

BANK = REPOSITORY / "bank"


@cache
def answers(lab: str) -> tuple[Entry, ...]:
    """Every answer to the lab's tasks."""
    return tuple(read_bank(BANK, find_lab(lab)))


def answer(lab: str, label: str) -> Entry:
    """The answer of this label, such as `lab03-lean_adam_step/right_halving`."""
    (found,) = (entry for entry in answers(lab) if entry.label == label)
    return found


def source_of(task: Task, name: str) -> str:
    """The source of the task's answer of this name, such as `right_halving`."""
    return answer(lab_of(task.id).name, f"{task.id}/{name}").source


def first_right(task: Task) -> str:
    """The source of the first of the task's right answers."""
    right = [e for e in answers(lab_of(task.id).name) if (e.task, e.kind) == (task.id, "right")]
    return right[0].source


def mistakes_shown(task: Task) -> set[str]:
    """The names of the task's wrong answers."""
    return {e.name for e in answers(lab_of(task.id).name) if (e.task, e.kind) == (task.id, "wrong")}


def write_answers(bank: Path, lab: str, entries: Iterable[Entry]) -> None:
    """Write a bank of these answers to one lab."""
    (bank / lab).mkdir(parents=True)
    for entry in entries:
        cell = f'# %% {entry.kind}: {entry.name}\n"""{entry.about}"""\n{entry.source}\n'
        with (bank / lab / f"{entry.task.partition('-')[2]}.py").open(
            "a", encoding="utf-8"
        ) as file:
            file.write(cell)
