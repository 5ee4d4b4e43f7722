"""Runs in the container: grades a folder of submissions, each as a user of its own.

Arguments: the folder of submissions, the lab, and the course where it is not the image's. Prints
one JSON object: each student's result, and the processes and files that aren't the course's.
"""

import json
import sys
import time
from pathlib import Path

from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.model.submission import SubmissionKey
from autograder.notebooks.intake import find_submissions
from autograder.runs.grader import Grader
from autograder.runs.room import Classroom
from autograder.sandbox.host.uid_isolation import UserIds, missing_layers
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder

BASE = Path("/autograder")
SECRETS = [BASE / name for name in ("source", "submission", "results", "grader")]


def main() -> None:
    submitted, lab = Path(sys.argv[1]), sys.argv[2]
    course = Course(Path(sys.argv[3]) if sys.argv[3:] else BASE / "source/course")
    for place in SECRETS:
        place.chmod(0o700)
    missing = missing_layers(SECRETS)
    assert missing == [], missing
    limits = Limits(cell_seconds=3, submission_seconds=60, memory_bytes=2**30)
    out = Path("/out")
    out.mkdir(mode=0o700)
    room = Classroom(lab, OutFolder(out), course, b"s" * 32, limits)
    results = {}
    secrets = (*SECRETS, submitted, out, course.root)
    with Grader(room, 0, UserIds(secrets)) as grader:
        for student, path in find_submissions(submitted, lab):
            begun = time.monotonic()
            grader((student, path))
            for sandbox in grader._sandboxes.values():
                sandbox.open().close()  # the process that was made ready for the next student
            result = Journal(OutFolder(out)).read(SubmissionKey(student, lab))
            results[student] = {
                "end": result.end,
                "reason": result.reason,
                "notes": [note.text for note in result.notes],
                "seconds": time.monotonic() - begun,
                "verdicts": {v.task: (v.status, v.points, v.message) for v in result.verdicts},
                "outputs": [
                    c["outputs"]
                    for c in (result.notebook or {"cells": []})["cells"]
                    if c.get("outputs")
                ],
            }
            results[student]["left"] = [*strange_processes(), *strange_files()]
    print(json.dumps(results))


def strange_processes() -> list[str]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        text = status.read_text()
        if "Uid:\t0\t0\t0\t0" not in text and "\nState:\tZ" not in text:
            found.append(text)
    return found


def strange_files() -> list[str]:
    places = ("/tmp", "/var/tmp", "/dev/shm", "/autograder")
    return [str(p) for place in places for p in Path(place).rglob("*") if p.lstat().st_uid != 0]


if __name__ == "__main__":
    main()
