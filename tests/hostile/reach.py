"""Attacks that look for the grader's secrets. `{places}` are the paths of such secrets."""

from __future__ import annotations

from tests.hostile.attack import Attack

__all__ = ["REACH"]

REACH = [
    Attack(
        "reads-the-graders-files",
        """
import os
for place in {places}:
    try:
        print("REACHED", place, os.listdir(place) if os.path.isdir(place) else open(place).read())
    except OSError:
        pass
""",
        points=4,
    ),
    Attack(
        "searches-the-disk",
        """
import os
wanted = {"solutions", "gradebook.db", ".course_secret", "journal", "tasks", "submitted", "bank"}
for folder, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if f not in ("proc", "sys", "usr", "packages")]
    for name in wanted & {*folders, *files}:
        print("REACHED", folder, name)
    if folder.endswith(("/autograder", "/peakmem")):
        for name in files:
            if "largest_micro_batch_cases" in open(os.path.join(folder, name)).read():
                print("REACHED", folder, name)
""",
        points=4,
    ),
    Attack(
        "imports-the-grader",
        """
for name in ("autograder.content.lab05", "autograder.store.journal", "solutions"):
    try:
        __import__(name)
        print("REACHED", name)
    except ImportError:
        pass
""",
        points=4,
    ),
    Attack(
        "reads-the-graders-processes",
        """
import glob, os
for path in glob.glob("/proc/[0-9]*/*"):
    if os.path.basename(path) in ("environ", "cmdline", "maps", "mem"):
        try:
            text = open(path, "rb").read(10**6)
        except (OSError, ValueError):
            continue
        if b"canary-in-the-environment" in text or b"--submitted" in text:
            print("REACHED", path)
print("processes:", [p for p in os.listdir("/proc") if p.isdigit()])
""",
        points=4,
        shows=r"processes: \['1'\]",
    ),
    Attack(
        "kills-the-grader",
        """
import os, signal
for pid in [-1, *range(2, 70000)]:
    try:
        os.kill(pid, signal.SIGKILL)
        if pid > 1: print("REACHED", pid)
    except OSError:
        pass
""",
        points=4,
    ),
    Attack(
        "socket",
        """
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_INET, ("8.8.8.8", 53)),
                        (socket.AF_UNIX, "\\0peakmem-hostile-{port}")):
    try:
        socket.socket(family).connect(address)
        print("REACHED", address)
    except OSError:
        pass
""",
        points=4,
    ),
    Attack(
        "leaves-a-letter",
        """
import os
for folder in ("/tmp", "/dev/shm", "/dev/mqueue", os.path.expanduser("~"), "/var/tmp", "/run"):
    try:
        if "letter" in os.listdir(folder): print("REACHED", folder)
        open(f"{folder}/letter", "w").write("4")
    except OSError:
        pass
try:
    import sysv_ipc
except ImportError:
    import ctypes
    shared = ctypes.CDLL(None).shmget(0x5EED, 4096, 0o1666 | 0o1000)
    if shared < 0: print("no shared memory")
""",
        points=4,
    ),
    Attack(
        "writes-everywhere",
        """
import os
own = ("/tmp", "/dev/shm", "/var/tmp", "/dev/mqueue", "/run/lock")  # empty for the next student
for folder, folders, _ in os.walk("/"):
    folders[:] = [f for f in folders if f not in ("proc", "sys", "usr", "packages")]
    try: open(os.path.join(folder, "colorsys.py"), "w").close()
    except OSError: continue
    if not folder.startswith(own): print("REACHED", folder)
""",
        points=4,
    ),
]
