"""README.md promises only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.cli.app import main as autograder
from autograder.content import lab_names
from autograder.notebooks.questions import questions_of, source_notebook
from course import COMMANDS

_LAB_ROW = re.compile(r"^\| `(lab\w+)` \| .* \| (\d+) \| (\d+) \|$", re.MULTILINE)
_EXERCISE_ROW = re.compile(r"^\| \d+\.\d+ .*\| (\d+) \| (\d+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def readme() -> str:
    return Path(__file__).resolve().parent.parent.joinpath("README.md").read_text("utf-8")


def test_the_table_of_labs_is_that_of_the_labs(readme: str) -> None:
    promised = {
        lab: (int(minutes), int(points)) for lab, minutes, points in _LAB_ROW.findall(readme)
    }
    points = {lab: sum(q.points for q in found) for lab, found in questions_of(lab_names()).items()}
    minutes = {lab: sum(int(m) for m, _ in _exercises(lab)) for lab in lab_names()}
    assert promised == {lab: (minutes[lab], points[lab]) for lab in lab_names()}


@pytest.mark.parametrize("lab", lab_names())
def test_each_labs_own_table_has_the_points_that_are_graded(lab: str) -> None:
    assert sum(int(p) for _, p in _exercises(lab)) == sum(
        q.points for q in questions_of([lab])[lab]
    )


def _exercises(lab: str) -> list[tuple[str, str]]:
    """(minutes, points) of each row of the table in the lab's first cell."""
    return _EXERCISE_ROW.findall(source_notebook(lab)["cells"][0]["source"])


def test_every_command_exists(readme: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(re.findall(r"course\.py (\w+)", readme)) <= set(COMMANDS)
    assert autograder(["--help-all"]) == 0
    offered = capsys.readouterr().out
    for command in set(re.findall(r"`?autograder (\w+) ", readme)):
        assert re.search(rf"^  {command}\b", offered, re.MULTILINE), command


def test_every_file_exists(readme: str, repository: Path) -> None:
    first_column = re.findall(r"^\| (`[^|]*`) \|", readme, re.MULTILINE)
    named = [name for cell in first_column for name in re.findall(r"`([\w./]+)`", cell)]
    pictures = re.findall(r"\]\((docs/[^)]+)\)", readme)
    folder = repository
    assert named, "the table of files was found"
    for name in [*named, *pictures]:
        if not _LAB_ROW.match(name) and not re.match(r"lab\d", name):
            path = repository / name if "/" in name else folder / name
            assert path.exists(), name
            folder = path.parent  # `autograder/model/task.py`, `judge.py`: beside the one before
