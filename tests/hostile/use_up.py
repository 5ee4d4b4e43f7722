"""Attacks on the machine: time, memory, processes, output. The class runs with small limits."""

from __future__ import annotations

from tests.hostile.attack import Attack

__all__ = ["USE_UP"]

USE_UP = [
    Attack(
        "endless-loop-that-catches-all",
        """
import signal
def endless():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # which lasts for one cell
    while True:
        try:
            while True: pass
        except BaseException: pass
# %%
endless()
""",
        points=4,  # the cell is left out, and the honest solution is run without it
        shows="Your code ran for over 3 s and was stopped.",
    ),
    Attack("sleeper", "import time; time.sleep(10**6)", 4, shows="TimeLimit"),
    Attack(
        "memory-bomb",
        "blocks = []\nwhile True: blocks.append(bytearray(2**27))",
        points=4,
        shows="MemoryError",
    ),
    Attack(
        "memory-bomb-of-many-processes",
        """
import os, time
for _ in range(12):
    if os.fork() == 0:
        block = bytearray(200 << 20)
        block[::4096] = b"x" * (len(block) // 4096)
        time.sleep(60)
time.sleep(60)
""",
        points=4,
        shows="GiB of memory and was stopped|ran for over 3 s|TimeLimit",
    ),
    Attack(
        "memory-bomb-in-shm",
        """
for folder in ("/dev/shm", "/tmp"):
    try:
        with open(f"{folder}/big", "wb") as file:
            for _ in range(2**10): file.write(bytes(2**20))
        print("REACHED a GiB in", folder)
    except OSError as error:
        print(error)
""",
        points=4,
        shows="No space left on device",
    ),
    Attack(
        "fork-bomb",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        points=4,
        shows="was stopped|used up its time",
    ),
    Attack(
        "threads",
        """
import threading, time
for _ in range(10**5): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
""",
        points=4,
        shows="RuntimeError",
    ),
    Attack("exit-in-a-cell", "import os; os._exit(0)", 4, shows="Your code ended its own process"),
    Attack(
        "crash-in-a-cell", "import ctypes; ctypes.string_at(0)", 4, shows="ended its own process"
    ),
    Attack(
        "exit-in-the-function",
        "import os\ndef largest_micro_batch(run, upper): os._exit(0)",
        points=0,
        says="Your code ended its own process",
    ),
    Attack(
        "polite-exit-in-the-function",
        "import sys\ndef largest_micro_batch(run, upper): sys.exit(0)",
        points=0,
        says="Your code raised SystemExit",
    ),
    Attack(
        "output-flood",
        """
import os
for _ in range(10**4): print("flood" * 200)
for _ in range(10**3): os.write(1, b"x" * 10**4)
""",
        points=4,
        shows="the output is cut",
    ),
    Attack(
        "daemon",
        """
import os, signal, subprocess
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        subprocess.Popen(["sleep", "{daemon}"], start_new_session=True)
    os._exit(0)
""",
        points=4,
    ),
    Attack(
        "crashes-in-many-cells",
        "\n# %%\n".join(["import ctypes; ctypes.string_at(0)"] * 12),
        points=4,
        shows="ended its own process",
    ),
    Attack(
        "recursion-without-end",
        """
import sys
sys.setrecursionlimit(10**9)
def largest_micro_batch(run, upper):
    nest = []
    for _ in range(10**6): nest = [nest]
    return repr(nest)
""",
        points=0,
        says="ended its own process|Your code raised",
    ),
    Attack("code-nested-too-deep", "def f(x): return x" + ".a" * 60_000, 4, shows="RecursionError"),
    Attack(
        "displays-without-end",
        "for n in range(10**5): display(n)",
        points=4,
    ),
]
