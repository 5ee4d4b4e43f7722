"""Writes nbgrader's database, as its only writer, and the course folder that Formgrader opens.

OUT becomes an nbgrader course: nbgrader_config.py, gradebook.db, source/, autograded/, submitted/.
Formgrader counts the folders in submitted/. They are empty on purpose: if one contained a notebook,
Formgrader's "autograde" button would run it outside the sandbox; without one the button just fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby, islice
from typing import Any

from autograder.base.cleaning import inert_markdown
from autograder.base.course import COURSE, Course
from autograder.base.files import write_whole
from autograder.model.result import Result
from autograder.model.status import SCORED, capitalized, shown
from autograder.model.submission import SubmissionKey
from autograder.model.task import Verdict
from autograder.notebooks.binder import bind
from autograder.notebooks.graded import marks_of
from autograder.notebooks.questions import questions_in, source_notebooks
from autograder.publish.formgrader import notebook_bytes, write_for_formgrader
from autograder.publish.grades_csv import ALL_COUNTS, points, said
from autograder.rules.counting import Counting
from autograder.store.cells import save_cells
from autograder.store.database import Entries, put_up_again, save_entries, save_max_points
from autograder.store.out_folder import OutFolder
from autograder.store.scores import has_cells
from autograder.store.small_files import SHOWN

__all__ = ["look_again", "write_gradebook"]

if sys.platform != "win32":
    import fcntl

_CONFIG = '''"""Written by `autograder grade`. To grade manually, run `autograder formgrade OUT`."""

from pathlib import Path

from sqlalchemy import URL

c = get_config()  # noqa: F821
root = Path(__file__).resolve().parent
c.CourseDirectory.root = str(root)
# Wait up to a minute for another writer, where SQLite would give up after 5 seconds. `URL` puts up
# with any character in the folder's name.
url = URL.create("sqlite", database=str(root / "gradebook.db"), query={"timeout": "60"})
c.CourseDirectory.db_url = url.render_as_string()
# Formgrader shows the work of many people inside your own session.
c.HTMLExporter.sanitize_html = True
'''

_AT_ONCE = 100  # submissions per transaction, so that a running Formgrader waits only a moment

Json = dict[str, Any]


def write_gradebook(
    results: Iterable[Result],
    out: OutFolder,
    course: Course = COURSE,
    counting: Counting = ALL_COUNTS,
) -> None:
    """Write the grades of `results` into `out`/gradebook.db, and the notebooks for Formgrader.

    Points and cells come from the course's source notebooks; `counting` says what they add to the
    maximum. Exercises that weren't judged, manual questions, and everything in a quarantined or
    failed submission wait for an instructor. Manual scores and comments stay; if the grader's score
    under one changes, it is flagged for a second look. Writing the same results again changes
    nothing. A graded result without its notebook leaves the one that Formgrader shows.

    Raises ValueError if the gradebook holds submissions of a lab whose cells were different.
    """
    write_whole(out.nbgrader_config, _CONFIG.encode())
    with _alone(out):
        for lab, of_lab in groupby(sorted(results, key=_lab_and_student), key=lambda r: r.lab):
            _write_lab(lab, of_lab, out, course, counting)


def look_again(submissions: Mapping[SubmissionKey, str], out: OutFolder) -> None:
    """Flag manual points for a second look if the work was submitted again since.

    `submissions` has the digest of each submission given to `write_gradebook`.
    """
    now: dict[str, dict[str, str]] = {lab: dict(some) for lab, some in SHOWN.read(out).items()}
    anew = []
    for key, digest in submissions.items():
        if now.setdefault(key.lab, {}).setdefault(key.student, digest) != digest:
            anew.append(key)
            now[key.lab][key.student] = digest
    if anew:
        with _alone(out):
            put_up_again(out, anew)
    SHOWN.write(out, now)


def _write_lab(
    lab: str, results: Iterator[Result], out: OutFolder, course: Course, counting: Counting
) -> None:
    sources = source_notebooks(lab, course)
    files = {
        out.source_notebook(lab, name): notebook_bytes(notebook)
        for name, notebook in sources.items()
    }
    if not has_cells(out, lab):
        for path in files:
            path.unlink(missing_ok=True)
    # Recording cells takes hundreds of queries; existing files mean that it has been done.
    if not all(path.is_file() and path.read_bytes() == data for path, data in files.items()):
        save_cells(out, lab, sources)
        for path, data in files.items():
            write_whole(path, data)
    source = bind(sources, alone=len(sources) == 1)
    most = {q.id: counting.max_points(lab, q) for q in questions_in(source)}
    save_max_points(out, lab, most)
    while some := list(islice(results, _AT_ONCE)):
        for result in some:
            if result.notebook is not None or result.end != "graded":
                write_for_formgrader(result, out, course)
            out.submitted(result.key).mkdir(parents=True, exist_ok=True)
        save_entries(out, lab, {result.student: _entries(result, source) for result in some})


@contextmanager
def _alone(out: OutFolder) -> Iterator[None]:
    """Wait for other commands that write this gradebook, because nbgrader's code takes no lock."""
    with out.gradebook_lock.open("w") as file:
        if sys.platform != "win32":  # grading doesn't run on Windows
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lab_and_student(result: Result) -> tuple[str, str]:
    return result.lab, result.student


def _entries(result: Result, source: Json) -> Entries:
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    questions = {question.id: question for question in questions_in(source)}
    grades: dict[str, tuple[float | None, bool]] = {}
    comments: dict[str, list[str]] = {}
    above = None  # Formgrader has comment boxes only at solution cells
    for marks in map(marks_of, source["cells"]):
        name = marks.get("grade_id", "")
        if name.endswith("/"):
            above = None  # the next notebook starts here
        if marks.get("solution") or marks.get("task"):
            above = name
            comments[name] = [] if result.end == "graded" else [said(result, _not_graded(result))]
        if not (marks.get("grade") or marks.get("task")):
            continue
        verdict = verdicts.get(name)
        if name not in questions and not (marks.get("solution") or marks.get("task")):
            grades[name] = (0.0, False)  # a self-check, worth no points
        elif verdict is not None and verdict.status in SCORED:
            grades[name] = (verdict.points, False)
        elif verdict is not None and verdict.status == "left_out":
            grades[name] = (None, False)
        else:
            grades[name] = (None, True)
        if verdict is not None and above is not None:
            comments[above].append(said(result, _remark(verdict)))
    # Stock feedback renders comments as Markdown, and a message may quote a student.
    texts = {name: inert_markdown("\n\n".join(lines)) or None for name, lines in comments.items()}
    return Entries(grades, texts)


def _not_graded(result: Result) -> str:
    return f"{capitalized(shown(result.end))}: {result.reason}"


def _remark(verdict: Verdict) -> str:
    if verdict.status not in SCORED:
        return f"{capitalized(shown(verdict.status))}: {verdict.message}"
    if not verdict.max_points:
        return f"{points(verdict.points)} bonus points. {verdict.message}"
    return f"{points(verdict.points)} of {points(verdict.max_points)} points. {verdict.message}"
