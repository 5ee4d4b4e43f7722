"""The hidden half of each lab: one folder per lab, each with a `LAB`."""

from __future__ import annotations

import importlib

from autograder.base.spelling import did_you_mean
from autograder.model.task import Lab, Task
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["find_lab", "find_task", "full_id", "has_tasks", "lab_names", "lab_of"]


def lab_names() -> list[str]:
    """Return the names of all labs, in order: `lab01_formats`, .... Loads none of them."""
    return sorted(HIDDEN_MODULES)


def find_lab(name: str) -> Lab:
    """Return the lab of this name. Raises ValueError, listing the labs, if there is none."""
    try:
        lab = _load(name.partition("_")[0])
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(__name__):
            raise
        lab = None
    if lab is None or lab.name != name:
        raise ValueError(f"there is no lab named {name!r}; the labs are {', '.join(lab_names())}")
    return lab


def has_tasks(name: str) -> bool:
    """Tell whether this is a lab with Tasks rather than an ordinary assignment. Doesn't load it."""
    return name in HIDDEN_MODULES


def full_id(lab: str, task: str) -> str:
    """Return a task's name in its course: its id, or `ps1/q1` for an ordinary assignment."""
    return task if has_tasks(lab) else f"{lab}/{task}"


def find_task(task_id: str) -> Task:
    """Return the task of this id. Raises ValueError, listing its lab's ids, if there is none."""
    lab = lab_of(task_id)
    for task in lab.tasks:
        if task.id == task_id:
            return task
    known = [task.id for task in lab.tasks]
    near = did_you_mean(task_id, known)
    raise ValueError(f"{lab.name} has no task {task_id!r}; its tasks are {', '.join(known)}.{near}")


def lab_of(task_id: str) -> Lab:
    """Return the lab that a task of this id belongs to. Raises ValueError if there is none."""
    number = task_id.partition("-")[0]
    if number not in _modules():
        near = _full_id(task_id) or did_you_mean(number, _modules())
        raise ValueError(
            f"there is no task {task_id!r}; an id begins with its lab's number, as in "
            f"lab01-decode_fp32, and the labs are {', '.join(lab_names())}.{near}"
        )
    return _load(number)


def _full_id(name: str) -> str:
    """Suggest the task whose id ends in this name; empty if there is none."""
    tasks = (task.id for module in _modules() for task in _load(module).tasks)
    return next((f" Did you mean {it}?" for it in tasks if it.partition("-")[2] == name), "")


def _modules() -> list[str]:
    return [name.partition("_")[0] for name in lab_names()]


def _load(module: str) -> Lab:
    lab: Lab = importlib.import_module(f"{__name__}.{module}").LAB
    return lab
