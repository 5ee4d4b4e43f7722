"""The second way to shut submissions in: a user id for each, where namespaces are refused.

Containers of learning platforms refuse namespaces, but let the grader be root. Each submission gets
a user id that nobody else has. What that user must not read has to be root's alone, which the
grader tries, as such a user, before anything runs. The library lies in a copy without the modules
that hold a lab's answers. This way is weaker than namespaces (docs/threat_model.md tells where), so
every result bears `NOTE`.
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import peakmem
from autograder.base.course import COURSE
from autograder.base.limits import Limits
from autograder.sandbox.guest.uid import CLEAN, PLACES
from autograder.sandbox.host.backend import Fork, Launch
from autograder.sandbox.host.binds import GUEST
from autograder.sandbox.host.enclosure import demands
from autograder.sandbox.host.isolation import IsolationError, lay_out, plain_command
from autograder.sandbox.host.quota import Quota
from autograder.sandbox.host.user_ids import draw_user, readable_by

__all__ = ["NOTE", "UserEnclosure", "UserIds", "missing_layers"]

NOTE = (
    "This machine refuses namespaces, so the code ran as a user of its own instead: without "
    "network and the grader's files, but in sight of other processes' names."
)

_GRADER = Path(__file__).parents[2]
_HOMES = "homes"  # below the sandbox's own folder: where submissions have theirs
_END = 40.0  # seconds that the guard may take for ending everything
_PROGRAMS = {"find": "findutils", "rm": "coreutils"}

# The chain around a program that does nothing: a fork confines itself and says so.
_TRIAL = """
import os, socket, sys
from autograder.sandbox.guest.uid import confine
ours, theirs = socket.socketpair()
leash, end = socket.socketpair()
if os.fork() == 0:
    limits = {"memory_bytes": 2**30, "tmp_bytes": 2**20, "files": 64, "processes": 64}
    limits |= {"cpu_seconds": 60, "gpu": False, "user": int(sys.argv[1]), "home": sys.argv[2]}
    try:
        confine(limits, theirs, end)
        theirs.sendall(b"in")
    except BaseException as error:
        theirs.sendall(repr(error).encode())
    os._exit(0)
theirs.close(), end.close()
said = ours.recv(500).decode()
last = leash.recv(500).decode()
print(said if said != "in" else "in" if last == "clean" else last)
"""


@dataclass(frozen=True)
class UserIds:
    """Each submission is a user of its own, whose processes a guard ends.

    `secret_paths` must not be readable by anybody but root.
    """

    secret_paths: tuple[Path, ...] = ()
    way: Literal["user"] = "user"
    notes: tuple[str, ...] = (NOTE,)
    #: what a user's processes leave behind is found and ended one by one, which may fail
    ends_first: bool = True

    def launch(
        self,
        program: Sequence[str],
        hides: Sequence[str],
        files: Mapping[str, Path] | None,
        scratch: Path,
        slot: int,
    ) -> Launch:
        secret = [*self.secret_paths, *_own_secrets(hides)]
        if readable := readable_by(draw_user(slot), secret):
            raise IsolationError(
                f"anybody can read {', '.join(map(str, readable))}, so students' code could. "
                "Make these root's alone: chmod -R go-rwx"
            )
        scratch.chmod(0o711)
        homes = scratch / _HOMES
        homes.mkdir()
        homes.chmod(0o711)
        shown = None if files is None else str(lay_out(files, scratch))
        return Launch(*_command(program, hides, scratch), shown)

    def enclose(
        self, fork: Fork, limits: Limits, scratch: Path, slot: int, *, gpu: bool, ranks: bool
    ) -> UserEnclosure:
        user = draw_user(slot)
        leash, end = socket.socketpair()
        with end:
            try:
                connection = fork(end.fileno())
            except BaseException:
                leash.close()  # which ends all that there is of it
                raise
        home = scratch / _HOMES / str(user)
        return UserEnclosure(connection, leash, limits, user, home, gpu=gpu)


class UserEnclosure:
    """A process that is a user of its own, on the leash of a guard."""

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
        # The kernel keeps this file root's for a process that gave up root, until it starts
        # another program; that one would have other memory than the budget was set for.
        try:
            return Path(f"/proc/{self._pid}/clear_refs").stat().st_uid == 0
        except OSError:
            return False

    def kill(self) -> None:
        """End everything of this user."""
        with contextlib.suppress(OSError):  # the guard has ended already
            self._leash.shutdown(socket.SHUT_WR)  # its sign

    def leave(self) -> None:
        self._leash.close()
        self.connection.close()

    def close(self) -> None:
        """Wait until everything of this user is gone; IsolationError if it stays."""
        self.connection.close()
        said = b""
        if select.select([self._leash], [], [], _END)[0]:
            said = self._leash.recv(500)
        self._leash.close()
        if said != CLEAN:
            why = said.decode(errors="replace") or "its guard ended without a word"
            raise IsolationError(f"something of a submission may have stayed: {why}")


def missing_layers(secret_paths: Iterable[Path] = ()) -> list[str]:
    """Return a sentence for each thing that this way needs and this machine lacks."""
    if sys.platform != "linux":
        return ["A user id for each submission needs Linux."]
    if os.getuid() != 0:
        return ["A user id for each submission takes root, to change to it."]
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
                f"Other users cannot read {', '.join(map(str, sorted(missed)))}, and students' "
                "code has to: install Python and the packages where everybody can read them."
            ]
        if readable:
            return [
                f"Anybody can read {', '.join(map(str, readable))}: make these root's alone, "
                "`chmod -R go-rwx`."
            ]
        said = _try(user)
    except (IsolationError, OSError, subprocess.SubprocessError) as error:
        said = str(error)
    return [] if said == "in" else [f"A user id for each submission does not work here: {said}."]


def _own_secrets(hides: Sequence[str]) -> list[Path]:
    """What of the grader itself, and of the installed packages, students must not read."""
    found = [_GRADER, COURSE.solutions, COURSE.secret_file]
    for name in hides:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            found.append(Path(spec.origin))
    return found


def _command(
    program: Sequence[str], hides: Sequence[str], scratch: Path
) -> tuple[list[str], dict[str, str]]:
    """The command of the prepared process, and its environment; makes what students see."""
    shown = scratch / "course"
    _lay_out(shown, hides)
    arguments, environment = plain_command(program)
    home = str(scratch / "prepared")  # of the prepared process, which is root's
    return arguments, {**environment, "HOME": home, "MPLCONFIGDIR": home, "PYTHONPATH": str(shown)}


def _lay_out(shown: Path, hides: Sequence[str]) -> None:
    """Copy the library and what runs inside; refusals stand in the place of what is hidden."""
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
    """Try the whole chain on a program that does nothing; `in` where it works."""
    with tempfile.TemporaryDirectory(prefix="autograder-") as name:
        scratch = Path(name)
        scratch.chmod(0o711)
        program = ["-c", _TRIAL, str(user), str(scratch / "home")]
        arguments, environment = _command(program, (), scratch)
        done = subprocess.run(
            arguments, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    return done.stdout.strip() or done.stderr.strip()[-500:] or "it ended without a word"
