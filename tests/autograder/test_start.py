"""start.py of the zip: it installs, it copies, and it overwrites nothing."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import course
from autograder.templates import start

LAB = "lab01_formats"


def notebook(release: str, text: str = "") -> str:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text}]
    return json.dumps({"cells": cells, "metadata": {"peakmem": {"release": release}}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An unpacked zip, with a fake wheel."""
    root = tmp_path / "peakmem-labs"
    released = root / "released" / LAB / f"{LAB}.ipynb"
    released.parent.mkdir(parents=True)
    released.write_text(notebook("0.1.0+11111111"))
    (root / "requirements.txt").write_text("-c constraints.txt\n./peakmem-0.1.0.whl[lab]\n")
    (root / "constraints.txt").touch()
    (root / "peakmem-0.1.0.whl").write_bytes(b"first")
    return root


class Recorder:
    """Stands for subprocess: notes commands, and makes what a virtual environment would hold."""

    def __init__(self, fails: str = "nothing") -> None:
        self.commands: list[list[str]] = []
        self.fails = fails

    def call(self, command: list[str], cwd: Path) -> int:
        self.commands.append(command)
        if "venv" in command:
            python = Path(command[-1], "bin/python")
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch()
        return 1 if self.fails in command else 0

    def run(self, command: list[str], cwd: Path) -> int:
        self.commands.append(command)
        return 0


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found = Recorder()
    find = importlib.util.find_spec
    monkeypatch.setattr(start.subprocess, "call", found.call)
    monkeypatch.setattr(start, "run", found.run)
    # The Python of these tests has the course; a student's does not.
    monkeypatch.setattr(start.importlib.util, "find_spec", lambda n: n != "peakmem" and find(n))
    monkeypatch.setattr(start.os, "name", "posix")
    return found


def test_it_needs_nothing_but_python_and_speaks_on_an_old_one() -> None:
    source = inspect.getsource(start)
    tree = ast.parse(source, feature_version=(3, 7))
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    for version in [(3, 11), (3, 13)]:
        start.require_python(version)
    with pytest.raises(
        start.Stop, match=r"This is Python 3\.10, but .* Python 3\.11 to 3\.13\. Install"
    ):
        start.require_python((3, 10))


def test_what_both_entries_do_they_do_alike() -> None:
    # Each of the two files stands alone, so what they share is in both.
    assert inspect.getsource(start.copy_new_files) == inspect.getsource(course.copy_new_files)
    assert start.LAB_SETTINGS == course.LAB_SETTINGS
    assert start.PAGE_SETTINGS == course.PAGE_SETTINGS
    assert (start.OLDEST, start.NEWEST) == (course.OLDEST, course.NEWEST)


def test_the_first_start_installs_and_the_next_does_not(folder: Path, recorder: Recorder) -> None:
    assert start.main(["lab01", "--no-browser"], folder) == 0
    venv, pip, jupyter = recorder.commands
    assert venv[1:] == ["-m", "venv", str(folder / ".venv")]
    assert "--quiet" in pip
    log = str(folder / ".venv/setup.log")
    assert pip[-5:] == ["install", "--log", log, "-r", "requirements.txt"]
    assert jupyter[:4] == [str(folder / ".venv/bin/python"), "-m", "jupyter", "lab"]
    assert f"--LabApp.default_url=/lab/tree/{LAB}/{LAB}.ipynb" in jupyter
    assert jupyter[-1] == "--no-browser"
    recorder.commands.clear()
    assert start.main([], folder) == 0
    assert [command[2] for command in recorder.commands] == ["jupyter"]


def test_another_library_of_the_same_version_is_installed(folder: Path, recorder: Recorder) -> None:
    start.main([], folder)
    (folder / "peakmem-0.1.0.whl").write_bytes(b"mended")
    recorder.commands.clear()
    start.main([], folder)
    assert [c[-1] for c in recorder.commands[1:3]] == ["peakmem", "requirements.txt"]
    assert "uninstall" in recorder.commands[1]


def test_a_failed_setup_is_tried_again(
    folder: Path, recorder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder.fails = "install"
    assert start.main([], folder) == 2
    assert "Run the same command to try again" in capsys.readouterr().err
    recorder.fails = "nothing"
    assert start.main([], folder) == 0


def test_an_environment_that_has_the_course_is_used(
    folder: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start.importlib.util, "find_spec", lambda name: name)
    assert start.main(["doctor"], folder) == 0
    assert recorder.commands == [[sys.executable, "-c", start.DOCTOR]]
    assert not (folder / ".venv").exists()


def test_a_python_without_venv_gets_one_sentence(
    folder: Path,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(start.importlib.util, "find_spec", lambda name: None)
    assert start.main([], folder) == 2
    assert "no venv module. Install it" in capsys.readouterr().err
    assert recorder.commands == []


@pytest.mark.usefixtures("recorder")
def test_an_unknown_lab_gets_the_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start.main(["lab99"], folder) == 2
    assert f"no lab named lab99 here; expected {LAB}." in capsys.readouterr().err


@pytest.mark.usefixtures("recorder")
def test_a_newer_release_leaves_the_students_work_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start.main([], folder)
    own = folder / "my-labs" / LAB / f"{LAB}.ipynb"
    own.write_text(notebook("0.1.0+11111111", "my answers"))
    capsys.readouterr()
    start.main([], folder)
    assert "newer release in" not in capsys.readouterr().out
    # A newer zip is unpacked over the folder, with one lab more.
    newer = folder / "released" / LAB / f"{LAB}.ipynb"
    newer.write_text(notebook("0.2.0+22222222"))
    shutil.copytree(newer.parent, folder / "released/lab02_sizing")
    start.main([], folder)
    assert "my answers" in own.read_text()
    assert (folder / "my-labs/lab02_sizing" / newer.name).is_file()
    assert f"{LAB}: a newer release is in {newer}" in capsys.readouterr().out
    own.write_text("no JSON at all")
    start.main([], folder)
    assert own.read_text() == "no JSON at all"


def test_the_program_runs_as_a_student_starts_it(folder: Path) -> None:
    shutil.copy(start.__file__, folder)
    command = [sys.executable, "start.py", "lab77"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"There is no lab named lab77 here; expected {LAB}.\n"
    done = subprocess.run(
        [*command[:2], "--help"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Open the labs: python3 start.py [LAB]")
    assert not (folder / ".venv").exists()
