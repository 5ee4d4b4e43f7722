"""The bank: right and wrong answers to every task, which must be graded as they say.

DIR/<lab>/<task without labNN->/right_<name>.py and wrong_<mistake>.py hold one solution cell each.
A file begins with a docstring of one line that says what is particular about it; a wrong one's may
end in `[earns 2]`, the most points it may still get, 0 if left out.

Answers to different tasks are graded together, in one notebook, as long as neither sees a name of
the other's. What then looks wrong is graded once more in a notebook of its own, and only that
counts as a problem.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from autograder.packing import pack
from autograder.result import Result
from autograder.task import Lab, Task, Verdict

__all__ = ["BankReport", "Entry", "check_bank", "given_sources", "read_bank", "submission_with"]

_FILE = re.compile(r"(right|wrong)_(\w+)\.py")
_DOCSTRING = re.compile(r'r?"""([^"\n]+(?:"(?!"")[^"\n]*)*)"""[ \t]*(?:\n|\Z)')
_EARNS = re.compile(r"\[earns (\d+(?:\.\d+)?)\]")

Notebook = dict[str, Any]
Grade = Callable[[Sequence[Notebook]], Sequence[Result]]


@dataclass(frozen=True)
class Entry:
    """One answer of the bank, to the task whose id is `task`.

    `about` is its docstring, `source` the rest of the file. `mistake` is the id of the mistake that
    the file is named for, None where its name is no mistake's. `earns` is the task's points for a
    right one, and the most that it may get for a wrong one.
    """

    task: str
    path: Path
    kind: Literal["right", "wrong"]
    mistake: str | None
    source: str
    earns: float
    about: str

    @property
    def label(self) -> str:
        return "/".join(self.path.parts[-3:])


@dataclass(frozen=True)
class BankReport:
    """What came of grading a bank, in sentences. It passed where `problems` is empty.

    `not_run` are the tasks that could not be tried here, for want of a GPU. `inexact` are wrong
    answers that earned less than the most they may: allowed, but a sampled class takes the most
    for what they earn.
    """

    problems: tuple[str, ...]
    not_run: tuple[str, ...]
    inexact: tuple[str, ...]
    graded: int


def read_bank(folder: Path, lab: Lab) -> list[Entry]:
    """Return the bank's answers to the lab, in the order of its tasks.

    Raises FileNotFoundError where there is none, and ValueError with one line for each file that
    does not have the form described above.
    """
    home = folder / lab.name
    if not home.is_dir():
        raise FileNotFoundError(
            f"there is no {home}; expected {folder} to hold {lab.name}/<task>/right_<name>.py "
            "and wrong_<mistake>.py"
        )
    tasks = {task.name: task for task in lab.tasks}
    entries: list[Entry] = []
    problems: list[str] = []
    for path in sorted(home.iterdir()):
        if path.name.startswith((".", "__")):
            continue
        if path.name not in tasks:
            problems.append(f"{path} answers no task of {lab.name}: those are {', '.join(tasks)}")
            continue
        for file in sorted(path.iterdir()):
            if not file.name.startswith((".", "__")):
                try:
                    entries.append(_entry(tasks[path.name], file))
                except ValueError as error:
                    problems.append(f"{file}: {error}")
    if problems:
        raise ValueError("\n".join(problems))
    order = [task.id for task in lab.tasks]
    return sorted(entries, key=lambda entry: order.index(entry.task))


def _entry(task: Task, file: Path) -> Entry:
    named = _FILE.fullmatch(file.name)
    if named is None:
        raise ValueError("expected a file named right_<name>.py or wrong_<mistake>.py")
    text = file.read_text(encoding="utf-8")
    documented = _DOCSTRING.match(text)
    if documented is None:
        raise ValueError('expected a docstring of one line first, in """: what is particular here')
    about = documented[1].strip()
    right = named[1] == "right"
    says = _EARNS.search(about)
    if "[earns" in about and (says is None or right or not about.endswith("]")):
        raise ValueError(
            "expected [earns N] with a number N, at the end of a wrong answer's docstring only"
        )
    earns = task.points if right else float(says[1]) if says else 0.0
    if not right and earns >= task.points:
        raise ValueError(f"a wrong answer cannot earn {earns:g} of {task.points:g} points")
    return Entry(
        task=task.id,
        path=file,
        kind="right" if right else "wrong",
        mistake=None if right or named[2] not in task.mistakes else named[2],
        source=text[documented.end() :].strip("\n"),
        earns=earns,
        about=about,
    )


def submission_with(release: Mapping[str, Any], answers: Mapping[str, str]) -> Notebook:
    """Return the released notebook with the solution cells of some tasks filled in.

    `answers` maps a task's id to its solution cell's source; the other cells are left as released.
    Raises ValueError for a task that has no solution cell there.
    """
    notebook: Notebook = deepcopy(dict(release))
    missing = dict(answers)
    for cell in notebook["cells"]:
        grade_id = cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", "")
        task = grade_id.removesuffix("-solution")
        if task != grade_id and task in missing:
            cell["source"] = missing.pop(task)
    if missing:
        raise ValueError(f"the release has no solution cell for {', '.join(missing)}")
    return notebook


def check_bank(release: Mapping[str, Any], entries: Sequence[Entry], grade: Grade) -> BankReport:
    """Grade all entries and return what is not as they say.

    `grade` turns notebooks into Results, one each and in the same order.
    """
    packs = pack(entries, given=given_sources(release))
    verdicts = _verdicts(release, packs, grade)
    alone = [
        entry
        for together in packs
        for entry in together
        if len(together) > 1 and _complaints(entry, verdicts[entry.path])
    ]
    if alone:
        verdicts |= _verdicts(release, [[entry] for entry in alone], grade)
    problems = [line for entry in entries for line in _complaints(entry, verdicts[entry.path])]
    return BankReport(
        problems=tuple(problems),
        not_run=tuple(_not_run(entries, verdicts)),
        inexact=tuple(_inexact(entries, verdicts)),
        graded=sum(not _needs_gpu(verdicts[entry.path]) for entry in entries),
    )


def _needs_gpu(verdict: Verdict | str) -> bool:
    return isinstance(verdict, Verdict) and verdict.status == "needs_gpu"


def _not_run(entries: Sequence[Entry], verdicts: Mapping[Path, Verdict | str]) -> Iterator[str]:
    counts = Counter(entry.task for entry in entries if _needs_gpu(verdicts[entry.path]))
    for task, count in counts.items():
        yield f"{task}: {count} answers were not run, for want of a GPU."


def _inexact(entries: Sequence[Entry], verdicts: Mapping[Path, Verdict | str]) -> Iterator[str]:
    for entry in entries:
        verdict = verdicts[entry.path]
        if isinstance(verdict, str) or _needs_gpu(verdict) or entry.kind == "right":
            continue
        if verdict.points < entry.earns:
            yield f"{entry.label} earned {verdict.points:g}, less than the {entry.earns:g} it says."


def given_sources(release: Mapping[str, Any]) -> list[str]:
    """Return the sources of a release's code cells but for the exercises' own."""
    return [
        "".join(cell["source"])
        for cell in release["cells"]
        if cell["cell_type"] == "code"
        and not cell.get("metadata", {}).get("nbgrader", {}).get("solution")
    ]


def _verdicts(
    release: Mapping[str, Any], packs: Sequence[Sequence[Entry]], grade: Grade
) -> dict[Path, Verdict | str]:
    """The verdict on each entry, or why its notebook was not graded."""
    notebooks = [
        submission_with(release, {entry.task: entry.source for entry in together})
        for together in packs
    ]
    found: dict[Path, Verdict | str] = {}
    for together, result in zip(packs, grade(notebooks), strict=True):
        by_task = {verdict.task: verdict for verdict in result.verdicts}
        for entry in together:
            if result.end != "graded":
                found[entry.path] = f"it was {result.end}: {result.reason}"
            else:
                found[entry.path] = by_task.get(entry.task, "it has no verdict")
    return found


def _complaints(entry: Entry, verdict: Verdict | str) -> list[str]:
    if isinstance(verdict, str):
        return [f"{entry.label} was not judged: {verdict}"]
    if verdict.status == "needs_gpu":
        return []
    came = f"{verdict.points:g} of {verdict.max_points:g} points"
    said = f"{verdict.status}, {verdict.message}"
    if entry.kind == "right":
        lost = verdict.status != "right" or verdict.points < entry.earns
        return [f"{entry.label} is right, but earned {came}: {said}"] if lost else []
    complaints = []
    if verdict.points > entry.earns or verdict.status == "right":
        complaints.append(
            f"{entry.label} is wrong and may earn {entry.earns:g}, but earned {came}: {said}"
        )
    if entry.mistake and verdict.mistake != entry.mistake:
        complaints.append(
            f"{entry.label} was not recognised as {entry.mistake}, but as {verdict.mistake}: {said}"
        )
    return complaints
