"""One class of honest and hostile submissions, graded once by the real command."""

from __future__ import annotations

import ctypes
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.grading import LAB05, REPOSITORY, Class, cell_of, course_copy, released, solved
from tests.hostile.answers import ANSWERS
from tests.hostile.beneath import BENEATH
from tests.hostile.deceive import DECEIVE
from tests.hostile.kernel import KERNEL
from tests.hostile.kinds import QUICK
from tests.hostile.reach import REACH
from tests.hostile.structure import FILES, STRUCTURES
from tests.hostile.use_up import USE_UP
from tests.sandbox import require_sandbox
from tests.sharing import shared

_TABLES = (DECEIVE, ANSWERS, BENEATH, REACH, KERNEL, USE_UP)
ATTACKS = [attack for table in _TABLES for attack in table]
ROOMS = ("quick", "all", "all, as a user")
SECRET = "5ec2e7" * 11  # the course's secret, easy to search for wherever it may leak
CANARY = "canary-in-the-environment"
HIDDEN = "canary-in-the-solutions"  # in every hidden region of the course that grades the class
LIMITS = (
    "--cell-seconds",
    "3",
    "--submission-seconds",
    "300",
    "--memory-gib",
    "1",
    "--workers",
    "2",
)
# Folder names that can't be a student's: a spreadsheet would run the first, and the second is too
# long for a file's name, because its 80 characters are 240 bytes.
UNNAMED = ("formula=1+1", "\u6f22" * 80)
USER = 61_999  # a user who isn't root

_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Hostile(Class):
    """The class, and its grading's output and leftovers: processes, connections, a marker file."""

    status: int = -1
    said: str = ""
    left: tuple[str, ...] = ()  # processes that outlived the command
    accepted: int = 0  # connections of students to sockets of this machine
    daemon: str = "987654321"  # seconds that the daemon sleeps: tells it from any other

    @property
    def marker(self) -> Path:
        """A file that only code that escaped the sandbox could make."""
        return self.folder / "marker"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that use `hostile` in each class, and for each `attack` or `structure` in it."""
    if "hostile" not in metafunc.fixturenames:
        return
    for name, tables in (("attack", _TABLES), ("structure", (STRUCTURES,))):
        if name in metafunc.fixturenames:
            cases = [(room, case) for room in ROOMS for case in _of(room, tables)]
            parameters = [pytest.param(r, c, marks=_MARKS[r], id=f"{r}-{c.name}") for r, c in cases]
            metafunc.parametrize(["hostile", name], parameters, indirect=["hostile"])
            return
    parameters = [pytest.param(room, marks=_MARKS[room], id=room) for room in ROOMS]
    metafunc.parametrize("hostile", parameters, indirect=True)


_MARKS = {room: () if room == "quick" else pytest.mark.slow for room in ROOMS}


def _of(room: str, tables: Sequence[Sequence[Any]]) -> list[Any]:
    cases = [case for table in tables for case in table]
    return [case for case in cases if room != "quick" or case.name in QUICK]


@pytest.fixture(scope="session")
def graded() -> Iterator[Callable[[str], Hostile]]:
    """A function that grades a class on first use, once for all processes."""
    require_sandbox()
    rooms: dict[str, Hostile] = {}
    with ExitStack() as stack:

        def room_of(name: str) -> Hostile:
            if name not in rooms:
                rooms[name] = stack.enter_context(shared(name, partial(_graded, name)))
            return rooms[name]

        yield room_of


@pytest.fixture
def hostile(request: pytest.FixtureRequest, graded: Callable[[str], Hostile]) -> Hostile:
    """One of the classes after grading; as an ordinary user too, where root runs the tests."""
    if "user" in request.param and os.getuid() != 0:
        pytest.skip("the tests run as a user already")
    return graded(request.param)


def _graded(room_name: str, folder: Path) -> Hostile:
    room = Hostile(folder, course_copy(folder / "course"))
    (room.course / ".course_secret").write_text(SECRET)
    _hide_canaries(room.course / "solutions" / LAB05 / f"{LAB05}.ipynb")
    with _listening() as (listeners, port):
        _hand_in(room, room_name, port)
        around = _as_user(folder) if "user" in room_name else ()
        with _seeing_what_stays(room):
            done = room.grade(*LIMITS, environment={"TOKEN": CANARY}, around=around)
        room.accepted = sum(map(_accepts, listeners))
    room.status, room.said = done.returncode, done.stdout + done.stderr
    return room


@contextmanager
def _listening() -> Iterator[tuple[list[socket.socket], int]]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        port = server.getsockname()[1]
        local.bind(f"\0peakmem-hostile-{port}")  # several classes may be graded at one time
        local.listen()
        yield [server, local], port


def _hand_in(room: Hostile, room_name: str, port: int) -> None:
    room.hand_in("honest-a", solved())
    room.hand_in("honest-z", solved())
    room.hand_in("honest-half", _linear())
    room.hand_in("untouched", released())
    secret = room.course / ".course_secret"
    places = [secret, room.course, room.course / "solutions", room.out, room.out / "gradebook.db"]
    places += [room.out / "journal", room.submitted, room.submitted / "honest-a", room.folder]
    places += [Path(__file__), "/home", "/etc/shadow", "/etc/passwd", "/proc/sys/kernel"]
    for attack in _of(room_name, _TABLES):
        notebook = attack.notebook(
            places=[str(place) for place in places[:-1]],
            port=port,
            marker=room.marker,
            daemon=room.daemon,
        )
        room.hand_in(attack.name, notebook)
    for structure in _of(room_name, (STRUCTURES,)):
        room.hand_in(structure.name, structure.handed_in())
    for name, (content, _) in FILES.items():
        room.hand_in(name, content())
    room.hand_in("forged-marks", _forged_marks())
    for name in UNNAMED:
        room.hand_in(name, solved())
    _links(room)


def _hide_canaries(path: Path) -> None:
    """Put a canary into each solution and each hidden test of an instructor's notebook."""
    notebook = json.loads(path.read_bytes())
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if "### BEGIN" in source:
            cell["source"] = re.sub("(### BEGIN.*)", rf"\1\n# {HIDDEN}", source)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _linear() -> dict:
    """Correct, but with one run per sample: 3 of 4 points."""
    notebook = released()
    cell_of(notebook, "lab05-largest_micro_batch-solution")["source"] = (
        "def largest_micro_batch(run, upper):\n"
        "    for m in range(1, upper + 1):\n"
        "        try: run(m)\n"
        "        except peakmem.OutOfMemory: return m - 1\n"
        "    return upper\n"
    )
    return notebook


def _forged_marks() -> dict:
    """An unsolved notebook with changed points, ids, and the output of a passed grade cell."""
    notebook = released()
    grade = cell_of(notebook, "lab05-largest_micro_batch")
    grade["metadata"]["nbgrader"]["points"] = 4321
    grade["source"] = "4.0"
    grade["execution_count"] = 1
    score = {"text/plain": "4.0"}
    grade["outputs"] = [
        {"output_type": "execute_result", "execution_count": 1, "data": score, "metadata": {}}
    ]
    check = cell_of(notebook, "lab05-largest_micro_batch-check")
    check["metadata"]["nbgrader"] |= {"grade_id": "lab05-explain", "points": 2}
    answer = cell_of(notebook, "lab05-explain")
    answer["metadata"]["nbgrader"] |= {"grade_id": "lab05-largest_micro_batch", "points": 1e9}
    notebook["metadata"]["nbgrader"] = {"score": 4, "max_score": 4}
    return notebook


def _links(room: Hostile) -> None:
    """Submissions that aren't regular files."""
    peer = room.submitted / "honest-a"
    for name, target in (
        ("link-to-secret", room.course / ".course_secret"),
        ("link-to-peer", peer),
    ):
        path = room.submitted / name / LAB05 / f"{LAB05}.ipynb"
        path.parent.mkdir(parents=True)
        path.symlink_to(target if target.is_file() else peer / LAB05 / path.name)
    (room.submitted / "link-of-a-folder").symlink_to(peer)
    inner = room.submitted / "link-of-the-labs-folder"
    inner.mkdir()
    (inner / LAB05).symlink_to(peer / LAB05)
    pipe = room.submitted / "pipe" / LAB05 / f"{LAB05}.ipynb"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    hard = room.submitted / "hard-link" / LAB05 / f"{LAB05}.ipynb"
    hard.parent.mkdir(parents=True)
    twin = room.folder / "twin.ipynb"
    twin.write_bytes((peer / LAB05 / hard.name).read_bytes())
    hard.hardlink_to(twin)


@contextmanager
def _seeing_what_stays(room: Hostile) -> Iterator[None]:
    """Record the processes below this one that are left after the block.

    This process adopts orphans, instead of the system's process 1, so none is missed.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = set(_descendants())
    try:
        yield
    finally:
        # A browser that other tests keep open may start a process of its own meanwhile.
        fresh = [p for p in _descendants() if before.isdisjoint([p, *_parents(p)])]
        _, alive = psutil.wait_procs(fresh, timeout=120)
        room.left = tuple(str(process) for process in alive)
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _descendants() -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


def _parents(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.parents()
    except psutil.NoSuchProcess:
        return []


def _accepts(listener: socket.socket) -> bool:
    listener.setblocking(False)
    try:
        listener.accept()
    except BlockingIOError:
        return False
    return True


def _as_user(folder: Path) -> list[str]:
    """The prefix that runs a command as an ordinary user, who then owns `folder`.

    If Python or this repository is in a folder that only root may enter, the user gets a view of
    the file system in which that folder can be entered but holds nothing else.
    """
    for path in (folder, *folder.rglob("*")):
        os.chown(path, USER, USER, follow_symlinks=False)
    view = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
    needed = {Path(sys.base_prefix).resolve(), Path(sys.prefix), REPOSITORY}
    for top in sorted({folder for path in needed for folder in _closed_above(path)}):
        view += ["--perms", "0755", "--tmpfs", str(top)]
        for path in sorted(p for p in needed if p.is_relative_to(top)):
            for parent in reversed(path.relative_to(top).parents[:-1]):
                view += ["--perms", "0755", "--dir", str(top / parent)]
            view += ["--ro-bind", str(path), str(path)]
    given_up = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    caps = [
        word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")
    ]
    home = ["env", f"HOME={folder}", "PYTHONDONTWRITEBYTECODE=1"]
    return [*view, "--die-with-parent", *caps, "--", *given_up, "--bounding-set=-all", *home]


def _closed_above(path: Path) -> list[Path]:
    """The topmost folder above `path` that others may not enter, if there is one."""
    closed = [folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001]
    return closed[:1]
