"""Isolates each submission under its own user id, on machines that refuse namespaces.

Learning platforms' containers refuse namespaces, but let the grader be root. Each submission gets a
unique user id. Anything that this user must not read has to be readable only by root, which the
grader checks as such a user before anything runs. The library is a copy without the modules that
hold a lab's answers. This isolation is weaker than namespaces (see docs/threat_model.md), so every
result carries `NOTE`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import peakmem
from autograder.base.course import COURSE
from autograder.base.limits import Limits
from autograder.sandbox.guest.uid import CLEAN, PLACES
from autograder.sandbox.host.backend import PROGRAM, Files, Fork, Launch, Place
from autograder.sandbox.host.binds import GUEST
from autograder.sandbox.host.enclosure import demands
from autograder.sandbox.host.isolation import IsolationError, lay_out, plain_command
from autograder.sandbox.host.quota import Quota
from autograder.sandbox.host.user_ids import draw_user, readable_by

__all__ = ["NOTE", "UserEnclosure", "UserIds", "missing_layers"]

NOTE = (
    "This machine refuses namespaces, so the code ran as a user of its own instead: without "
    "access to the network or the grader's files, but able to see other processes' names."
)

_GRADER = Path(__file__).parents[2]
_HOMES = "homes"  # the submissions' homes, below the sandbox's own folder
_END = 40.0  # seconds allowed for the guard to end everything
_PROGRAMS = {"find": "findutils", "rm": "coreutils"}

# The whole chain around an empty program: a fork confines itself and reports.
_TRIAL = """
import os, socket, sys
from autograder.sandbox.guest.uid import confine
ours, theirs = socket.socketpair()
leash, end = socket.socketpair()
if os.fork() == 0:
    limits = {"memory_bytes": 2**30, "tmp_bytes": 2**20, "files": 64, "processes": 64}
    limits |= {"cpu_seconds": 60, "gpu": False, "user": int(sys.argv[1]), "home": sys.argv[2]}
    try:
        confine(limits, theirs, end, overseen=True)
        theirs.sendall(b"in")
    except BaseException as error:
        theirs.sendall(repr(error).encode())
    os._exit(0)
theirs.close(), end.close()
said = (ours.recv(1) + ours.recv(500)).decode()  # the first byte comes with the listener
last = leash.recv(500).decode()
print(said if said[1:] != "in" else "in" if last == "clean" else last)
"""


@dataclass(frozen=True)
class UserIds:
    """Each submission runs as its own user, whose processes a guard ends.

    `secret_paths` must be readable only by root.
    """

    secret_paths: tuple[Path, ...] = ()
    way: Literal["user"] = "user"
    notes: tuple[str, ...] = (NOTE,)
    #: A user's leftover processes are found and ended one by one, which may fail.
    ends_first: bool = True

    def launch(self, hides: Sequence[str], files: Files | None, place: Place) -> Launch:
        secret = [*self.secret_paths, *_own_secrets(hides)]
        if readable := readable_by(draw_user(place.slot), secret):
            raise IsolationError(
                f"other users can read {', '.join(map(str, readable))}, so students' code could. "
                "Restrict these to root: chmod -R go-rwx"
            )
        place.scratch.chmod(0o711)
        homes = place.scratch / _HOMES
        homes.mkdir()
        homes.chmod(0o711)
        shown = None if files is None else str(lay_out(files, place.scratch))
        return Launch(*_command(PROGRAM, hides, place.scratch), shown)

    def enclose(
        self, fork: Fork, limits: Limits, place: Place, *, gpu: bool, ranks: bool
    ) -> UserEnclosure:
        user = draw_user(place.slot)
        leash, end = socket.socketpair()
        with end:
            try:
                connection = fork(end.fileno())
            except BaseException:
                leash.close()  # this ends everything that was started
                raise
        home = place.scratch / _HOMES / str(user)
        return UserEnclosure(connection, leash, limits, user, home, gpu=gpu)


class UserEnclosure:
    """A process with its own user, ended by a guard that this side controls through a socket."""

    def __init__(
        self,
        connection: socket.socket,
        leash: socket.socket,
        limits: Limits,
        user: int,
        home: Path,
        *,
        gpu: bool,
    ) -> None:
        self.connection = connection
        self.demands = {**demands(limits, gpu=gpu, ranks=False), "user": user, "home": str(home)}
        self.user, self.home = user, home
        self._leash = leash
        self._limits = limits

    def meet(self, pid: int, handle: int) -> Quota:
        self._pid = pid
        return Quota(pid, self._limits, self.user, self.home)

    def places(self) -> list[str]:
        return [str(self.home), *filter(os.path.isdir, PLACES)]

    def is_same(self) -> bool:
        # This file of a process that gave up root stays owned by root until the process starts
        # another program, whose memory isn't what the budget was set for.
        try:
            return Path(f"/proc/{self._pid}/clear_refs").stat().st_uid == 0
        except OSError:
            return False

    def kill(self) -> None:
        """End all of this user's processes."""
        with contextlib.suppress(OSError):  # the guard has ended already
            self._leash.shutdown(socket.SHUT_WR)  # the guard's signal to start

    def leave(self) -> None:
        self._leash.close()
        self.connection.close()

    def close(self) -> None:
        """Wait until this user's processes have ended. Raises IsolationError if some remain."""
        self.connection.close()
        said = b""
        if select.select([self._leash], [], [], _END)[0]:
            said = self._leash.recv(500)
        self._leash.close()
        if said != CLEAN:
            why = said.decode(errors="replace") or "its guard ended without a message"
            raise IsolationError(f"parts of a submission may remain: {why}")


def missing_layers(secret_paths: Iterable[Path] = ()) -> list[str]:
    """Return a sentence for each requirement of this isolation that the machine doesn't meet."""
    if sys.platform != "linux":
        return ["A user id for each submission needs Linux."]
    if os.getuid() != 0:
        return ["A user id for each submission needs root, to change to it."]
    lacking = [
        f"{program} is not installed: `apt-get install {package}` gets it."
        for program, package in _PROGRAMS.items()
        if shutil.which(program) is None
    ]
    if lacking:
        return lacking
    try:
        user = draw_user(0)
        readable = readable_by(user, [*secret_paths, *_own_secrets(())])
        needed = [Path(sys.executable), Path(os.__file__), Path(sysconfig.get_path("platlib"))]
        if missed := set(needed) - set(readable_by(user, needed)):
            return [
                f"Other users can't read {', '.join(map(str, sorted(missed)))}, but students' code "
                "must: install Python and the packages where every user can read them."
            ]
        if readable:
            return [
                f"Other users can read {', '.join(map(str, readable))}: restrict these to root, "
                "`chmod -R go-rwx`."
            ]
        said = _try(user)
    except (IsolationError, OSError, subprocess.SubprocessError) as error:
        said = str(error)
    return [] if said == "in" else [f"A user id for each submission doesn't work here: {said}."]


def _own_secrets(hides: Sequence[str]) -> list[Path]:
    """The files of the grader and the installed packages that students must not read."""
    found = [_GRADER, COURSE.solutions, COURSE.secret_file]
    for name in hides:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            found.append(Path(spec.origin))
    return found


def _command(
    program: Sequence[str], hides: Sequence[str], scratch: Path
) -> tuple[list[str], dict[str, str]]:
    """The prepared process's command and environment; creates the files that students see."""
    shown = scratch / "course"
    _lay_out(shown, hides)
    arguments, environment = plain_command(program)
    home = str(scratch / "prepared")  # home of the prepared process, which runs as root
    return arguments, {**environment, "HOME": home, "MPLCONFIGDIR": home, "PYTHONPATH": str(shown)}


def _lay_out(shown: Path, hides: Sequence[str]) -> None:
    """Copy the library and the guest's code, with refusals in place of hidden modules."""
    library = Path(peakmem.__file__).parent
    shutil.copytree(library, shown / "peakmem", ignore=shutil.ignore_patterns("__pycache__"))
    guest = shown / "autograder" / "sandbox" / "guest"
    shutil.copytree(GUEST, guest, ignore=shutil.ignore_patterns("__pycache__"))
    for name in hides:
        place = shown.joinpath(*name.split("."))
        shutil.rmtree(place, ignore_errors=True)
        refusal = f'raise ImportError("{name} holds answers of this lab")\n'
        place.with_suffix(".py").write_text(refusal)
    for path in (shown, *shown.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _try(user: int) -> str:
    """Try the whole chain on an empty program; `in` if it works."""
    with tempfile.TemporaryDirectory(prefix="autograder-") as name:
        scratch = Path(name)
        scratch.chmod(0o711)
        program = ["-c", _TRIAL, str(user), str(scratch / "home")]
        arguments, environment = _command(program, (), scratch)
        done = subprocess.run(
            arguments, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    return done.stdout.strip() or done.stderr.strip()[-500:] or "it ended without a message"
