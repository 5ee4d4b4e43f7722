"""The kernel's own memory: requests refused to a submission, and those allowed to honest code."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from autograder.base import memory
from autograder.base.limits import Limits, ProcessLost
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent
from autograder.sandbox.host.unprotected import Unprotected

pytestmark = pytest.mark.sandbox
MIB = 2**20
LIMITS = Limits(cell_seconds=60, submission_seconds=600, memory_bytes=256 * MIB)

TRY = """
import ctypes, errno, fcntl, os, signal, socket, struct, tempfile
libc = ctypes.CDLL(None, use_errno=True)
def had(result):
    if result < 0: raise OSError(ctypes.get_errno(), "")
def tried(call):
    try: call()
    except OSError as error: return errno.errorcode[error.errno]
    return "had"
# Its own: the kernel ends a process that watches a folder, when another changes a file in it.
folder = tempfile.TemporaryDirectory()
def within(name): return open(os.path.join(folder.name, name), "w+b")
file = within("file-of-locks")
place = ctypes.c_void_p()
lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0)
ours, theirs = socket.socketpair()
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = struct.pack("HP", 1, ctypes.addressof(code))
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"\\0listener-{os.getpid()}")
allow = struct.pack("I", 0x7FFF0000)  # the kernel is only asked whether it knows this action
x86 = os.uname().machine == "x86_64"
libc.mmap.restype = ctypes.c_void_p
page = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, 0))
def removed(number, *control):
    had(number)
    libc[control[0]](number, *control[1:])
"""

# Each requests one unit of a resource that is otherwise unlimited.
HOARDS = {
    "F_SETLK": "fcntl.fcntl(file, 6, lock)",
    "F_SETLKW": "fcntl.fcntl(file, 7, lock)",
    "lockf": "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 7)",
    "F_OFD_SETLK": "fcntl.fcntl(within('lock-37'), 37, lock)",
    "F_OFD_SETLKW": "fcntl.fcntl(within('lock-38'), 38, lock)",
    "F_SETLEASE": "fcntl.fcntl(within('leased'), 1024, fcntl.F_WRLCK)",
    "F_NOTIFY": "fcntl.fcntl(os.open(folder.name, os.O_RDONLY), 1026, 2)",
    "inotify_init": "had(libc.inotify_init())",
    "inotify_init1": "had(libc.inotify_init1(0))",
    "POSIX timers": "had(libc.timer_create(1, None, ctypes.byref(place)))",
    "sockets that wait": "listener.listen(4096)",
    "filters of sockets": "ours.setsockopt(socket.SOL_SOCKET, 26, program)",
    "landlock": "had(libc.syscall(444, struct.pack('Q', 1), 8, 0))",
    "System V memory": "removed(libc.shmget(0, 4096, 0o1600), 'shmctl', 0, None)",
    "System V messages": "removed(libc.msgget(0, 0o1600), 'msgctl', 0, None)",
    "System V semaphores": "removed(libc.semget(0, 1, 0o1600), 'semctl', 0, 0, None)",
    "POSIX messages": "had(libc.mq_open(b'/some', 0o102, 0o600, None)) or libc.mq_unlink(b'/some')",
    "memory files": "os.memfd_create('some')",
    "more filters of calls": "had(libc.syscall(317 if x86 else 277, 2, 0, allow))",
}
# Calls that a kernel may lack or refuse to everyone; a filter refuses them elsewhere.
RARE = {
    "futex tables": "had(libc.prctl(78, 1, 16, 0, 0))",
    "landlock": HOARDS["landlock"],
    "names of mappings": "had(libc.prctl(0x53564D41, 0, page, ctypes.c_size_t(4096), b'a name'))",
    "rings": "had(libc.syscall(425, 1, ctypes.create_string_buffer(120)))",
    "keys": "had(libc.syscall(248 if x86 else 217, b'user', b'some', b'7', 1, -3))",
    "secret memory": "had(libc.syscall(447, 0))",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=LIMITS) as prepared:
        yield prepared


@pytest.fixture
def student(sandbox: Sandbox) -> Iterator[SandboxStudent]:
    with sandbox.open() as opened:
        yield opened


def printed(student: SandboxStudent, source: str) -> str:
    outputs = student.run_cell(source)
    return "".join(o.get("text") or o.get("evalue") or "" for o in outputs)


def told(student: SandboxStudent, hoards: dict[str, str]) -> dict[str, str]:
    student.run_cell(TRY)
    found = {
        name: printed(student, f"print(tried(lambda: {call}))").strip()
        for name, call in hoards.items()
    }
    student.run_cell("folder.cleanup()")
    return found


def test_memory_of_the_kernels_own_is_refused(student: SandboxStudent) -> None:
    assert told(student, HOARDS | RARE) == dict.fromkeys(HOARDS | RARE, "ENOSYS")


def test_outside_the_same_is_to_be_had() -> None:
    # Shows that the test above would notice a filter that lets it through.
    with Sandbox(limits=LIMITS, backend=Unprotected(), preload=()) as bare, bare.open() as student:
        found = told(student, {name: call for name, call in HOARDS.items() if name not in RARE})
    assert found == dict.fromkeys(found, "had")


SIGNALS = """
import ctypes, os, signal
libc, sent = ctypes.CDLL(None), 0
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
while sent < 2000 and libc.sigqueue(os.getpid(), 40, None) == 0: sent += 1
print(sent)
"""


def test_signals_that_wait_are_few(student: SandboxStudent) -> None:
    assert int(printed(student, SIGNALS)) <= 256


def test_outside_more_of_them_wait() -> None:
    with Sandbox(limits=LIMITS, backend=Unprotected(), preload=()) as bare, bare.open() as student:
        assert int(printed(student, SIGNALS)) == 2000


# Far fewer bytes than the limit are mapped, and each socket is empty: their capacity counts.
PAIRS = """
import os, socket, time
def hoard():
    held = [socket.socketpair() for _ in range(110)]
    os.write(there, b".")
    time.sleep(600)
ready, there = os.pipe()
for _ in range(4): os.fork() or hoard()
for _ in range(4): os.read(ready, 1)
"""


def test_sockets_count_as_what_they_can_hold(student: SandboxStudent) -> None:
    with pytest.raises(ProcessLost, match=r"more than 0\.2 GiB of memory"):
        student.run_cell(f"{PAIRS}while True: time.sleep(0.01)")


def test_a_watch_that_counts_no_sockets_would_let_them_be(
    student: SandboxStudent, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(memory, "_socket_bytes", lambda _: 0)
        assert printed(student, f"{PAIRS}print('had them')") == "had them\n"
        assert not student._conversation._memory.exceeded()
    assert student._conversation._memory.exceeded()


def test_the_graders_own_sockets_count_in_no_submission() -> None:
    assert memory._socket_bytes(os.getpid()) == 0


HONEST = {
    "SQLite on disk": """
import sqlite3
with sqlite3.connect("/tmp/some.db") as db:
    db.execute("create table some (x)")
    db.execute("insert into some values (7)")
print(sqlite3.connect("/tmp/some.db").execute("select x from some").fetchone()[0])
""",
    "asyncio": "import asyncio\nprint(await asyncio.sleep(0, 7))",
    "asyncio in a thread": """
import asyncio, threading
thread = threading.Thread(target=lambda: print(asyncio.run(asyncio.sleep(0, 7))))
thread.start(); thread.join()
""",
    "multiprocessing": """
import multiprocessing
queue, lock = multiprocessing.Queue(), multiprocessing.Lock()
def work():
    with lock: queue.put(7)
child = multiprocessing.Process(target=work)
child.start(); print(queue.get()); child.join()
""",
    "files of numpy and torch": """
import numpy, torch
numpy.savez("/tmp/some.npz", x=numpy.full(1, 7)); torch.save(7, "/tmp/some.pt")
window = numpy.memmap("/tmp/some", mode="w+", shape=1); window[:] = 7; window.flush()
assert numpy.load("/tmp/some.npz")["x"] == 7 and torch.load("/tmp/some.pt") == 7
print(window[0])
""",
    "alarms": "import signal\nprint(7 + int(signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0]))",
    "flock": "import fcntl\nfcntl.flock(open('/tmp/some', 'w'), fcntl.LOCK_EX); print(7)",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_honest_code_does_without(student: SandboxStudent, source: str) -> None:
    assert printed(student, source) == "7\n"
