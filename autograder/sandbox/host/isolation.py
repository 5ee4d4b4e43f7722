"""The command that starts the sandbox, and whether this machine can run it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import peakmem
from autograder.base.course import COURSE
from autograder.base.errors import AutograderError

__all__ = ["FILES", "GUEST", "IsolationError", "command", "lay_out", "missing_layers"]
__all__ += ["plain_command"]

GUEST = Path(__file__).parents[1] / "guest"  # all that runs inside, and nothing else
_GRADER = Path(__file__).parents[2]
_FIRST_USER = 61_000  # as root, sandboxes run as this user id and those after it
_COURSE = "/course"  # where the course's own modules lie inside
_PACKAGES = "/course/packages"  # where the installed packages lie inside
FILES = "/course/files"  # where an assignment's data files lie inside
_START = 60.0  # seconds that trying the chain may take
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_OPTIONS = ("-s", "-P")  # of Python: nothing of the user's own, nothing of the working directory
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


# The chain of the sandbox around a program that does nothing: a fork shuts itself in and says so.
_TRIAL = """
import os, sys
from autograder.sandbox.guest.namespaces import shut_in
control, (reading, writing) = int(sys.argv[1]), os.pipe()
if os.fork() == 0:
    size = {"memory_bytes": 2**30, "tmp_bytes": 2**20, "shm_bytes": 2**20, "files": 64, "gpu": 0}
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

    `program` are Python's arguments; `scratch` is a folder of the caller's for files that are shown
    inside, empty but for what `lay_out` put there.
    """
    binds = [*_system_binds(), *_course_binds(), *_hiding_binds(hides, scratch)]
    if (scratch / "files").is_dir():
        binds += ["--ro-bind", str(scratch / "files"), FILES]
    environment = {**_ENVIRONMENT, "PYTHONPATH": f"{_COURSE}:{_PACKAGES}"}
    # The virtual environment's own Python is a link; what it links to needs no such folder.
    inside = [os.path.realpath(sys.executable), *_OPTIONS, *program]
    inner = [
        *("bwrap", "--unshare-all", "--unshare-user", "--die-with-parent"),
        *("--proc", "/proc", "--dev", "/dev", *_gpu_devices(), "--tmpfs", "/tmp"),
        # The folders around all that is bound lie in memory, and would belong to an ordinary user:
        # what one student left there, a module in Python's path for one, the next would find.
        *("--remount-ro", "/", "--chdir", "/tmp"),
    ]
    if os.getuid() != 0:
        return [inner[0], *binds, *inner[1:], *inside], environment
    # Root prepares the binds, which may lie in folders that nobody else can read, and is then
    # given up: the kernel counts no processes of root, and root in a sandbox is still root.
    user = str(_FIRST_USER + slot)
    outer = [
        *("bwrap", *binds, "--bind", "/proc", "/proc", "--dev", "/dev", *_gpu_devices()),
        *("--tmpfs", "/tmp", "--die-with-parent", "--cap-add", "CAP_SETUID"),
        *("--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP", "--"),
        *("setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--bounding-set=-all"),
    ]
    return [
        *outer,
        *(inner[0], "--ro-bind", "/", "/", *inner[1:], *inside),
    ], environment


def plain_command(program: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return what `command` does, for a Python that sees all of this machine."""
    library = str(Path(peakmem.__file__).parent.parent)
    environment = {**_ENVIRONMENT, "PYTHONPATH": f"{_GRADER.parent}:{library}"}
    return [sys.executable, *_OPTIONS, *program], environment


def lay_out(files: Mapping[str, Path], scratch: Path) -> Path:
    """Copy an assignment's files below `scratch`; return their folder, which the sandbox binds.

    Copies, since the user that the sandbox runs as may not read the instructor's.
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
    """Return a sentence for each layer of isolation that this machine lacks; none is well."""
    if sys.platform != "linux":
        return [
            "Grading safely needs Linux namespaces. Grade in a Linux virtual machine, or under "
            "WSL 2 on Windows."
        ]
    from autograder.sandbox.host.ulimits import too_low  # Linux's too

    missing = [*too_low(), *_unreadable()]
    missing += [
        f"{program} is not installed: `apt-get install {package}` (as root) gets it."
        for program, package in (("bwrap", "bubblewrap"), ("setpriv", "util-linux"))
        if shutil.which(program) is None
    ]
    return missing or _refused_layers()


def _unreadable() -> list[str]:
    """A sentence for each place that only root reads, while root's submissions are another user."""
    if os.getuid() != 0:
        return []
    library = Path(peakmem.__file__)
    shown = (library.parent, library, Path(__file__), _installed(), Path(os.__file__))
    return [
        f"{place} can be read by its owner only, and submissions run as another user: "
        f"`chmod -R go+rX {place if place.is_dir() else place.parent}`."
        for place in shown
        if not place.stat().st_mode & stat.S_IROTH
    ]


def _refused_layers() -> list[str]:
    """Try the whole chain on a program that does nothing, as grading would run it."""
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
    why = said or errors.strip()[-500:] or "it ended without a word"
    return [
        f"The sandbox does not work here: {why}. "
        "In a container, start it with --privileged; where the system forbids user "
        "namespaces, allow them: `sysctl kernel.unprivileged_userns_clone=1` (Debian) or "
        "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), as root."
    ]


def _system_binds() -> Iterator[str]:
    """/usr and what belongs to it, and this Python wherever it lies."""
    yield from ("--ro-bind", "/usr", "/usr")
    yield from _masks(Path("/usr"), "/usr")
    for folder in map(Path, ("/bin", "/sbin", "/lib", "/lib32", "/lib64")):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    yield from _readable_parents(Path("/etc/ld.so.cache"))
    for place in ("/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/alternatives"):
        yield from ("--ro-bind-try", place, place)
    prefix = Path(sys.base_prefix).resolve()
    if prefix.is_relative_to("/tmp"):
        raise IsolationError(
            f"Python lies in {prefix}, and the sandbox has a /tmp of its own. Install Python "
            "elsewhere; a virtual environment may lie anywhere."
        )
    if not prefix.is_relative_to("/usr"):
        yield from _readable_parents(prefix)
        yield from ("--ro-bind", str(prefix), str(prefix))
        yield from _masks(prefix, str(prefix))


def _masks(shown: Path, within: str) -> Iterator[str]:
    """Lay emptiness over the course and the grader where they lie in a folder that is shown."""
    secrets = [_GRADER]
    root = COURSE.root  # of an installed grader the folder of packages
    if (root / "solutions").is_dir():
        secrets.insert(0, root)
    for secret in secrets:
        if secret.is_relative_to(shown):
            yield from _emptiness(str(within / secret.relative_to(shown)))


def _course_binds() -> Iterator[str]:
    """The library, what runs inside, and the installed packages, at fixed places.

    So it makes no difference where the course lies, and where that is does not show inside.
    """
    library = Path(peakmem.__file__).parent
    guest = f"{_COURSE}/autograder/sandbox/guest"
    yield from _readable_parents(Path(guest))
    yield from ("--ro-bind", str(_installed()), _PACKAGES)
    yield from _masks(_installed(), _PACKAGES)
    yield from ("--ro-bind", str(library), f"{_COURSE}/peakmem")
    yield from ("--ro-bind", str(GUEST), guest)


def _installed() -> Path:
    """The folder that pip installs packages in; pure and compiled ones lie in one on Linux."""
    return Path(sysconfig.get_path("platlib")).resolve()


def _hiding_binds(hides: Sequence[str], scratch: Path) -> Iterator[str]:
    """Lay a refusal over each module that holds the lab's answers, and over its compiled copies."""
    for name in hides:
        origin = _origin(name)
        if origin is None:
            continue  # not installed, so not to be imported either
        refusal = scratch / name
        refusal.mkdir()
        refusal.chmod(0o755)  # another user reads it
        file = refusal / "__init__.py"
        file.write_text(f'raise ImportError("{name} holds answers of this lab")\n')
        file.chmod(0o644)  # whatever the shell's umask says
        if origin.name == file.name:  # a package: its modules go too, which load without it
            yield from ("--ro-bind", str(refusal), _seen_inside(origin.parent))
            continue
        yield from ("--ro-bind", str(file), _seen_inside(origin))
        compiled = origin.with_name("__pycache__")
        with contextlib.suppress(OSError):  # the grader may write there yet, where it can
            compiled.mkdir(exist_ok=True)
        if compiled.is_dir():
            yield from _emptiness(_seen_inside(compiled))


def _emptiness(place: str) -> Iterator[str]:
    """Lay an empty folder over a place, to which an ordinary user could write, were it not so."""
    yield from ("--perms", "0755", "--tmpfs", place, "--remount-ro", place)


def _origin(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin) if spec is not None and spec.origin else None


def _seen_inside(path: Path) -> str:
    for outside, within in (
        (Path(peakmem.__file__).parent, f"{_COURSE}/peakmem"),
        (_installed(), _PACKAGES),
    ):
        if path.is_relative_to(outside):
            return f"{within}/{path.relative_to(outside)}"
    return str(path)


def _readable_parents(path: Path) -> Iterator[str]:
    # bubblewrap makes missing parents readable by their owner only, which is not the student.
    for parent in reversed(path.parents):
        if str(parent) != "/":
            yield from ("--perms", "0755", "--dir", str(parent))


def _gpu_devices() -> Iterator[str]:
    for device in sorted(Path("/dev").glob("nvidia*")):
        yield from ("--dev-bind", str(device), str(device))
