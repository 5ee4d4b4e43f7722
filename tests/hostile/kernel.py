"""Attacks on the system below: memory, sockets and processes other than a notebook's own."""

from __future__ import annotations

from tests.hostile.attack import Attack

__all__ = ["KERNEL"]

KERNEL = [
    Attack(
        "memory-of-no-process",
        """
import ctypes, os
libc = ctypes.CDLL(None)
held = []
for _ in range(8):
    try: held.append(os.memfd_create("hoard"))
    except OSError: break
    os.write(held[-1], bytes(2**20))
if held: print("REACHED", len(held), "memory files")
if libc.shmget(0, 2**20, 0o1600) >= 0: print("REACHED System V memory")
""",
        points=4,
    ),
    Attack(
        "lets-go-of-shared-memory",
        """
import mmap
try:
    block = mmap.mmap(-1, 2**28)
    for start in range(0, 2**28, 2**20):
        block.write(b"x" * 2**20)
        block.madvise(mmap.MADV_DONTNEED, start, 2**20)  # it is there still, in no process
    print("REACHED 256 MiB")
except OSError: pass
block = mmap.mmap(-1, 2**20, flags=mmap.MAP_PRIVATE)
for advice in (20, 21):  # MADV_COLD, MADV_PAGEOUT
    try: print("REACHED swap", block.madvise(advice))
    except OSError: pass
""",
        points=4,
    ),
    Attack(
        "hoards-in-dev",
        """
import os
if "letter" in os.listdir("/dev"): print("REACHED a letter")
try:
    with open("/dev/letter", "wb") as file: file.write(bytes(2**20))
    print("REACHED /dev")
except OSError as error: print(error)
""",
        points=4,
        shows="Read-only file system",
    ),
    Attack(
        "reads-letters-in-dev",
        "import os\nprint('REACHED' if 'letter' in os.listdir('/dev') else 'none')",
        points=4,
        shows="none",
    ),
    Attack(
        "keyring",
        """
import ctypes
libc = ctypes.CDLL(None)
for number in (248, 217):  # add_key on x86-64 and on ARM
    for ring in (-3, -4, -5):
        if libc.syscall(number, b"user", b"letter", b"4", 1, ctypes.c_int(ring)) > 0:
            print("REACHED", ring)
""",
        points=4,
    ),
    Attack(
        "other-sockets",
        """
import socket
for family in ("AF_VSOCK", "AF_NETLINK", "AF_PACKET", "AF_ALG"):
    try:
        socket.socket(getattr(socket, family), socket.SOCK_RAW).close()
        print("REACHED", family)
    except OSError: pass
""",
        points=4,
    ),
    Attack(
        "name-lookup",
        """
import socket
for name in ("example.com", "localhost.localdomain"):
    try: print("REACHED", socket.getaddrinfo(name, 80))
    except OSError: pass
""",
        points=4,
    ),
    Attack(
        "scheduler",
        """
import socket
for port in (8786, 8787, {port}):
    for host in ("127.0.0.1", "::1", "10.0.2.2", "172.17.0.1", "169.254.169.254"):
        try:
            socket.create_connection((host, port), timeout=0.1)
            print("REACHED", host, port)
        except OSError: pass
""",
        points=4,
    ),
    Attack(
        "nested-namespaces",
        """
import ctypes, os, subprocess
libc = ctypes.CDLL(None)
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000):
    if libc.unshare(flag | 0x10000000) == 0: print("REACHED", hex(flag))
for command in (["unshare", "-Ur", "id"], ["bwrap", "--bind", "/", "/", "id"], ["su", "-c", "id"]):
    try:
        if subprocess.run(command, capture_output=True, timeout=2).returncode == 0:
            print("REACHED", command)
    except OSError: pass
""",
        points=4,
    ),
    Attack(
        "ptrace",
        """
import ctypes, os
libc = ctypes.CDLL(None)
for pid in (1, os.getppid(), os.getpid()):
    if libc.ptrace(16, pid, 0, 0) == 0: print("REACHED", pid)
if libc.ptrace(0, 0, 0, 0) == 0: print("REACHED itself")
""",
        points=4,
    ),
    Attack(
        "stops-itself",
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGSTOP)\n"
        "def largest_micro_batch(run, upper):\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    if os.fork() == 0:\n"
        "        os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    return 1",
        points=0,
    ),
    Attack(
        "sleeps-as-if-for-the-disk",
        """
import ctypes, signal
libc = ctypes.CDLL(None)
libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
# %%
signal.signal(signal.SIGALRM, signal.SIG_IGN)
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.addressof(stack) + (1 << 16) - 64 & ~63
libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, 0x4111, None)  # VFORK, VM, SIGCHLD
""",
        points=4,  # the cell is left out, and the honest solution is run without it
        shows="Your code ran for over 3 s and was stopped.",
    ),
    Attack(
        "disk-flood",
        """
import os
os.makedirs("/tmp/flood", exist_ok=True)
try:
    for n in range(10**4):
        with open(f"/tmp/flood/{n}", "wb") as file: file.write(bytes(2**18))
    print("REACHED 2.6 GB")
except OSError as error: print(error)
""",
        points=4,
        shows="No space left on device",
    ),
    Attack(
        "inode-flood",
        """
import os
try:
    for n in range(10**5): os.mkdir(f"/tmp/{n}")
    print("REACHED")
except OSError as error: print(error)
""",
        points=4,
        shows="No space left on device",
    ),
    Attack(
        "memory-in-threads",
        """
import threading, time
def hoard():
    block = bytearray(2**28)
    block[::4096] = b"x" * (len(block) // 4096)
    time.sleep(60)
threads = [threading.Thread(target=hoard) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
        points=4,
        shows="MemoryError|was stopped|TimeLimit",
    ),
    Attack(
        "crowds-the-processors",
        """
import os
try: os.sched_setaffinity(0, range(os.cpu_count()))
except OSError: pass
print("REACHED" if len(os.sched_getaffinity(0)) > 1 else "one processor")
for _ in range(8):
    if os.fork() == 0:
        while True: pass
# %%
def largest_micro_batch(run, upper): return 1
""",
        points=0,
        shows="one processor",
    ),
    Attack(
        "goes-before-others",
        """
import ctypes, os, resource
for what in (lambda: os.nice(-5), lambda: os.sched_setscheduler(0, 1, os.sched_param(9)),
             lambda: resource.setrlimit(resource.RLIMIT_NPROC, (999, 999)),
             lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1))):
    try: print("REACHED", what())
    except (OSError, ValueError): pass
""",
        points=4,
    ),
    Attack(
        "hoards-handles",
        """
import ctypes, os
libc, held = ctypes.CDLL(None), []
try:
    while True: held += [*os.openpty(), *os.pipe(), os.eventfd(9)]
except OSError as error: print(error)
if os.fork() == 0:
    while True: libc.inotify_init()
for fd in held: os.close(fd)
""",
        points=4,
        shows="Too many open files",
    ),
    Attack(
        "locks-and-watches",
        """
import ctypes, fcntl, os, struct
libc = ctypes.CDLL(None)
try:
    with open("/tmp/locked", "wb") as file:
        for n in range(10**6): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * n)
    print("REACHED locks")
except OSError: pass
try:
    file = open("/tmp/also-locked", "wb")
    for n in range(10**6): fcntl.fcntl(file, 37, struct.pack("hhqqi4x", 1, 0, 2 * n, 1, 0))
    print("REACHED locks of open files")
except OSError: pass
for place in ("/usr/bin/env", "/tmp/also-locked"):  # the first is everybody's
    with open(place) as first, open(place) as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        try: fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError: print("REACHED a lock of", place)
place = ctypes.c_void_p()
if libc.inotify_init() >= 0 or libc.inotify_init1(0) >= 0: print("REACHED watches")
if libc.timer_create(1, None, ctypes.byref(place)) == 0: print("REACHED timers")
if libc.prctl(78, 1, 1 << 20, 0, 0) == 0: print("REACHED tables of futexes")
""",
        points=4,
    ),
    Attack(
        "sockets-that-wait",
        """
import socket
try:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("/tmp/listener")
    listener.listen(4096)
    for _ in range(4096):
        caller = socket.socket(socket.AF_UNIX)
        caller.setblocking(False)
        caller.connect("/tmp/listener")
        try:
            while True: caller.send(bytes(2**16))
        except BlockingIOError: caller.close()
    print("REACHED")
except OSError as error: print(error)
""",
        points=4,
        shows="Function not implemented",
    ),
    Attack(
        "sockets-of-many-processes",
        """
import os, socket, time
for _ in range(60):
    if os.fork() == 0:
        held = [socket.socketpair() for _ in range(110)]
        for pair in held:
            for end in pair:
                end.setblocking(False)
                try:
                    while True: end.send(bytes(2**16))
                except BlockingIOError: pass
        time.sleep(600)
while True: time.sleep(0.1)
# %%
def largest_micro_batch(run, upper): return 1
""",
        points=0,
        shows="more than 1.0 GiB of memory",
    ),
]
