"""Runs in the container: reports a student's process, and the fate of everything it leaves.

Prints one JSON object of facts, for the test that judges them.
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from autograder.sandbox.guest.uid import processes_of
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.uid_isolation import UserEnclosure, UserIds
from autograder.sandbox.host.user_ids import readable_by

BASE = Path("/autograder")
SECRETS = tuple(BASE / name for name in ("source", "submission", "results", "grader"))
PLACES = ("/tmp/letter", "/var/tmp/letter", "/dev/shm/letter")

DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
os.wait()
for place in {places}:
    os.makedirs(place + "/" + "deep/" * 30)
    open(place + "/deep/file", "w").write("x" * 1000)
"""


def main() -> None:
    for place in SECRETS:
        place.chmod(0o700)
    facts = {}
    with Sandbox(("peakmem.specs.models",), backend=UserIds(SECRETS)) as sandbox:
        with sandbox.open() as student:
            facts["status"] = Path(f"/proc/{student._pid}/status").read_text()
            facts["user"], facts["home"] = student._enclosure.user, str(student._enclosure.home)
            facts["own"] = said(student, "import os; print(os.getresuid(), os.getgroups())")
            facts["open"] = said(student, "print(sorted(map(int, os.listdir('/proc/self/fd'))))")
            facts["hidden"] = said(student, "import peakmem.specs.models")
            facts["there"] = said(student, "import peakmem.units; print(peakmem.units.__name__)")
            student.run_cell(DAEMON.replace("{places}", repr(PLACES)))
            facts["daemons_before"] = len(processes_of(student._enclosure.user)) - 1
            facts["files_before"] = [p for p in PLACES if Path(p).exists()]
        facts["processes_after"] = processes_of(student._enclosure.user)
        facts["files_after"] = [p for p in PLACES if Path(p).exists()]
        facts["home_after"] = student._enclosure.home.exists()
        with sandbox.open() as other:
            facts["other_user"] = other._enclosure.user
        facts["exec"] = after_exec(sandbox)
        UserEnclosure.is_same = lambda self: True
        facts["exec_unseen"] = after_exec(sandbox)
    facts["grader_dies"] = grader_dies()
    # The guards that have to be able to fail.
    user = facts["user"]
    facts["readable"] = list(map(str, readable_by(user, [Path("/usr"), BASE / "source"])))
    (BASE / "source").chmod(0o755)
    try:
        Sandbox(backend=UserIds(SECRETS))
    except IsolationError as error:
        facts["refused"] = str(error)
    (BASE / "source").chmod(0o711)  # its names cannot be listed, but guessed
    facts["guessable"] = list(map(str, readable_by(user, [BASE / "source"])))
    print(json.dumps(facts))


def said(student, source: str) -> str:
    return json.dumps(student.run_cell(source))


REPLACED = """
import os, stat, sys
def largest_micro_batch(run, upper):
    frame = sys._getframe()
    while "request" not in frame.f_locals: frame = frame.f_back
    fd = next(n for n in range(3, 256) if is_socket(n))
    os.set_inheritable(fd, True)
    made = code.format(path=sys.path, fd=fd, number=frame.f_locals["request"]["id"])
    os.execv(sys.executable, [sys.executable, "-c", made])
"""
IMPOSTOR = """
import socket, sys
sys.path[:0] = {path!r}
from autograder.sandbox.guest.wire import receive, send
connection = socket.socket(fileno={fd})
open("/proc/self/clear_refs", "w").write("5")
send(connection, dict(id={number}, value=4))
receive(connection)
"""
IS_SOCKET = """
import os, stat
def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False
"""


def after_exec(sandbox) -> str:
    """The fate of a process that replaces itself with another program, to answer in its name."""
    with sandbox.open() as student:
        student.run_cell(f"{IS_SOCKET}\ncode = {IMPOSTOR!r}\n{REPLACED}")
        answer = student.run("peakmem.probes.lab05:largest_micro_batch", {"upper": 4})
        return answer.lost or f"answered {answer.value}"


def grader_dies() -> list[int]:
    """The remains of a submission whose grader is killed while grading it."""
    if "die" in sys.argv:
        sandbox = Sandbox(backend=UserIds())
        student = sandbox.open()
        student.run_cell(DAEMON.replace("{places}", repr(PLACES)))
        print(student._enclosure.user, student._pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    command = [sys.executable, "-s", "-P", "-c", sys.orig_argv[-1], "die"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    user, _ = map(int, done.stdout.split())
    guards = [os.pidfd_open(pid) for pid in guards_of_the_dead()]
    for guard in guards:
        select.select([guard], [], [], 30)
    return processes_of(user)


def guards_of_the_dead() -> list[int]:
    """Processes of the prepared kind whose grader is gone."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if b"autograder.sandbox.guest.server" in path.read_bytes():
            found.append(int(path.parent.name))
    return found


if __name__ == "__main__":
    if "die" in sys.argv:
        grader_dies()
    main()
