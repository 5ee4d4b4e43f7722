"""Builds the command that starts the sandbox, and tells whether this machine can run it."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import peakmem
from autograder.base.errors import AutograderError
from autograder.sandbox.host.binds import (
    COURSE_INSIDE,
    FILES,
    GRADER,
    PACKAGES_INSIDE,
    course_binds,
    hiding_binds,
    installed_packages,
    system_binds,
)

__all__ = [
    "IsolationError",
    "command",
    "lay_out",
    "missing_layers",
    "plain_command",
]

_FIRST_USER = 61_000  # as root, sandboxes run with this user id and the following ones
_START = 60.0  # seconds allowed for the trial of the whole chain
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_OPTIONS = ("-s", "-P")  # of Python: ignore the user's packages and the working directory
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp/home",
    "LANG": "C.UTF-8",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",  # the same order of sets in every run
    **dict.fromkeys(_ONE_THREAD, "1"),
}


class IsolationError(AutograderError, RuntimeError):
    """A layer of isolation is missing; the message says which, and how to get it."""


# The sandbox's whole chain around an empty program: a fork isolates itself and reports.
_TRIAL = """
import os, sys
from autograder.sandbox.guest.namespaces import shut_in
control, (reading, writing) = int(sys.argv[1]), os.pipe()
if os.fork() == 0:
    size = {"memory_bytes": 2**30, "tmp_bytes": 2**20, "shm_bytes": 2**20, "files": 64, "gpu": 0}
    size["ranks"] = 1
    try:
        shut_in({**size, "processes": 64, "cpu_seconds": 60})
        os.write(writing, b"in")
    except BaseException as error:
        os.write(writing, repr(error).encode())
    os._exit(0)
os.close(writing)
os.write(control, os.read(reading, 500))
"""


def command(
    program: Sequence[str], hides: Sequence[str], slot: int, scratch: Path
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of a Python in the sandbox.

    `program` is Python's arguments. `scratch` is a caller's folder for files that are shown inside,
    empty except for what `lay_out` put there. Raises IsolationError if Python is installed in /tmp.
    """
    prefix = Path(sys.base_prefix).resolve()
    if prefix.is_relative_to("/tmp"):
        raise IsolationError(
            f"Python is installed in {prefix}, but the sandbox has a /tmp of its own. Install "
            "Python elsewhere; a virtual environment may be anywhere."
        )
    binds = [*system_binds(), *course_binds(), *hiding_binds(hides, scratch)]
    if (scratch / "files").is_dir():
        binds += ["--ro-bind", str(scratch / "files"), FILES]
    environment = {**_ENVIRONMENT, "PYTHONPATH": f"{COURSE_INSIDE}:{PACKAGES_INSIDE}"}
    # The virtual environment's Python is a link, and its target needs no such folder.
    python = os.path.realpath(sys.executable)
    # fmt: off
    inside = [
        "--unshare-all",
        "--unshare-user",
        "--die-with-parent",
        "--proc", "/proc",
        "--dev", "/dev",
        *_gpu_devices(),
        "--tmpfs", "/tmp",
        # The folders that hold the binds are in memory, and an ordinary user could write to them.
        # A file left there, such as a module on Python's path, would reach the next student.
        "--remount-ro", "/",
        "--chdir", "/tmp",
        python, *_OPTIONS, *program,
    ]
    # fmt: on
    if os.getuid() != 0:
        return ["bwrap", *binds, *inside], environment
    return _with_root_dropped(binds, inside, str(_FIRST_USER + slot)), environment


def _with_root_dropped(binds: Sequence[str], inside: Sequence[str], user: str) -> list[str]:
    """The command line if the grader is root.

    Root prepares the binds, which may be in folders that only root can read, and is then dropped:
    the kernel doesn't count root's processes, and root in a sandbox is still root.
    """
    # fmt: off
    return [
        "bwrap",
        *binds,
        "--bind", "/proc", "/proc",
        "--dev", "/dev",
        *_gpu_devices(),
        "--tmpfs", "/tmp",
        "--die-with-parent",
        "--cap-add", "CAP_SETUID",
        "--cap-add", "CAP_SETGID",
        "--cap-add", "CAP_SETPCAP",
        "--",
        "setpriv",
        "--reuid", user,
        "--regid", user,
        "--clear-groups",
        "--bounding-set=-all",
        "bwrap",
        "--ro-bind", "/", "/",
        *inside,
    ]
    # fmt: on


def plain_command(program: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of a Python that sees all of this machine."""
    library = str(Path(peakmem.__file__).parent.parent)
    environment = {**_ENVIRONMENT, "PYTHONPATH": f"{GRADER.parent}:{library}"}
    return [sys.executable, *_OPTIONS, *program], environment


def lay_out(files: Mapping[str, Path], scratch: Path) -> Path:
    """Copy an assignment's files into a folder of `scratch`, which the sandbox binds; return it.

    They are copied because the sandbox's user may not be able to read the instructor's files.
    """
    folder = scratch / "files"
    folder.mkdir()
    for name, path in files.items():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod(0o644)
    for made in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        made.chmod(0o755)
    return folder


def missing_layers() -> list[str]:
    """Return a sentence for each layer of isolation that this machine lacks; empty if complete."""
    if sys.platform != "linux":
        return [
            "Grading safely needs Linux namespaces. Grade in a Linux virtual machine, or under "
            "WSL 2 on Windows."
        ]
    from autograder.sandbox.host.ulimits import too_low  # runs on Linux only

    missing = [*too_low(), *_unreadable()]
    missing += [
        f"{program} is not installed: `apt-get install {package}` (as root) gets it."
        for program, package in (("bwrap", "bubblewrap"), ("setpriv", "util-linux"))
        if shutil.which(program) is None
    ]
    return missing or _refused_layers()


def _unreadable() -> list[str]:
    """A sentence for each place that only root can read, since submissions run as another user."""
    if os.getuid() != 0:
        return []
    library = Path(peakmem.__file__)
    shown = (library.parent, library, Path(__file__), installed_packages(), Path(os.__file__))
    return [
        f"{place} is readable only by its owner, but submissions run as another user: "
        f"`chmod -R go+rX {place if place.is_dir() else place.parent}`."
        for place in shown
        if not place.stat().st_mode & stat.S_IROTH
    ]


def _refused_layers() -> list[str]:
    """Try the whole chain on an empty program, as grading would run it."""
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory(prefix="autograder-") as scratch, ours:
        with theirs:
            program = ["-c", _TRIAL, str(theirs.fileno())]
            arguments, environment = command(program, (), 0, Path(scratch))
            trial = subprocess.Popen(
                arguments,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                errors="replace",
            )
        ours.settimeout(_START)
        try:
            said = ours.recv(500).decode(errors="replace")
        except TimeoutError:
            said = f"it did not start in {_START:g} s"
            trial.kill()
    _, errors = trial.communicate()
    if said == "in":
        return []
    why = said or errors.strip()[-500:] or "it ended without a message"
    return [
        f"The sandbox does not work here: {why}. "
        "In a container, start it with --privileged; where the system forbids user "
        "namespaces, allow them: `sysctl kernel.unprivileged_userns_clone=1` (Debian) or "
        "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), as root."
    ]


def _gpu_devices() -> Iterator[str]:
    for device in sorted(Path("/dev").glob("nvidia*")):
        yield from ("--dev-bind", str(device), str(device))
