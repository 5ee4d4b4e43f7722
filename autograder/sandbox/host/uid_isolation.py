"""The sandbox where the system refuses namespaces but lets the grader be root.

Containers of learning platforms are such places. Each submission gets a user id that nobody else
has; what that user must not read has to be root's alone, and that is tried, as such a user, before
anything is run. The library lies in a copy without the modules that hold a lab's answers. This
way is weaker than namespaces (docs/threat_model.md tells where), so it is never taken in silence:
whoever takes it adds `NOTE` to the result.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import select
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import peakmem
from autograder.base.limits import Limits, ProcessLost
from autograder.notebooks.questions import COURSE
from autograder.sandbox.guest.uid import CLEAN, PLACES, processes_of
from autograder.sandbox.host.isolation import GUEST, IsolationError, command, lay_out
from autograder.sandbox.host.quota import Quota
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent

__all__ = ["NOTE", "UidSandbox", "draw_user", "missing_layers", "readable_by"]

NOTE = (
    "This machine refuses namespaces, so the code ran as a user of its own instead: without "
    "network and the grader's files, but in sight of other processes' names."
)

# User ids far from anybody's; the second range for containers that have 65536 only.
_RANGES = ((1_900_000_000, 2_000_000_000), (61_184, 65_500))
_GRADER = Path(__file__).parents[2]
_SLOTS = 64  # graders at one time on one machine
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


class UidSandbox(Sandbox):
    """A sandbox of user ids. `secret_paths` must not be readable by anybody but root.

    Raises IsolationError, with the remedy, where one of them is, or where this way does not work.
    """

    notes = (NOTE,)

    def __init__(
        self,
        hides: Sequence[str] = (),
        *,
        slot: int = 0,
        limits: Limits | None = None,
        isolated: bool = True,
        files: Mapping[str, Path] | None = None,
        measured: bool = True,
        secret_paths: Iterable[Path] = (),
    ) -> None:
        self._slot = slot
        readable = readable_by(draw_user(slot), [*secret_paths, *_own_secrets(hides)])
        if readable:
            raise IsolationError(
                f"anybody can read {', '.join(map(str, readable))}, so students' code could. "
                "Make these root's alone: chmod -R go-rwx"
            )
        self._files = files
        super().__init__(hides, slot=slot, limits=limits, isolated=isolated, measured=measured)

    def part_with(self, student: SandboxStudent) -> None:
        """End a student's process. Whether all of it went is known before its work is judged."""
        student.close()

    def _fork(self) -> UidStudent:
        """A student to be, of a user id that no other process has."""
        user = draw_user(self._slot)
        leash, end = socket.socketpair()
        with end:
            try:
                connection = self._send_end(end.fileno())
            except BaseException:
                leash.close()  # which ends all that there is of it
                raise
        home = self._homes / str(user)
        return UidStudent(
            connection,
            leash,
            self.limits,
            user,
            home,
            gpu=self.has_gpu,
            measured=self._measured,
        )

    def _command(
        self, program: Sequence[str], hides: Sequence[str], slot: int
    ) -> tuple[list[str], dict[str, str]]:
        scratch = Path(self._scratch.name)
        scratch.chmod(0o711)
        self._homes = scratch / "homes"
        self._homes.mkdir()
        self._homes.chmod(0o711)
        if self._files is not None:
            program = [*program, f"--files={lay_out(self._files, scratch, isolated=False)}"]
        return _command(program, hides, scratch)


class UidStudent(SandboxStudent):
    """A student that is a user of its own, on the leash of a guard."""

    def __init__(
        self,
        connection: socket.socket,
        leash: socket.socket,
        limits: Limits,
        user: int,
        home: Path,
        *,
        gpu: bool,
        measured: bool,
    ) -> None:
        self._leash = leash
        self._user, self._home = user, home
        super().__init__(connection, limits, isolated=True, gpu=gpu, measured=measured)

    def meet(self) -> None:
        super().meet()
        self._memory = Quota(self._pid, self._limits, self._user, self._home)

    def leave(self) -> None:
        self._leash.close()
        super().leave()

    def kill(self) -> None:
        """End everything of this user."""
        with contextlib.suppress(OSError):  # the guard has ended already
            self._leash.shutdown(socket.SHUT_WR)  # its sign

    def close(self) -> None:
        """End everything of this user, and wait until it is gone; IsolationError where it stays."""
        super().close()
        said = b""
        if select.select([self._leash], [], [], _END)[0]:
            said = self._leash.recv(500)
        self._leash.close()
        if said != CLEAN:
            why = said.decode(errors="replace") or "its guard ended without a word"
            raise IsolationError(f"something of a submission may have stayed: {why}")

    def _places(self) -> list[str]:
        return [str(self._home), *filter(os.path.isdir, PLACES)]

    def _jail_limits(self) -> dict[str, Any]:
        more = {"user": self._user, "home": str(self._home)}
        return {**super()._jail_limits(), **more}

    def _see_that_it_is_the_same(self) -> None:
        # The kernel keeps this file root's for a process that gave up root, until it starts
        # another program; that one would have other memory than the budget was set for.
        try:
            same = Path(f"/proc/{self._pid}/clear_refs").stat().st_uid == 0
        except OSError:
            same = False
        if not same:
            raise ProcessLost("Your code ended its own process, or put another in its place.")


def draw_user(slot: int) -> int:
    """Return a user id that nobody has, nor the next one; IsolationError where none is to be had.

    Those of two slots are never the same.
    """
    lines = Path("/proc/self/uid_map").read_text().split("\n")
    mapped = [tuple(map(int, line.split())) for line in lines if line]
    for first, end in _RANGES:
        if not any(start <= first and end <= start + count for start, _, count in mapped):
            continue
        turns = (end - first) // (2 * _SLOTS)
        for _ in range(100):
            user = first + 2 * (secrets.randbelow(turns) * _SLOTS + slot % _SLOTS)
            if not any(_has_owner(u) or processes_of(u) for u in (user, user + 1)):
                return user
    raise IsolationError("this system has no user ids to spare for students' code")


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


def readable_by(user: int, paths: Iterable[Path]) -> list[Path]:
    """Return those of `paths` that a process of this user id can open, list or enter."""
    asked = [(path, path.is_dir()) for path in paths if path.exists()]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            for path, folder in asked:
                open_ = os.access(path, os.R_OK) or (folder and os.access(path, os.X_OK))
                os.write(writing, b"y" if open_ else b"n")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if len(said) != len(asked):
        raise IsolationError("this process may not change to another user id")
    return [path for (path, _), open_ in zip(asked, said.decode(), strict=True) if open_ == "y"]


def _own_secrets(hides: Sequence[str]) -> list[Path]:
    """What of the grader itself, and of the installed packages, students must not read."""
    found = [_GRADER, COURSE / "solutions", COURSE / ".course_secret"]
    for name in hides:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            found.append(Path(spec.origin))
    return found


def _has_owner(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def _command(
    program: Sequence[str], hides: Sequence[str], scratch: Path
) -> tuple[list[str], dict[str, str]]:
    """The command of the prepared process, and its environment; makes what students see."""
    shown = scratch / "course"
    _lay_out(shown, hides)
    arguments, environment = command(program, hides, 0, scratch, isolated=False)
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
