"""Grades correct and incorrect answers to every task, and checks each against its own claim.

DIR/<lab>/<task without labNN->.py holds a task's answers in percent format, one solution cell each,
under `# %% right: <name>` or `# %% wrong: <mistake>`. A folder <task>/ of files right_<name>.py and
wrong_<mistake>.py is also read. An answer starts with a one-line docstring on what is special about
it; an incorrect answer's may end in `[earns 2]`, the most points it may still get (by default 0).

Answers to different tasks are graded together in one notebook if neither sees the other's names. If
such an answer gets an unexpected verdict, it is graded again in its own notebook, and only that
verdict counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.base.plural import plural
from autograder.model.result import Result
from autograder.model.status import NEEDS, shown
from autograder.model.task import Lab, Task, Verdict
from autograder.trials.entry import Entry
from autograder.trials.packing import pack

__all__ = ["check_bank", "given_sources", "read_bank", "submission_with"]

_FILE = re.compile(r"(right|wrong)_(\w+)\.py")
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
_HEADING = re.compile(r" (right|wrong): (\w+)")
_DOCSTRING = re.compile(r'r?"""([^"\n]+(?:"(?!"")[^"\n]*)*)"""[ \t]*(?:\n|\Z)')
_EARNS = re.compile(r"\[earns (\d+(?:\.\d+)?)\]")

Notebook = dict[str, Any]
Grade = Callable[[Sequence[Notebook]], Sequence[Result]]


@dataclass(frozen=True)
class BankReport:
    """The outcome of grading an answer bank, in sentences."""

    #: Answers that weren't graded as they claim; the answer bank passes if there are none.
    problems: tuple[str, ...]
    #: Tasks that couldn't be tried here, because they need a GPU.
    not_run: tuple[str, ...]
    #: Incorrect answers that earned less than their most. That is allowed, but a sampled class
    #: expects the most.
    inexact: tuple[str, ...]
    #: The number of graded answers.
    graded: int


def read_bank(folder: Path, lab: Lab) -> list[Entry]:
    """Return the bank's answers to the lab, in the order of its tasks.

    Raises FileNotFoundError if there are none, and ValueError, with one line for each answer, if
    answers don't have the form described above.
    """
    home = folder / lab.name
    if not home.is_dir():
        raise FileNotFoundError(
            f"there is no {home}; expected {folder} to hold {lab.name}/<task>.py with cells headed "
            "`# %% right: <name>` and `# %% wrong: <mistake>`"
        )
    tasks = {task.name: task for task in lab.tasks}
    entries: list[Entry] = []
    problems: list[str] = []
    for path in sorted(home.iterdir()):
        if path.name.startswith((".", "__")):
            continue
        if path.stem not in tasks:
            problems.append(
                f"{path} answers no task of {lab.name}; its tasks are {', '.join(tasks)}"
            )
            continue
        for place, heading, text in _answers(path):
            try:
                entries.append(_entry(tasks[path.stem], heading, text))
            except ValueError as error:
                problems.append(f"{place}: {error}")
    labels = Counter(entry.label for entry in entries)
    problems += [f"{home}: {count} answers are {one}" for one, count in labels.items() if count > 1]
    if problems:
        raise ValueError("\n".join(problems))
    order = [task.id for task in lab.tasks]
    return sorted(entries, key=lambda entry: (order.index(entry.task), entry.kind, entry.name))


def _answers(path: Path) -> Iterator[tuple[str, re.Match[str] | None, str]]:
    """Yield the place of each answer to a task, its heading, if it has one, and its text."""
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if not file.name.startswith((".", "__")):
                yield str(file), _FILE.fullmatch(file.name), file.read_text(encoding="utf-8")
        return
    before, *cells = _CELL.split(path.read_text(encoding="utf-8"))
    if before.strip():
        yield f"{path}, before its first cell", None, before
    for heading, text in zip(cells[::2], cells[1::2], strict=True):
        yield f"{path}, `# %%{heading}`", _HEADING.fullmatch(heading.rstrip()), text


def _entry(task: Task, heading: re.Match[str] | None, text: str) -> Entry:
    if heading is None:
        raise ValueError(
            "expected an answer under `# %% right: <name>` or `# %% wrong: <mistake>`, or in a "
            "file named right_<name>.py or wrong_<mistake>.py"
        )
    documented = _DOCSTRING.match(text)
    if documented is None:
        raise ValueError('expected a docstring of one line first, in """: what is particular here')
    about = documented[1].strip()
    right, name = heading[1] == "right", heading[2]
    says = _EARNS.search(about)
    if "[earns" in about and (says is None or right or not about.endswith("]")):
        raise ValueError(
            "expected [earns N] with a number N, at the end of a wrong answer's docstring only"
        )
    earns = task.points if right else float(says[1]) if says else 0.0
    if not right and earns >= task.points:
        raise ValueError(f"a wrong answer can't earn {earns:g} of {task.points:g} points")
    return Entry(
        task=task.id,
        kind="right" if right else "wrong",
        name=name,
        mistake=None if right or name not in task.mistakes else name,
        source=text[documented.end() :].strip("\n"),
        earns=earns,
        about=about,
    )


def submission_with(release: Mapping[str, Any], answers: Mapping[str, str]) -> Notebook:
    """Return the released notebook with the solution cells of some tasks filled in.

    `answers` maps a task's id to its solution cell's source; other cells stay as released. Raises
    ValueError if a task has no solution cell there.
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
    """Grade all entries, and return those that weren't graded as they claim.

    `grade` turns notebooks into Results, one each and in the same order.
    """
    packs = pack(entries, given=given_sources(release))
    verdicts = _verdicts(release, packs, grade)
    alone = [
        entry
        for together in packs
        for entry in together
        if len(together) > 1 and _complaints(entry, verdicts[entry.label])
    ]
    if alone:
        verdicts |= _verdicts(release, [[entry] for entry in alone], grade)
    problems = [line for entry in entries for line in _complaints(entry, verdicts[entry.label])]
    return BankReport(
        problems=tuple(problems),
        not_run=tuple(_not_run(entries, verdicts)),
        inexact=tuple(_inexact(entries, verdicts)),
        graded=sum(not _was_not_run(verdicts[entry.label]) for entry in entries),
    )


def _was_not_run(verdict: Verdict | str) -> bool:
    return isinstance(verdict, Verdict) and verdict.status in NEEDS


def _not_run(entries: Sequence[Entry], verdicts: Mapping[str, Verdict | str]) -> Iterator[str]:
    counts = Counter(entry.task for entry in entries if _was_not_run(verdicts[entry.label]))
    for task, count in counts.items():
        yield f"{task}: needs a GPU; {plural(count, 'answer')} not run."


def _inexact(entries: Sequence[Entry], verdicts: Mapping[str, Verdict | str]) -> Iterator[str]:
    for entry in entries:
        verdict = verdicts[entry.label]
        if isinstance(verdict, str) or _was_not_run(verdict) or entry.kind == "right":
            continue
        if verdict.points < entry.earns:
            yield f"{entry.label} earned {verdict.points:g}, less than the {entry.earns:g} it says."


def given_sources(release: Mapping[str, Any]) -> list[str]:
    """Return the sources of a release's code cells, except the exercises' own."""
    return [
        "".join(cell["source"])
        for cell in release["cells"]
        if cell["cell_type"] == "code"
        and not cell.get("metadata", {}).get("nbgrader", {}).get("solution")
    ]


def _verdicts(
    release: Mapping[str, Any], packs: Sequence[Sequence[Entry]], grade: Grade
) -> dict[str, Verdict | str]:
    """The verdict on each entry, or why its notebook wasn't graded."""
    notebooks = [
        submission_with(release, {entry.task: entry.source for entry in together})
        for together in packs
    ]
    found: dict[str, Verdict | str] = {}
    for together, result in zip(packs, grade(notebooks), strict=True):
        by_task = {verdict.task: verdict for verdict in result.verdicts}
        for entry in together:
            if result.end != "graded":
                found[entry.label] = f"it was {result.end}: {result.reason}"
            else:
                found[entry.label] = by_task.get(entry.task, "it has no verdict")
    return found


def _complaints(entry: Entry, verdict: Verdict | str) -> list[str]:
    if isinstance(verdict, str):
        return [f"{entry.label} was not judged: {verdict}"]
    if verdict.status in NEEDS:
        return []
    came = f"{verdict.points:g} of {verdict.max_points:g} points"
    said = f"{shown(verdict.status)}, {verdict.message}"
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
