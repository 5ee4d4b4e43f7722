"""Runs in a Gradescope container: grades one submission, from its files to results.json.

`run_autograder` of the zip made by `autograder gradescope` starts it as root, with the folder that
holds source/, submission/, results/ and grader/. If the container allows namespaces, the code runs
in the usual sandbox; otherwise it runs as its own user, and the result says so. If neither is
possible, nothing runs.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from autograder.base.course import Course
from autograder.base.files import write_whole
from autograder.base.pool import Failure, Solo, Work
from autograder.base.terminal import say
from autograder.model.result import Result
from autograder.model.submission import SubmissionKey
from autograder.notebooks.intake import find_submissions
from autograder.notebooks.parse import MAX_FILE_BYTES
from autograder.notebooks.questions import questions_of
from autograder.platforms.gradescope import results_of
from autograder.runs.grader import Grader
from autograder.runs.room import Classroom
from autograder.sandbox.host.backend import Backend
from autograder.sandbox.host.isolation import IsolationError, missing_layers
from autograder.sandbox.host.namespaces import Namespaces
from autograder.sandbox.host.uid_isolation import UserIds
from autograder.sandbox.host.uid_isolation import missing_layers as missing_user
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder

__all__ = ["main"]

_ROOTS_ALONE = ("source", "submission", "results", "grader")
_MOST_NOTEBOOKS = 20


def main() -> None:
    """Grade the submission in sys.argv[1]; write its results.json whatever happens."""
    base = Path(sys.argv[1])
    about = json.loads((base / "source/autograder.json").read_bytes())
    course = Course(base / "source/course")
    try:
        result = grade_one(base, about["lab"], course)
    except Exception as error:
        say(traceback.format_exc(), to=sys.stderr)  # instructors see this, and students do not
        reason = f"The grader failed: {type(error).__name__}: {error}"
        result = Result("", about["lab"], "failed", reason)
    questions = questions_of([about["lab"]], course)[about["lab"]]
    results = results_of(result, questions)
    results["extra_data"]["release"] = about["release"]
    write_whole(base / "results/results.json", json.dumps(results, indent=1).encode())
    said = f"{result.end} {result.reason}".strip()
    say(f"{about['lab']}, release {about['release']}: {results['score']:g} points, {said}")


def grade_one(base: Path, lab: str, course: Course) -> Result:
    """Return the result of the one submission below `base`, Gradescope's folder.

    Raises IsolationError if students' code can't be isolated, and RuntimeError if no result was
    kept.
    """
    for name in _ROOTS_ALONE:
        (base / name).chmod(0o700)
    metadata = base / "submission_metadata.json"
    if metadata.exists():
        metadata.chmod(0o600)
    secret_paths = [*(base / name for name in _ROOTS_ALONE), metadata]
    backend = _backend(secret_paths)
    secret = bytes.fromhex((base / "source/secret").read_text())
    with tempfile.TemporaryDirectory(prefix="autograder-out-") as folder:
        submitted = Path(folder, "submitted")
        student = student_id(metadata)
        _submit(base / "submission", submitted / student / lab, lab)
        room = Classroom(lab, OutFolder(Path(folder, "graded")), course, secret)
        (handed,) = find_submissions(submitted, lab)
        made = partial(Grader, room, backend=backend)
        with closing(Solo(Work(made), slot=0)) as grader:
            outcome = grader.do(handed)
        result = Journal(room.out).read(SubmissionKey(student, lab))
        if isinstance(outcome, Failure) and result is None:
            result = Result(student, lab, "failed", outcome.reason)
    if result is None:
        raise RuntimeError("the grader kept no result")
    return result


def student_id(metadata: Path) -> str:
    """Return a student id made from Gradescope's user ids, the same for each attempt."""
    try:
        users = json.loads(metadata.read_bytes())["users"]
        ids = sorted(int(user["id"]) for user in users)
    except (OSError, ValueError, KeyError, TypeError):
        ids = []
    return "-".join(["gradescope", *map(str, ids)])[:100]


def _backend(secret_paths: list[Path]) -> Backend:
    """The isolation that this container allows: namespaces, or else user ids."""
    refused = missing_layers()
    if not refused:
        return Namespaces()
    missing = missing_user(secret_paths)
    if missing:
        raise IsolationError(" ".join([*refused, *missing]))
    say(f"Namespaces are refused here, so code runs under its own user ID. {refused[0]}")
    return UserIds(tuple(secret_paths))


def _submit(submission: Path, place: Path, lab: str) -> None:
    """Copy the uploaded notebooks to where the grader looks; no other file is opened.

    A lone notebook may have any name, and is taken for the lab's.
    """
    place.mkdir(parents=True)
    found = dict(_notebooks(submission))
    if not found:  # zips of a lab's folder unpack like this
        for folder in sorted(path for path in submission.iterdir() if not path.is_symlink()):
            found |= dict(_notebooks(folder)) if folder.is_dir() else {}
    if len(found) == 1:
        found = {f"{lab}.ipynb": data for data in found.values()}
    for name, data in found.items():
        (place / name).write_bytes(data)


def _notebooks(folder: Path) -> Iterator[tuple[str, bytes]]:
    plain = (path for path in folder.glob("*.ipynb") if path.is_file() and not path.is_symlink())
    for name in sorted(path.name for path in plain)[:_MOST_NOTEBOOKS]:
        opened = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            if stat.S_ISREG(os.fstat(opened).st_mode):
                # One byte too many is kept, so that intake reports that the file is too large.
                yield name, file.read(MAX_FILE_BYTES + 1)


if __name__ == "__main__":
    main()
