"""A lab of two tasks and a bank for it, small enough to be graded in the test's own process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.model.judge import could_not_judge, judge
from autograder.model.task import Answer, Case, Finding, Lab, Task, Verdict
from tests.autograder.small_release import LAB

__all__ = ["DOUBLE", "SMALL_LAB", "returning", "task", "verdict_on", "write", "write_bank"]

MISTAKES = {"adds_one": "You add one.", "forgets": "You forget it."}


def task(name: str, expected: float, *, needs_gpu: bool = False, lab: str = "lab05") -> Task:
    """A task whose function is called on 4, with a second part that any number earns."""

    def judged(case: Case, answer: Answer) -> dict[str, Finding]:
        mistakes = ("adds_one",) if answer.value == expected + 1 else ()
        number = isinstance(answer.value, (int, float))
        return {
            "value": Finding(answer.value == expected, mistakes=mistakes),
            "number": Finding(number, mistakes=mistakes),
        }

    return Task(
        id=f"{lab}-{name}",
        parts={"value": 1, "number": 1},
        defines=(name,),
        probe=name,
        cases=lambda rng: [Case(("value", "number"), {})],
        judge=judged,
        mistakes=MISTAKES,
        needs_gpu=needs_gpu,
    )


DOUBLE, HALVE = task("double", 8), task("halve", 2)
SMALL_LAB = Lab(LAB, (DOUBLE, HALVE))


def write(folder: Path, name: str, about: str, source: str, task_name: str = "double") -> Path:
    path = folder / LAB / task_name / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'"""{about}"""\n{source}\n', encoding="utf-8")
    return path


def returning(name: str, value: object) -> str:
    return f"def {name}(x):\n    return {value!r}"


def write_bank(folder: Path) -> None:
    """Three right and five wrong answers to each task, one of them a mistake that earns 1."""
    for name, right in (("double", 8), ("halve", 2)):
        for number in range(3):
            write(folder, f"right_{number}", "Right.", returning(name, right), name)
        for number in range(4):
            write(folder, f"wrong_{number}", "Wrong.", returning(name, None), name)
        write(folder, "wrong_adds_one", "One more. [earns 1]", returning(name, right + 1), name)


def verdict_on(task: Task, names: Mapping[str, Any]) -> Verdict:
    """The verdict on the names that a notebook defines."""
    if task.needs_gpu:
        return could_not_judge(task, "No GPU.", "needs_gpu")
    try:
        answer = Answer(names[task.defines[0]](4))
    except Exception as error:
        answer = Answer(raised=(type(error).__name__, str(error), ""))
    return judge(task, task.cases(None), [answer])  # type: ignore[arg-type]
