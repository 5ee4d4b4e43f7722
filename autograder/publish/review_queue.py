"""The manual-review queue, most urgent first, and the command that goes on from each row.

`OUT/needs_a_person.csv` has all of it; what is printed after grading is its beginning.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

from autograder.base.csv_table import csv_bytes
from autograder.base.files import write_whole
from autograder.content import full_id
from autograder.model.result import Result
from autograder.notebooks.questions import COURSE, Question, questions_of
from autograder.publish.export import said
from autograder.publish.summary import cut
from autograder.store.database import final_scores, second_looks

__all__ = ["LIST", "Need", "needs", "told", "write_needs"]

LIST = "needs_a_person.csv"

Kind = Literal[
    "failed",
    "quarantined",
    "could_not_judge",
    "second_look",
    "in_words",
    "needs_gpu",
    "repaired",
]
Scores = Mapping[str, float | None]
Words = Mapping[str, str]

_COLUMNS = ("kind", "student", "lab", "task", "count", "why", "next")
# What a person reads above each kind, and the command that goes on from there.
_KINDS: dict[Kind, tuple[str, str]] = {
    "failed": (
        "Grading failed, which is no student's fault; try again",
        "autograder{course} grade {lab} --submitted SUBMITTED --out {out}",
    ),
    "quarantined": (
        "Not read as this lab's notebook; once it is handed in again",
        "autograder{course} grade {lab} --submitted SUBMITTED --out {out}",
    ),
    "could_not_judge": (
        "Could not be judged; look, and give points in Formgrader",
        "autograder{course} explain {out} {student} {task}",
    ),
    "second_look": (
        "Given points by a person, then handed in anew or judged anew; look again in Formgrader",
        "autograder formgrade {out}",
    ),
    "in_words": ("Answers in words; give points in Formgrader", "autograder formgrade {out}"),
    "needs_gpu": (
        "Left out of the points for want of a GPU; on a machine with one",
        "autograder{course} regrade {lab} --submitted SUBMITTED --out {out}",
    ),
    "repaired": (
        "Graded after a repair, worth a look on the feedback page",
        "{out}/feedback/{student}/{lab}.html",
    ),
}
# Notes of a result that tell of no repair: they begin like this.
_OTHER_RELEASE = "This notebook is of release "
_NO_REPAIRS = (_OTHER_RELEASE, "Received ", "There is no receipt ")
_CHANGED = "Given cells that were changed "  # which is nobody's doing where releases differ
_WHY = {
    "in_words": "An answer in words, which a person reads.",
    "second_look": "What was given points for is not what counts now.",
    "needs_gpu": "The machine that graded has no GPU.",
}
_MOST_LINES = 10  # of single needs
_WIDTH = 100


@dataclass(frozen=True)
class Need:
    """One thing for a person; of a whole class, with no student, where nobody in it is special.

    `count` is how many answers it is about, `why` a sentence, `next` the command to run next.
    """

    kind: Kind
    student: str
    lab: str
    task: str
    count: int
    why: str
    next: str


def needs(results: Sequence[Result], out: Path, root: Path = COURSE) -> list[Need]:
    """Return all that waits for a person; what one has given points for in formgrader does not.

    `results` are those in `out`, whose gradebook is written; `root` holds the course's `solutions`.
    """
    scores, again, words = final_scores(out), second_looks(out), _words(out, root)
    questions = questions_of((result.lab for result in results), root)
    ordered = sorted(results, key=lambda r: (r.lab, r.student))
    found = [
        need
        for result in ordered
        for need in _of_one(result, scores.get((result.student, result.lab), {}), words, questions)
    ]
    found += [
        _need("second_look", words, _WHY["second_look"], result.lab, result.student, task)
        for result in ordered
        for task in again.get((result.student, result.lab), {})
    ]
    found += _of_class(ordered, scores, words, questions)
    return sorted(found, key=lambda need: list(_KINDS).index(need.kind))


def told(found: Sequence[Need], out: Path, root: Path = COURSE) -> str:
    """Return the beginning of what `needs` found as text, by kind, with commands to run next."""
    if not found:
        return "Needs a person: nothing."
    by_kind = {kind: [n for n in found if n.kind == kind] for kind in _KINDS}
    by_kind = {kind: some for kind, some in by_kind.items() if some}
    each = max(1, _MOST_LINES // len(by_kind))
    lines = [f"Needs a person ({out / LIST} has all of it):"]
    for kind, some in by_kind.items():
        title, command = _KINDS[kind]
        names = {"student": "STUDENT", "task": "TASK", "lab": "LAB"}
        if len({need.lab for need in some}) == 1:
            names["lab"] = some[0].lab
        lines.append(f"  {title} ({sum(need.count for need in some)}):")
        lines += [cut(f"    {_line(need)}", _WIDTH) for need in some[:each]]
        if len(some) > each:
            lines.append(f"    ... and {len(some) - each} more")
        lines.append(f"    -> {command.format(**_words(out, root), **names)}")
    return "\n".join(lines)


def write_needs(found: Iterable[Need], path: Path) -> None:
    """Write all of it to a CSV file, in one step; no text in it is a formula to a spreadsheet."""
    write_whole(path, csv_bytes([_COLUMNS, *map(astuple, found)]))


def _need(
    kind: Kind, words: Words, why: str, lab: str, student: str = "", task: str = "", count: int = 1
) -> Need:
    names = {"student": _word(student), "lab": lab, "task": full_id(lab, task)}
    return Need(kind, student, lab, task, count, why, _KINDS[kind][1].format(**words, **names))


def _of_one(
    result: Result, scores: Scores, words: Words, questions: Mapping[str, Sequence[Question]]
) -> Iterator[Need]:
    """What is to be done about one submission. `scores` are None where nobody gave points yet."""
    where = (result.lab, result.student)
    waiting = [q for q in questions[result.lab] if scores.get(q.id) is None]
    if result.end == "failed" or (result.end == "quarantined" and waiting):
        yield _need(result.end, words, said(result, result.reason), *where)
    if result.end != "graded":
        return
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    for question in waiting:
        verdict = verdicts.get(question.id)
        if not question.by_person and (verdict is None or verdict.status == "could_not_judge"):
            why = verdict.message if verdict else "The grader returned no verdict."
            yield _need("could_not_judge", words, said(result, why), *where, question.id)
    repairs = _repairs(result.notes)
    if repairs:
        yield _need("repaired", words, " ".join(repairs), *where)


def _repairs(notes: Sequence[str]) -> list[str]:
    of_other_release = any(note.startswith(_OTHER_RELEASE) for note in notes)
    none = (*_NO_REPAIRS, _CHANGED) if of_other_release else _NO_REPAIRS
    return [note for note in notes if not note.startswith(none)]


def _of_class(
    results: Iterable[Result],
    scores: Mapping[tuple[str, str], Scores],
    words: Words,
    questions: Mapping[str, Sequence[Question]],
) -> Iterator[Need]:
    """What is the same for everybody: answers in words, and exercises that need a GPU."""
    counts: dict[Kind, Counter[tuple[str, str]]] = {"in_words": Counter(), "needs_gpu": Counter()}
    for result in results:
        if result.end != "graded":
            continue
        own = scores.get((result.student, result.lab), {})
        by_gpu = {v.task for v in result.verdicts if v.status == "needs_gpu"}
        for question in questions[result.lab]:
            if own.get(question.id) is None:
                key = (result.lab, question.id)
                counts["in_words"][key] += question.by_person
                counts["needs_gpu"][key] += question.id in by_gpu
    for kind, of_kind in counts.items():
        for (lab, task), count in of_kind.items():
            if count:
                yield _need(kind, words, _WHY[kind], lab, task=task, count=count)


def _line(need: Need) -> str:
    if not need.student:
        return f"{need.task}: {need.count}"
    return f"{need.student}  {need.task or need.lab}  {' '.join(need.why.split())}"


def _words(out: Path, root: Path) -> Words:
    """What commands say of the place of the grades, and of a course that is not this one."""
    course = "" if root.resolve() == COURSE.resolve() else f" --course {_word(root)}"
    return {"out": _word(out), "course": course}


def _word(text: str | Path) -> str:
    return shlex.quote(str(text))
