"""Explains one verdict, judged again from the stored answers, with everything it depends on.

For instructors only: it shows inputs, hidden cases and expected values.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial

from autograder.base import pool
from autograder.base.course import COURSE, Course
from autograder.base.plain_text import one_line
from autograder.content import full_id
from autograder.grading.registry import find_task
from autograder.model.judge import judge_answer, judge_safely
from autograder.model.result import Result
from autograder.model.scoring import SANE, Rules
from autograder.model.status import JUDGED, shown
from autograder.model.submission import SubmissionKey
from autograder.model.task import Answer, Case, Finding, Task, Verdict
from autograder.notebooks.graded import solution_source
from autograder.publish.audit import questions_then
from autograder.publish.grades_csv import points
from autograder.review.rejudge import drawn_again
from autograder.rules.semester import read_semester
from autograder.rules.waivers import waivers
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.roll import taken
from peakmem.core.errors import closest
from peakmem.labs.compare import show

__all__ = ["explain"]

_SHOWN = 400  # characters shown of one value


def explain(
    out: OutFolder,
    secret: bytes,
    student: str,
    task_id: str,
    course: Course = COURSE,
    rules: Rules = SANE,
    *,
    whole: bool = False,
) -> str:
    """Return, as text, why a student has these points for a task; runs no student code.

    A case whose answer is correct has one line; with `whole`, its inputs and answer, too. A test of
    an ordinary assignment is named `ps1/q1`, and `rules` is how it is scored.

    Raises ValueError if there is no such task, or no result of this student.
    """
    _require_graded_by_code(out, task_id)
    lab = find_task(task_id, course, rules)[0].name
    key = SubmissionKey(student, lab)
    if Journal(out).verdicts(key) is None:
        raise ValueError(f"{out} has no result for {student} in {lab}; {_hint(out, key)}")
    told = pool.alone(partial(_explained, out, secret, course, rules, whole), (student, task_id))
    if isinstance(told, pool.Failure):
        return f"{student}, {task_id}: this can't be explained. {told.reason}"
    return told


def _hint(out: OutFolder, key: SubmissionKey) -> str:
    """Say why this student has no result, or which student was probably meant."""
    there = taken(out)
    if key in there:
        return f"{out.entry(key)} is damaged or missing, run `autograder grade` again"
    if any(student.id == key.student for student in read_semester(out, None).roster):
        return "the student is on the roster, but submitted nothing"
    by_letters = {name.casefold(): name for name, lab in there if lab == key.lab}
    near = closest(key.student.casefold(), by_letters)
    return f"is it {by_letters[near]}?" if near else "grades.csv lists the submissions"


def _explained(
    out: OutFolder, secret: bytes, course: Course, rules: Rules, whole: bool, of: tuple[str, str]
) -> str:
    student, task_id = of
    found, task = find_task(task_id, course, rules)
    result = Journal(out).read(SubmissionKey(student, found.name))
    assert result is not None, "checked by `explain`"
    waived = waivers(out).get(full_id(found.name, task.id))
    return "\n".join(_lines(task, result, Journal(out), secret, waived, whole=whole))


def _require_graded_by_code(out: OutFolder, task_id: str) -> None:
    for lab in sorted({key.lab for key in taken(out)}):
        for question in questions_then(out, lab):
            if question.is_manual and full_id(lab, question.id) == task_id:
                raise ValueError(
                    f"{task_id} is graded manually; its points and comment are in Formgrader: "
                    f"autograder formgrade {shlex.quote(str(out))}"
                )


def _lines(
    task: Task,
    result: Result,
    journal: Journal,
    secret: bytes,
    waived: str | None,
    *,
    whole: bool,
) -> Iterator[str]:
    verdict = next((v for v in result.verdicts if v.task == task.id), None)
    if verdict is None:
        yield f"{result.student}, {task.id}: {shown(result.end)}. {result.reason}"
        return
    yield f"{result.student}, {task.id}: {_told(verdict)}"
    if waived is not None:
        yield f"Waived, so it counts as {points(verdict.max_points)} points: {waived}"
    yield f"Message to the student: {verdict.message}"
    yield from _code(task, result)
    answers = journal.answers(result.key).get(task.id)
    if answers is None:
        yield "There are no answers: the task's probe didn't run."
        return
    cases = drawn_again(task, secret, journal, result)
    if cases is None:
        yield "The lab's questions have changed since these answers were given; see `regrade`."
        return
    again = judge_safely(task, cases, answers)
    same = "the same verdict" if again == verdict else f"another verdict: {_told(again)}"
    yield f"Judged again from the recorded answers: {same}."
    short = False
    for number, (case, answer) in enumerate(zip(cases, answers, strict=True), start=1):
        found, is_correct = _found(task, case, answer)
        kind = "fixed, never shown" if case.fixed else "drawn"
        head = f"Case {number} of {len(cases)} ({kind}), decides {', '.join(case.parts)}"
        if whole or not is_correct:
            yield head
            yield from _case(case, answer, found)
        else:
            short = True
            yield f"{head}: correct"
    if short:
        yield "--verbose shows the inputs and answers of correct cases."


def _told(verdict: Verdict) -> str:
    if verdict.status not in JUDGED:
        return f"{shown(verdict.status)}. {verdict.message}"
    parts = ", ".join(f"{part} {points(earned)}" for part, earned in verdict.earned.items())
    mistake = f", mistake {verdict.mistake}" if verdict.mistake else ""
    total = f"{points(verdict.points)} of {points(verdict.max_points)} points"
    return f"{shown(verdict.status)}, {total} ({parts}){mistake}"


def _code(task: Task, result: Result) -> Iterator[str]:
    if code := solution_source(result.notebook, task.id):
        yield "Submitted:"
        yield from (f"    {line}" for line in code.splitlines())


def _case(case: Case, answer: Answer, found: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield f"    inputs:  {_shown(dict(case.inputs))}"
    if case.secret:
        yield f"    secret:  {_shown(dict(case.secret))}"
    if answer.asked:
        yield f"    asked:   {_shown(list(answer.asked))}"
    yield f"    answer:  {_answer(answer)}"
    for part, finding in found:
        yield f"    {part}: {finding}"


def _answer(answer: Answer) -> str:
    if answer.lost is not None:
        return f"none: {answer.lost}"
    if answer.raised is not None:
        return f"raised {answer.raised[0]}: {one_line(answer.raised[1], _SHOWN)}"
    memory = {"": "", "within": " (within the budget)", "refused": " (beyond the budget)"}
    return f"{_shown(answer.value)}{memory[answer.memory]}"


def _found(task: Task, case: Case, answer: Answer) -> tuple[Sequence[tuple[str, str]], bool]:
    """Return the finding on each part as text, and whether all of them are correct."""
    try:
        found = judge_answer(task, case, answer)
    except Exception as error:
        return [("judge", f"raised {type(error).__name__}: {error}")], False
    is_correct = all(finding.ok and not finding.doubt for finding in found.values())
    return [(part, _finding(finding)) for part, finding in found.items()], is_correct


def _finding(finding: Finding) -> str:
    word = "correct." if finding.ok else "doubtful." if finding.doubt else "incorrect."
    fits = f"It fits {', '.join(finding.mistakes)}." if finding.mistakes else ""
    return " ".join(
        text for text in (word, one_line(finding.said, _SHOWN), finding.doubt, fits) if text
    )


def _shown(value: object) -> str:
    return show(value, _SHOWN)  # `repr` refuses huge integers
