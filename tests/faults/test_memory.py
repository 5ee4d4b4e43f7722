"""Publishing holds no more of a class of a thousand in memory than of a class of a hundred."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.base.course import Course
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from tests.autograder.small_class import graded, make_course
from tests.autograder.small_release import LAB, own, solved
from tests.grading import REPOSITORY, command_environment

PUBLISH = """
import os, sys
from pathlib import Path
from autograder.base import memory
from autograder.base.course import Course
from autograder.publish.publishing import publish
from autograder.store.out_folder import OutFolder
count = len(publish(OutFolder(Path(sys.argv[1])), Course(Path(sys.argv[2]))))
print(count, memory.status_bytes(os.getpid(), "VmHWM"))
"""
TERMS = {"lab": "a version", "limits": {}, "isolated": True}


def peak_bytes(out: Path, course: Course, students: int) -> int:
    """The peak of a process that publishes a class whose notebooks have 200 kB of output each."""
    journal = Journal(OutFolder(out))
    cell = own("shown", "print('x' * 200_000)")
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 200_000}]
    notebook = solved()
    notebook["cells"].append(cell)
    names = [f"s{number:04}" for number in range(students)]
    for name in names:
        journal.keep(replace(graded(name), notebook=notebook), b"", {}, TERMS)
    (out / "taken.json").write_text(json.dumps([[name, LAB] for name in names]))
    done = subprocess.run(
        [sys.executable, "-c", PUBLISH, out, course.root],
        env=command_environment(),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    count, peak = map(int, done.stdout.split())
    assert count == students
    return peak


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_a_thousand_take_hardly_more_memory_than_a_hundred(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course")
    hundred = peak_bytes(tmp_path / "100", course, 100)
    thousand = peak_bytes(tmp_path / "1000", course, 1000)
    assert thousand <= 1.1 * hundred, f"{hundred} and {thousand} bytes"
