"""Builds the manual-review queue, most urgent first, with the next command for each row.

`OUT/manual_review.csv` has the whole queue; its beginning is printed after grading.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Literal

from autograder.base.course import COURSE, Course
from autograder.base.csv_table import csv_bytes
from autograder.base.files import write_whole
from autograder.content import full_id
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.status import NEEDS
from autograder.model.submission import SubmissionKey
from autograder.notebooks.questions import Question, questions_of
from autograder.publish.grades_csv import said
from autograder.publish.summary import cut
from autograder.store.out_folder import OutFolder
from autograder.store.scores import final_scores, second_looks

__all__ = ["Kind", "Need", "needs", "told", "write_needs"]

Kind = Literal[
    "failed",
    "quarantined",
    "not_judged",
    "second_look",
    "manual",
    "needs_gpu",
    "needs_isolation",
    "repaired",
]
Scores = Mapping[str, float | None]
Words = Mapping[str, str]

_COLUMNS = ("kind", "student", "lab", "task", "count", "why", "next")
# The heading above each kind, and the next command.
_KINDS: dict[Kind, tuple[str, str]] = {
    "failed": (
        "Grading failed, through no fault of the student; grade again",
        "autograder{course} grade {lab} --submitted SUBMITTED --out {out}",
    ),
    "quarantined": (
        "Quarantined: unreadable as this lab's notebook; after resubmission",
        "autograder{course} grade {lab} --submitted SUBMITTED --out {out}",
    ),
    "not_judged": (
        "Not judged; look at why, and give points in Formgrader",
        "autograder{course} explain {out} {student} {task}",
    ),
    "second_look": (
        "Graded manually, then submitted or judged again; see Formgrader",
        "autograder formgrade {out}",
    ),
    "manual": ("Answers to grade manually in Formgrader", "autograder formgrade {out}"),
    "needs_gpu": (
        "Needs a GPU, left out of the points; on a machine with one",
        "autograder{course} regrade {lab} --submitted SUBMITTED --out {out}",
    ),
    "needs_isolation": (
        "Needs Linux namespaces, left out of the points; on a machine with them",
        "autograder{course} regrade {lab} --submitted SUBMITTED --out {out}",
    ),
    "repaired": (
        "Repaired before grading; look at the feedback page",
        "{pages}/{student}/{lab}.html",
    ),
}
_WHY = {
    "manual": "It needs manual grading.",
    "second_look": "The manual points are for different work from the work that counts now.",
    "needs_gpu": "The grading machine has no GPU.",
    "needs_isolation": "The grading machine has no Linux namespaces.",
}
_MOST_LINES = 10  # lines about single needs
_WIDTH = 80


@dataclass(frozen=True)
class Need:
    """One thing for the instructor to do; without a student it concerns the whole class."""

    #: The kind of work.
    kind: Kind
    #: The student's id; empty if it concerns the class.
    student: str
    #: The lab.
    lab: str
    #: The task; empty if it concerns the whole submission.
    task: str
    #: The number of answers concerned.
    count: int
    #: The reason, as a sentence.
    why: str
    #: The command to run next.
    next: str


def needs(results: Sequence[Result], out: OutFolder, course: Course = COURSE) -> list[Need]:
    """Return the manual-review queue, without questions that already have manual points.

    `results` are those of `out`, whose gradebook must have been written.
    """
    scores, again, words = final_scores(out), second_looks(out), _words(out, course)
    questions = questions_of((result.lab for result in results), course)
    ordered = sorted(results, key=lambda r: (r.lab, r.student))
    found = [
        need
        for result in ordered
        for need in _of_one(result, scores.get(result.key, {}), words, questions)
    ]
    found += [
        _need(
            "second_look",
            words,
            why=_WHY["second_look"],
            lab=result.lab,
            student=result.student,
            task=task,
        )
        for result in ordered
        for task in again.get(result.key, {})
    ]
    found += _of_class(ordered, scores, words, questions)
    return sorted(found, key=lambda need: list(_KINDS).index(need.kind))


def told(found: Sequence[Need], out: OutFolder, course: Course = COURSE) -> str:
    """Return the beginning of the queue as text, by kind, with the commands to run next."""
    if not found:
        return "Manual review: nothing to do."
    by_kind = {kind: [n for n in found if n.kind == kind] for kind in _KINDS}
    by_kind = {kind: some for kind, some in by_kind.items() if some}
    each = max(1, _MOST_LINES // len(by_kind))
    alone = len({need.lab for need in found}) == 1
    lines = [f"Manual review ({out.manual_review} has the whole queue):"]
    for kind, some in by_kind.items():
        title, command = _KINDS[kind]
        names = {"student": "STUDENT", "task": "TASK", "lab": "LAB"}
        if len({need.lab for need in some}) == 1:
            names["lab"] = some[0].lab
        lines.append(f"  {title} ({sum(need.count for need in some)}):")
        lines += [cut(f"    {_line(need, alone=alone)}", _WIDTH) for need in some[:each]]
        if len(some) > each:
            lines.append(f"    ... and {len(some) - each} more")
        lines.append(f"    -> {command.format(**_words(out, course), **names)}")
    return "\n".join(lines)


def write_needs(found: Iterable[Need], out: OutFolder) -> None:
    """Write the whole queue to a CSV file, in one step; no text is run as a formula."""
    write_whole(out.manual_review, csv_bytes([_COLUMNS, *map(astuple, found)]))


def _need(
    kind: Kind,
    words: Words,
    *,
    why: str,
    lab: str,
    student: str = "",
    task: str = "",
    count: int = 1,
) -> Need:
    names = {"student": _word(student), "lab": lab, "task": full_id(lab, task)}
    return Need(
        kind=kind,
        student=student,
        lab=lab,
        task=task,
        count=count,
        why=why,
        next=_KINDS[kind][1].format(**words, **names),
    )


def _of_one(
    result: Result, scores: Scores, words: Words, questions: Mapping[str, Sequence[Question]]
) -> Iterator[Need]:
    """The work on one submission. A score in `scores` is None if there are no points yet."""
    need = partial(_need, words=words, lab=result.lab, student=result.student)
    waiting = [q for q in questions[result.lab] if scores.get(q.id) is None]
    if result.end == "failed" or (result.end == "quarantined" and waiting):
        yield need(result.end, why=said(result, result.reason))
    if result.end != "graded":
        return
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    for question in waiting:
        verdict = verdicts.get(question.id)
        if not question.is_manual and (verdict is None or verdict.status == "could_not_judge"):
            why = verdict.message if verdict else "The grader returned no verdict."
            yield need("not_judged", why=said(result, why), task=question.id)
    repairs = _repairs(result.notes)
    if repairs:
        yield need("repaired", why=" ".join(repairs))


def _repairs(notes: Sequence[Note]) -> list[str]:
    """The repairs. In another release, given cells differ without anyone having changed them."""
    of_other_release = any(note.kind == "release" for note in notes)
    kinds = {"repair"} if of_other_release else {"repair", "given"}
    return [note.text for note in notes if note.kind in kinds]


def _of_class(
    results: Iterable[Result],
    scores: Mapping[SubmissionKey, Scores],
    words: Words,
    questions: Mapping[str, Sequence[Question]],
) -> Iterator[Need]:
    """The work that concerns the whole class: manual grading, and what the machine lacked."""
    counts: dict[Kind, Counter[tuple[str, str]]] = {
        "manual": Counter(),
        "needs_gpu": Counter(),
        "needs_isolation": Counter(),
    }
    for result in results:
        if result.end != "graded":
            continue
        own = scores.get(result.key, {})
        statuses = {v.task: v.status for v in result.verdicts}
        for question in questions[result.lab]:
            if own.get(question.id) is None:
                key = (result.lab, question.id)
                counts["manual"][key] += question.is_manual
                for need in NEEDS:
                    counts[need][key] += statuses.get(question.id) == need
    for kind, of_kind in counts.items():
        for (lab, task), count in of_kind.items():
            if count:
                yield _need(kind, words, why=_WHY[kind], lab=lab, task=task, count=count)


def _line(need: Need, *, alone: bool) -> str:
    """One line about the work; without the lab's name if it is the only lab."""
    if not need.student:
        return f"{need.task}: {need.count}"
    what = need.task or ("" if alone else need.lab)
    return "  ".join(filter(None, (need.student, what, " ".join(need.why.split()))))


def _words(out: OutFolder, course: Course) -> Words:
    """The arguments that name the results folder, and a course other than this one."""
    options = "".join(f" {_word(word)}" for word in course.command_options)
    return {"out": _word(out), "pages": _word(out.feedback), "course": options}


def _word(text: object) -> str:
    return shlex.quote(str(text))
