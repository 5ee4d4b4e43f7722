"""course.py: it installs, it copies, and it says why it can't continue."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import course as course_module  # beside pyproject.toml
from course import Course, Stop, copy_new_files, find_lab, main, require_python

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "{name}"
version = "1"
[project.optional-dependencies]
{extra} = []
[tool.setuptools]
"""


class Recorder:
    """Runs nothing: records the commands, and makes the files that the setup would have made."""

    def __init__(self, fails: str = "nothing") -> None:
        self.commands: list[list[str]] = []
        self.fails = fails

    def __call__(self, arguments: list[str], folder: Path) -> int:
        self.commands.append(arguments)
        if arguments[1:3] == ["-m", "venv"]:
            python = Course(folder).python
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch()
        return 1 if self.fails in arguments else 0

    def modules(self) -> list[str]:
        """Return the commands run with `python -m`, and forget them."""
        names = [module_of(command) for command in self.commands if "-m" in command]
        self.commands.clear()
        return names


def module_of(command: list[str]) -> str:
    """Return the module that a command runs with `python -m`."""
    return command[command.index("-m") + 1]


@pytest.fixture
def folder(repository: Path, tmp_path: Path) -> Path:
    """A minimal course: two packages without requirements, and one lab."""
    root = tmp_path / "course"
    (root / "autograder").mkdir(parents=True)
    (root / "src").mkdir()
    shutil.copy(repository / "course.py", root)
    shutil.copy(repository / "constraints.txt", root)
    (root / "pyproject.toml").write_text(
        PYPROJECT.format(name="peakmem", extra="lab") + "packages = []\n"
    )
    tools = PYPROJECT.format(name="peakmem-autograder", extra="test")
    tools += 'package-dir = { "autograder" = "." }\npackages = ["autograder"]\n'
    (root / "autograder/pyproject.toml").write_text(tools)
    (root / "autograder/__init__.py").touch()
    (root / "autograder/__main__.py").write_text("import sys\nprint(sys.prefix, sys.argv[1:])\n")
    (root / "labs/lab01_formats").mkdir(parents=True)
    (root / "labs/lab01_formats/lab01_formats.ipynb").write_text("released")
    return root


# What it says


def test_it_speaks_on_an_old_python(repository: Path) -> None:
    ast.parse((repository / "course.py").read_text("utf-8"), feature_version=(3, 7))
    for version in [(3, 11), (3, 12), (3, 13)]:
        require_python(version)
    for version in [(3, 7), (3, 10), (3, 14)]:
        with pytest.raises(Stop, match=r"This is Python 3.*needs Python 3\.11 to 3\.13\. Install"):
            require_python(version)


@pytest.mark.parametrize("arguments", [[], ["lobster"]])
def test_an_unknown_command_gets_the_usage(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, Course(folder, Recorder())) == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: python3 course.py")
    assert all(f"\n  {name} " in said for name in course_module.COMMANDS)


def test_help_is_no_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], Course(folder, Recorder())) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  lab ") for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_python_without_venv_gets_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Debian's python3 without python3-venv lacks ensurepip, and only that.
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    monkeypatch.setattr("sys.base_prefix", "/elsewhere")
    recorder = Recorder()
    assert main(["build"], Course(folder, recorder)) == 2
    assert "no venv module. Install it" in capsys.readouterr().err
    assert recorder.commands == []


# Installing

SETUP = ["venv", "pip", "pip", "compileall"]  # the modules that it runs


def test_setup_happens_once(folder: Path) -> None:
    recorder = Recorder()
    course = Course(folder, recorder)
    assert main(["build", "lab01_formats"], course) == 0
    *setup, build = recorder.commands
    assert [module_of(step) for step in setup] == SETUP
    assert setup[2][-4:] == ["-e", ".[lab,lecture]", "-e", "./autograder"]
    assert all("constraints.txt" in step for step in setup[1:3])
    assert build[1:] == ["-m", "autograder", "build", "lab01_formats"]
    recorder.commands.clear()
    assert main(["build"], course) == 0
    assert recorder.modules() == ["autograder"]


def change_a_range(root: Path) -> None:
    with (root / "pyproject.toml").open("a") as file:
        file.write("# another range\n")


def change_a_pin(root: Path) -> None:
    with (root / "constraints.txt").open("a") as file:
        file.write("another==1\n")


def remove_python(root: Path) -> None:
    Course(root).python.unlink()


@pytest.mark.parametrize("change", [change_a_range, change_a_pin, remove_python])
def test_setup_is_repeated_after_a_change(folder: Path, change: Callable[[Path], None]) -> None:
    recorder = Recorder()
    course = Course(folder, recorder)
    course.set_up()
    change(folder)
    recorder.commands.clear()
    course.set_up()
    assert recorder.modules() == SETUP


def test_setup_says_a_line_a_step_and_keeps_the_log(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = Course(folder, Recorder())
    course.set_up()
    assert capsys.readouterr().out.count("\n") == 1 + len(SETUP)
    pips = [step for step in course.setup_steps(test_tools=False) if module_of(step) == "pip"]
    assert all(step[step.index("--log") + 1] == str(course.log) for step in pips)
    assert all("--quiet" in step for step in pips)


def test_setup_is_repeated_where_the_folder_moved(folder: Path, tmp_path: Path) -> None:
    Course(folder, Recorder()).set_up()
    moved = folder.rename(tmp_path / "elsewhere")
    assert not Course(moved, Recorder()).is_set_up(test_tools=False)


def test_test_tools_come_with_test_alone_and_stay(folder: Path) -> None:
    course = Course(folder, Recorder())
    course.set_up()
    assert not course.is_set_up(test_tools=True)
    assert course.setup_steps(test_tools=True)[2][-1] == "./autograder[test]"
    course.set_up(test_tools=True)
    assert course.is_set_up(test_tools=True)
    assert course.is_set_up(test_tools=False)


@pytest.mark.parametrize("fails", ["venv", "setuptools", "./autograder"])
def test_a_failed_setup_is_not_taken_for_done(
    folder: Path, fails: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build"], Course(folder, Recorder(fails))) == 2
    assert "The setup failed" in capsys.readouterr().err
    assert not Course(folder).is_set_up(test_tools=False)


@pytest.mark.parametrize(("minor", "clears"), [(sys.version_info[1], False), (6, True)])
def test_an_environment_of_another_python_is_cleared(
    folder: Path, minor: int, clears: bool
) -> None:
    (folder / ".venv").mkdir()
    (folder / ".venv/pyvenv.cfg").write_text(f"home = /usr\nversion = 3.{minor}.2\n")
    assert ("--clear" in Course(folder).setup_steps(test_tools=False)[0]) == clears


def test_the_real_setup(folder: Path) -> None:
    def start() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, folder / "course.py", "build", "--check"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    first = start()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "Editable installation" not in first.stderr, "a box of stars among our lines"
    assert first.stdout.endswith(f"{folder / '.venv'} ['build', '--check']\n")
    assert start().stdout.count("\n") == 1, "nothing is installed twice"


# The programs it starts


@pytest.mark.skipif(os.name == "nt", reason="signals as on Linux and macOS")
@pytest.mark.parametrize(
    ("sent", "inner", "status"),
    [
        (signal.SIGTERM, "signal.pause()", 128 + signal.SIGTERM),
        (signal.SIGINT, "sys.exit(sys.stdin.readline() != 'go on\\n')", 0),
        (signal.SIGINT, "sys.exit(sys.stdin.readline() == 'go on\\n')", 128 + signal.SIGINT),
    ],
)
def test_a_signal_ends_us_where_it_ends_the_program(
    repository: Path, sent: int, inner: str, status: int
) -> None:
    program = f"import signal, sys; print('ready', flush=True); {inner}"
    outer = (
        "import sys; from pathlib import Path; from course import run_program;"
        f"sys.exit(run_program([sys.executable, '-c', {program!r}], Path()) and 'went on')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", outer],
        cwd=repository,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(sent)
        # Both processes hold the pipe: this returns once both have ended.
        left, _ = running.communicate("go on\n" if sent == signal.SIGINT else None, timeout=600)
        assert (left, running.returncode) == ("", status)


# The student's folder


def test_lab_opens_the_students_copy(folder: Path) -> None:
    recorder = Recorder()
    assert main(["lab", "lab01", "--no-browser"], Course(folder, recorder)) == 0
    assert (folder / "work/lab01_formats/lab01_formats.ipynb").read_text() == "released"
    jupyter = recorder.commands[-1]
    assert jupyter[1:4] == ["-m", "jupyter", "lab"]
    assert f"--ServerApp.root_dir={folder / 'work'}" in jupyter
    assert "--LabApp.default_url=/lab/tree/lab01_formats/lab01_formats.ipynb" in jupyter
    assert jupyter[-1] == "--no-browser"
    (settings,) = (Path(a.partition("=")[2]) for a in jupyter if "app_settings_dir" in a)
    notification = "@jupyterlab/apputils-extension:notification"
    assert json.loads((settings / "overrides.json").read_text())[notification] == {
        "fetchNews": "false",
        "checkForUpdates": False,
    }
    page = json.loads((settings / "page_config.json").read_text())
    assert page["disabledExtensions"]["@jupyter/nbgrader:create-assignment"] is True
    assert "@jupyter/nbgrader:validate-assignment" not in page["disabledExtensions"]


def test_lab_without_a_name_copies_all_of_them(folder: Path) -> None:
    shutil.copytree(folder / "labs/lab01_formats", folder / "labs/lab03_adam")
    recorder = Recorder()
    assert main(["lab", "--no-browser"], Course(folder, recorder)) == 0
    assert {path.name for path in (folder / "work").iterdir()} == {"lab01_formats", "lab03_adam"}
    assert "--LabApp.default_url=/lab" in recorder.commands[-1]


def test_lab_never_overwrites_a_students_file(folder: Path) -> None:
    released, own = folder / "labs/lab01_formats", folder / "work/lab01_formats"
    own.mkdir(parents=True)
    (own / "lab01_formats.ipynb").write_text("my answers")
    (own / "notes.txt").write_text("my notes")
    (released / "figure.png").write_bytes(b"new")
    (own / "figure.png.part").write_bytes(b"n")  # a copy that was cut short
    copy_new_files(released, own)
    assert (own / "lab01_formats.ipynb").read_text() == "my answers"
    assert (own / "notes.txt").read_text() == "my notes"
    assert (own / "figure.png").read_bytes() == b"new"
    assert {path.name for path in own.iterdir()} == {
        *("lab01_formats.ipynb", "notes.txt", "figure.png")
    }


def test_an_unknown_lab_gets_the_names(folder: Path) -> None:
    assert find_lab(Course(folder), "lab01_formats") == "lab01_formats"
    with pytest.raises(Stop, match=r"no lab named lab99\. The labs are lab01_formats\."):
        find_lab(Course(folder), "lab99")


# Lectures


@pytest.fixture
def lectures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (folder / "lectures").mkdir()
    for name in ("lecture1_memory", "lecture2_speed"):
        (folder / "lectures" / f"{name}.ipynb").touch()
    monkeypatch.setenv("JUPYTER_PATH", "elsewhere")
    return folder / "lectures"


@pytest.mark.parametrize("name", ["lecture2", "lecture2_speed"])
def test_lecture_opens_a_page_whose_kernel_is_ready(
    folder: Path, lectures: Path, name: str
) -> None:
    recorder = Recorder()
    assert main(["lecture", name, "--no-browser"], Course(folder, recorder)) == 0
    voila = recorder.commands[-1]
    assert voila[1:4] == ["-m", "voila", str(lectures / "lecture2_speed.ipynb")]
    assert "--template=lecture" in voila
    assert "--preheat_kernel=True" in voila
    assert voila[-1] == "--no-browser"
    assert os.environ["JUPYTER_PATH"] == str(lectures / "share")


def test_lecture_without_a_name_is_the_first(
    folder: Path, lectures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder()
    assert main(["lecture"], Course(folder, recorder)) == 0
    assert recorder.commands[-1][3] == str(lectures / "lecture1_memory.ipynb")
    assert "The lectures are lecture1_memory, lecture2_speed." in capsys.readouterr().out


def test_a_still_page_is_written(folder: Path, lectures: Path) -> None:
    recorder = Recorder()
    assert main(["lecture", "lecture1", "--html", "out.html"], Course(folder, recorder)) == 0
    written = [str(lectures / "lecture1_memory.ipynb"), str(Path("out.html").resolve())]
    assert recorder.commands[-1][2:] == ["peakmem.show.widgets.still_page", *written]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lecture9"], "no lecture named lecture9. The lectures are lecture1_memory, lecture2_s"),
        (["--html", "out.html"], "lecture NAME --html FILE"),
        (["lecture1", "--html"], "lecture NAME --html FILE"),
    ],
)
def test_a_lecture_that_is_none_gets_a_sentence(
    folder: Path,
    lectures: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    assert main(["lecture", *arguments], Course(folder, Recorder())) == 2
    assert said in capsys.readouterr().err


# System packages and checks


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.mark.usefixtures("empty_path")
def test_grade_stops_where_the_sandbox_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder()
    assert main(["grade"], Course(folder, recorder)) == 2
    assert (
        "bubblewrap, which runs students' code in a sandbox, is missing" in capsys.readouterr().err
    )
    assert recorder.commands == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="apt-get is for root")
@pytest.mark.usefixtures("empty_path")
def test_root_on_debian_gets_the_sandbox(folder: Path, tmp_path: Path) -> None:
    apt_get = tmp_path / "bin/apt-get"
    apt_get.touch(mode=0o755)
    recorder = Recorder()
    assert main(["grade"], Course(folder, recorder)) == 0
    assert [command[6:8] for command in recorder.commands[:2]] == [
        ["apt-get", "update"],
        ["apt-get", "install"],
    ]
    assert recorder.commands[1][-1] == "bubblewrap"
    assert recorder.commands[-1][2:6] == ["autograder", "demo", "--students", "24"]


@pytest.mark.usefixtures("empty_path")
def test_test_goes_on_after_a_failure_and_says_what_failed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(fails="mypy")
    assert main(["test", "-k", "units"], Course(folder, recorder)) == 1
    pytest_command = recorder.commands[-1]
    assert pytest_command[-4:] == ["-m", "not slow", "-k", "units"]
    assert recorder.modules()[-5:] == ["ruff", "ruff", "mypy", "autograder", "pytest"]
    said = capsys.readouterr().out
    assert "FAILED: types\n" in said
    assert "Some tests were skipped: bubblewrap, which" in said
    assert "Some tests were skipped: chromium, which" in said


@pytest.mark.parametrize(
    ("arguments", "modules"),
    [
        ([], list(course_module.BENCHES.values())),
        (["accuracy", "--quick"], ["benchmarks.accuracy"]),
        (["meter"], ["benchmarks.meter_cost"]),
        (["thousand", "lab03_adam"], ["benchmarks.thousand"]),
    ],
)
def test_bench_runs_the_named_part_or_all(
    folder: Path, arguments: list[str], modules: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Course, "missing", lambda self, wanted: "")
    recorder = Recorder()
    assert main(["bench", *arguments], Course(folder, recorder)) == 0
    assert recorder.commands[-1][3:] == arguments[1:]
    assert recorder.modules()[len(SETUP) :] == modules


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["speed"],
            "no bench named speed. The benches are accuracy, budgets, calculators, class, grader",
        ),
        (["--quick"], "Name the bench that --quick is for"),
    ],
)
def test_an_unknown_bench_gets_the_names(
    folder: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments], Course(folder, Recorder())) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("name", ["budgets", "class", "grader", "hostile", "thousand", "verdicts"])
def test_benches_of_grading_ask_for_the_sandbox(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Course, "missing", lambda self, wanted: f"{wanted.package} is missing")
    assert main(["bench", name], Course(folder, Recorder())) == 2
    assert "bubblewrap is missing" in capsys.readouterr().err
    recorder = Recorder()
    assert main(["bench", "meter"], Course(folder, recorder)) == 0


def test_a_failed_bench_does_not_stop_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Course, "missing", lambda self, wanted: "")
    recorder = Recorder(fails="benchmarks.grader")
    assert main(["bench"], Course(folder, recorder)) == 1
    assert recorder.modules()[-1] == list(course_module.BENCHES.values())[-1]


def test_programs_find_the_courses_environment_active(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "elsewhere")
    Course(folder, Recorder()).module("pytest")
    assert os.environ["VIRTUAL_ENV"] == str(folder / ".venv")


def test_programs_save_their_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    Course(folder, Recorder()).module("pytest")
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_gpu_needs_no_environment_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    recorder = Recorder()
    assert main(["gpu", "--dry-run"], Course(folder, recorder)) == 0
    assert recorder.commands == [[sys.executable, "-m", "benchmarks.gpu", "--dry-run"]]
    paths = [str(folder / "src"), str(folder), "elsewhere"]
    assert os.environ["PYTHONPATH"].split(os.pathsep) == paths


def test_gpu_says_what_this_python_lacks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(course_module, "GPU_NEEDS", ("torch", "no_such_module"))
    assert main(["gpu"], Course(folder, Recorder())) == 2
    assert "lacks no_such_module. Use a Python that has" in capsys.readouterr().err


def test_test_all_runs_the_slow_ones_too(folder: Path) -> None:
    recorder = Recorder()
    assert main(["test", "--all"], Course(folder, recorder)) == 0
    assert "not slow" not in recorder.commands[-1]
    assert "--all" not in recorder.commands[-1]
