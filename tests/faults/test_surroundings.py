"""Inherited from a shell: its umask, its limits, a long name of the temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.sandbox.host import isolation
from autograder.sandbox.host.isolation import IsolationError, missing_layers
from autograder.sandbox.host.sandbox import Sandbox
from tests.faults.faulty import assert_as_undisturbed, elsewhere
from tests.grading import REPOSITORY, Class, command_environment
from tests.hostile.conftest import _as_user

pytestmark = pytest.mark.sandbox
AS = ["root", "a user"] if os.getuid() == 0 else ["a user"]


def around(user: str, setting: str, place: Path) -> list[str]:
    """A command that runs another one with a setting of the shell's, as root or as a user."""
    shell = ["bash", "-c", f'{setting} && exec "$@"', "bash"]
    if user == "root" or os.getuid() != 0:
        return shell
    return [*_as_user(place), *shell]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that users can enter, and write to if root runs the tests."""
    with tempfile.TemporaryDirectory(prefix="surroundings-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def handed_down(
    user: str, setting: str, code: str, place: Path
) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of this environment."""
    return subprocess.run(
        [*around(user, setting, place), sys.executable, "-c", code],
        env=command_environment(),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def doctor(
    user: str, setting: str, place: Path, *, raised: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run `autograder doctor`, with limits raised as it does by itself, or not."""
    without = "" if raised else "command.prepare = lambda: None; "
    code = (
        f"from autograder.cli import app, command; {without}raise SystemExit(app.main(['doctor']))"
    )
    return handed_down(user, setting, code, place)


WORKS = "The sandbox works"


@pytest.mark.slow
@pytest.mark.parametrize("user", AS)
@pytest.mark.parametrize("setting", ["ulimit -Sn 64", "ulimit -Sv 3000000", "umask 077"])
def test_what_can_be_raised_is_raised(user: str, setting: str, place: Path) -> None:
    done = doctor(user, setting, place)
    assert WORKS in done.stdout, done.stderr
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["ulimit -Sn 64", "ulimit -Sv 3000000"])
def test_control_without_raising_it_does_not_work(setting: str, place: Path) -> None:
    done = doctor("a user", setting, place, raised=False)
    assert WORKS not in done.stdout
    assert done.returncode == 1


NAMED = {
    "ulimit -n 64": (
        "The limit of open files is 64, but the sandbox needs 256: run `ulimit -n 1024`"
    ),
    "ulimit -v 3000000": (
        "The limit of address space in KiB is 3000000, but the sandbox needs 4194304: run "
        "`ulimit -v unlimited`"
    ),
    "ulimit -i 20": "The limit of waiting signals is 20, but the sandbox needs 256: run",
    "ulimit -f 2000": "The limit of file size in KiB is 2000, but the sandbox needs 1048576: run",
}


@pytest.mark.parametrize("setting", NAMED)
def test_what_cannot_be_raised_is_named_with_its_remedy(setting: str, place: Path) -> None:
    done = doctor("a user", setting, place)
    assert NAMED[setting] in done.stderr
    assert "namespaces" not in done.stderr
    assert done.returncode == 1


def test_limits_are_raised_as_far_as_they_go(place: Path) -> None:
    code = (
        "import resource as r\nfrom autograder.sandbox.host import ulimits\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (64, 300))\n"
        "ulimits.raise_limits()\nprint(r.getrlimit(r.RLIMIT_NOFILE), ulimits.too_low())"
    )
    assert handed_down("a user", "true", code, place).stdout == "(300, 300) []\n"


@pytest.mark.slow
def test_a_class_is_graded_alike_with_nobody_else_allowed_to_read(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path)
    done = room.grade("--workers", "2", around=["bash", "-c", 'umask 077 && exec "$@"', "bash"])
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_a_class_is_graded_alike_with_a_long_name_for_temporary_files(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path)
    long = tmp_path / ("x" * 100)
    long.mkdir()
    left = set(Path("/tmp").glob("autograder-*/t"))
    done = room.grade("--workers", "2", environment={"TMPDIR": str(long)})
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)
    assert list(long.iterdir()) == []
    mine = [link for link in set(Path("/tmp").glob("autograder-*/t")) - left if leads(link, long)]
    assert mine == []


def leads(link: Path, folder: Path) -> bool:
    return link.is_symlink() and link.readlink() == folder


LONG = """
import os, tempfile, multiprocessing
from autograder.sandbox.host import temporary
if {shortened}: temporary.shorten()
print(os.path.realpath(tempfile.gettempdir()))
from multiprocessing import forkserver
forkserver.ensure_running()
print("it runs")
"""


@pytest.mark.parametrize("user", AS)
@pytest.mark.parametrize("shortened", [True, False])
def test_a_server_of_workers_starts_with_a_long_name_and_without_the_guard_does_not(
    place: Path, user: str, shortened: bool
) -> None:
    long = place / ("x" * 100)
    long.mkdir()
    long.chmod(0o777)
    done = handed_down(user, f"export TMPDIR={long}", LONG.format(shortened=shortened), place)
    assert done.stdout.splitlines()[0] == str(long)
    assert ("it runs" in done.stdout) is shortened
    assert ("AF_UNIX path too long" in done.stderr) is not shortened


@pytest.fixture
def mask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


HIDES = ("gfloat", "peakmem.numbers.formats")


@pytest.mark.usefixtures("mask")
def test_a_submission_reads_the_course_whatever_the_mask() -> None:
    with Sandbox(HIDES, measured=False) as sandbox, sandbox.open() as student:
        assert student.run_cell("import peakmem") == []


@pytest.mark.usefixtures("mask")
@pytest.mark.skipif(os.getuid() != 0, reason="submissions run as another user for root only")
def test_control_with_rights_as_the_mask_has_them_it_could_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    with pytest.raises(IsolationError, match="Permission denied"):
        Sandbox(HIDES, measured=False).open()


@pytest.mark.skipif(os.getuid() != 0, reason="submissions run as another user for root only")
def test_a_course_that_only_its_owner_can_read_is_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = place / "peakmem"
    library.mkdir(mode=0o700)
    monkeypatch.setattr(isolation, "installed_packages", lambda: library)
    assert any(f"`chmod -R go+rX {library}`" in told for told in missing_layers())
