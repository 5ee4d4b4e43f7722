"""Runs one submission of an ordinary nbgrader assignment in the sandbox, and scores it.

The tests run in the student's process, as in nbgrader, so a determined student can forge their
outputs. Everything else is protected: see `docs/threat_model.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from autograder.content.provenance import asked_of
from autograder.grading.grade import Graded, add_outputs
from autograder.grading.judging import judge_run
from autograder.grading.run import NOT_RUN, Run, collect
from autograder.grading.unanswered import NO_ANSWER
from autograder.model.judge import draw
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.scoring import Rules, score
from autograder.model.status import UNANSWERED
from autograder.model.submission import Contents, Quarantine, Submission
from autograder.model.task import Answer, Case, Finding, Task, Verdict
from autograder.notebooks.assignment import Assignment, GradedCell, Sheet
from autograder.notebooks.binder import bind, full_name
from autograder.notebooks.graded import marks_of
from autograder.notebooks.parse import parse_notebook
from autograder.notebooks.redact import withheld, without
from autograder.notebooks.restore import DELETED, restore
from autograder.sandbox.host.sandbox import Sandbox

__all__ = ["grade_ordinary", "tasks_of"]

_POINTS = "points"  # the only part of a test
_KEPT = 4000  # characters kept of an output that decides a score

Json = dict[str, Any]


def tasks_of(assignment: Assignment, rules: Rules) -> tuple[Task, ...]:
    """Return a task for each test of an assignment; its answer is the output of the test's cell."""
    return tuple(
        _task(name, question, rules)
        for name, _, question in _questions(assignment)
        if not question.is_manual
    )


def grade_ordinary(
    assignment: Assignment,
    rules: Rules,
    student: str,
    handed: Contents,
    start: Callable[[], Sandbox],
    secret: bytes,
) -> Graded:
    """Grade a student's notebooks, each in its own process.

    The submitted files are in its working directory. A cell that kills the process costs only
    itself: the rest runs again in a fresh process without it. Raises Quarantine if a notebook
    doesn't belong to the assignment.
    """
    taken = {
        sheet.name: _take_in(student, assignment, sheet, handed)
        for sheet in assignment.sheets
        if sheet.name in handed.notebooks
    }
    sandbox = start()
    runs = {name: collect(submission, sandbox, (), {}) for name, submission in taken.items()}
    answers: dict[str, list[Answer]] = {}
    verdicts: dict[str, Verdict] = {}
    asked: dict[str, str] = {}
    busy = next((run.busy for run in runs.values() if run.busy), "")
    given = _answers(assignment, taken, runs)
    for task in tasks_of(assignment, rules):
        cases = draw(task, secret, student, b"")
        answers[task.id], verdicts[task.id] = judge_run(task, cases, [given[task.id]], busy)
        asked[task.id] = asked_of(task, cases)
    notebooks = {
        sheet.name: _shown(sheet, taken[sheet.name], runs[sheet.name], rules)
        for sheet in assignment.sheets
        if sheet.name in taken
    }
    result = Result(
        student=student,
        lab=assignment.name,
        end="graded",
        verdicts=(*verdicts.values(), *_unanswered_verdicts(assignment, taken)),
        notebook=bind(notebooks, alone=assignment.alone),
        notes=(
            *_notes(assignment, taken),
            *(Note("repair", said) for said in handed.unread),
            *(Note("sandbox", said) for said in sandbox.notes),
        ),
        isolated=sandbox.isolated,
    )
    return Graded(result, answers, asked)


def _questions(assignment: Assignment) -> Iterator[tuple[str, Sheet, GradedCell]]:
    """Yield each cell that earns points, with its full name and its sheet."""
    for sheet in assignment.sheets:
        for question in sheet.questions:
            if question.points > 0:
                yield full_name(sheet.name, question.id, alone=assignment.alone), sheet, question


def _task(name: str, question: GradedCell, rules: Rules) -> Task:
    case = Case((_POINTS,), {"test": question.source})
    return Task(
        id=name,
        parts={_POINTS: question.points},
        defines=(),
        probe="",
        cases=lambda _: [case],
        judge=partial(_judge, question, rules),
    )


def _judge(question: GradedCell, rules: Rules, _: Case, answer: Answer) -> dict[str, Finding]:
    state, outputs = answer.value["state"], answer.value["outputs"]
    if state == "missing":
        return {_POINTS: Finding(False, answer.value["why"])}
    if state == DELETED and rules.deleted_tests_wait:
        doubt = "This test was deleted. An instructor will look at it."
        return {_POINTS: Finding(False, doubt=doubt)}
    found = score(outputs, question.points, rules)
    hidden = frozenset() if rules.show_hidden_tests else question.hidden
    said = without(hidden, found.said)
    if found.points is None:
        return {_POINTS: Finding(False, doubt=said)}
    return {_POINTS: Finding(found.points == question.points, said, points=found.points)}


def _take_in(student: str, assignment: Assignment, sheet: Sheet, handed: Contents) -> Submission:
    raw = handed.notebooks[sheet.name]
    try:
        cells, notes, _ = parse_notebook(raw)
        notebook, to_run, repairs = restore(sheet.release, cells)
    except Quarantine as refusal:
        if assignment.alone:
            raise
        raise Quarantine(f"{sheet.name}.ipynb: {refusal}") from None
    return Submission(
        student=student,
        lab=assignment.name,
        raw=raw,
        notebook=notebook,
        cells=to_run,
        notes=(*notes, *repairs),
        files=handed.files,
    )


def _answers(
    assignment: Assignment, taken: Mapping[str, Submission], runs: Mapping[str, Run]
) -> dict[str, Answer]:
    """Each test's answer, by the task's id."""
    return {
        name: _answer(sheet, question, taken.get(sheet.name), runs.get(sheet.name))
        for name, sheet, question in _questions(assignment)
        if not question.is_manual
    }


def _unanswered_verdicts(
    assignment: Assignment, taken: Mapping[str, Submission]
) -> Iterator[Verdict]:
    """Yield a verdict for each manual answer that earns nothing unread."""
    for name, sheet, question in _questions(assignment):
        if question.is_manual and (why := _unanswered(sheet, question, taken.get(sheet.name))):
            yield Verdict(
                task=name,
                status=UNANSWERED,
                earned={_POINTS: 0.0},
                max_points=question.points,
                message=why,
            )


def _answer(
    sheet: Sheet, question: GradedCell, submission: Submission | None, run: Run | None
) -> Answer:
    """The outputs of the test's cell, or why there are none."""
    if submission is None or run is None:
        why = f"{sheet.name}.ipynb wasn't submitted."
        return Answer({"state": "missing", "why": why, "outputs": []})
    index, cell = _place(submission.notebook, question.id)
    state = DELETED if DELETED in cell["metadata"] else "run"
    if not (question.source or "").strip():
        return Answer({"state": state, "outputs": []})
    if index in run.lost_cells:
        return Answer(lost=run.lost_cells[index])
    if index not in run.outputs:
        return Answer(lost=NOT_RUN)
    return Answer({"state": state, "outputs": [_kept(o) for o in run.outputs[index]]})


def _unanswered(sheet: Sheet, question: GradedCell, submission: Submission | None) -> str:
    """Why a manual answer earns nothing unread; empty if an instructor has to read it."""
    if submission is None:
        return f"{sheet.name}.ipynb wasn't submitted."
    if question.source is None:
        return ""
    _, cell = _place(submission.notebook, question.id)
    # The answer to a deleted cell may be elsewhere.
    untouched = cell["source"] == question.source and DELETED not in cell["metadata"]
    return NO_ANSWER if untouched else ""


def _place(notebook: Json, grade_id: str) -> tuple[int, Json]:
    """The index and the cell with this grade_id, which `restore` guarantees to exist."""
    return next(
        (index, cell)
        for index, cell in enumerate(notebook["cells"])
        if marks_of(cell).get("grade_id") == grade_id
    )


def _kept(output: Json) -> Json:
    """The parts of an output that may decide a score."""
    kind = output["output_type"]
    if kind == "stream":
        return {**output, "text": output["text"][-_KEPT:]}  # unittest reports at the end
    if kind == "error":
        trace = [line[:_KEPT] for line in output["traceback"][:20]]
        return {**output, "evalue": output["evalue"][:_KEPT], "traceback": trace}
    text = str(output["data"].get("text/plain", ""))[:_KEPT]
    return {"output_type": kind, "data": {"text/plain": text}}


def _shown(sheet: Sheet, submission: Submission, run: Run, rules: Rules) -> Json:
    """The notebook as it ran, for people to read."""
    notebook = add_outputs(submission, run)
    tests = {question.id: question.source for question in sheet.questions if question.hidden}
    own = "\n".join(cell.source for cell in submission.cells if cell.kind != "check")
    for cell in notebook["cells"]:
        test = tests.get(str(marks_of(cell).get("grade_id")))
        if rules.show_hidden_tests:
            cell["source"] = test or cell["source"]
        elif cell["cell_type"] == "code":
            cell["outputs"] = withheld(cell["outputs"], sheet.hidden, own)
    return notebook


def _notes(assignment: Assignment, taken: Mapping[str, Submission]) -> tuple[Note, ...]:
    missing = [sheet.name for sheet in assignment.sheets if sheet.name not in taken]
    notes = [Note("repair", f"{name}.ipynb wasn't submitted.") for name in missing]
    for name, submission in taken.items():
        before = "" if assignment.alone else f"{name}.ipynb: "
        notes += [replace(note, text=before + note.text) for note in submission.notes]
    return tuple(notes)
