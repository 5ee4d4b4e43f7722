"""Attacks on the replies: answers, their number, and the shell that asks for them."""

from __future__ import annotations

from tests.hostile.attack import FRAME, Attack

__all__ = ["ANSWERS"]

_ONE = "def largest_micro_batch(run, upper): return 1"

ANSWERS = [
    Attack("negative", "def largest_micro_batch(run, upper): return -1", 0, "but got -1"),
    Attack("infinite", "def largest_micro_batch(run, upper): return float('inf')", 0, "got inf"),
    Attack(
        "never",
        "import time\ndef largest_micro_batch(run, upper): time.sleep(10**6)",
        points=0,
        says="Your code (raised TimeLimit|ran for over)",
    ),
    Attack(
        "answers-twice",
        """
import sys
def largest_micro_batch(run, upper):
    frame = sys._getframe()
    while "request" not in frame.f_locals or "connection" not in frame.f_locals:
        frame = frame.f_back
    reply = {"id": frame.f_locals["request"]["id"], "value": ("value", 1)}
    for _ in range(2): frame.f_globals["send"](frame.f_locals["connection"], reply)
    return 1
""",
        points=0,
    ),
    Attack(
        "array-of-objects",
        """
import numpy
class Run:
    def __reduce__(self): return __import__("os").system, ("touch {marker}",)
# %%
def largest_micro_batch(run, upper): return numpy.array([Run(), 1], dtype=object)
""",
        points=0,
        says="a value of type Run is not plain data",
    ),
    Attack(
        "object-array-on-the-wire",
        """
import os, pickle
class Run:
    def __reduce__(self): return os.system, ("touch {marker}",)
# %%
def largest_micro_batch(run, upper):
    pickled = pickle.dumps(Run()).ljust(256)
    body = b'{"array": ["|O", "C", [32]]}' + bytes([10]) + pickled
    for fd in range(3, 64):
        try: os.write(fd, len(body).to_bytes(8, "big") + body)
        except OSError: pass
""",
        points=0,
        says="couldn't be accepted",
    ),
    Attack(
        "deletes-asserts",
        """
import ast
class NoAsserts(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
    def visit_Raise(self, node): return ast.Pass()
get_ipython().ast_transformers.append(NoAsserts())
# %%
"""
        + _ONE,
        points=0,
        says="expected",
    ),
    Attack(
        "rewrites-cells",
        """
def rewrite(lines): return ["4.0\\n"]
get_ipython().input_transformers_post.append(rewrite)
get_ipython().input_transformers_cleanup.append(rewrite)
""",
        points=0,  # its own cells are no longer code, the solution's among them
        says="not defined|defined nothing",
    ),
    Attack(
        "patches-the-shell",
        """
shell = get_ipython()
async def run_cell_async(*args, **kwargs): return 4.0
type(shell).run_cell_async = run_cell_async
type(shell).run_cell = lambda *args, **kwargs: 4.0
""",
        points=0,  # the solution was not run
        says="not defined|defined nothing",
    ),
    Attack(
        "listens-to-cells",
        """
import linecache
heard = []
get_ipython().events.register("pre_run_cell", lambda info: heard.append(str(info.raw_cell)))
# %%
def largest_micro_batch(run, upper):
    sources = [*heard, *map(str, In), *("".join(entry[2]) for entry in linecache.cache.values()
                                      if len(entry) > 2 and entry[2])]
    words = ("from autograder.grading.stock", "autograder" + ".content", "_micro_batch_" + "cases")
    for source in sources:
        for word in words:
            if word in source and "words =" not in source:
                raise ValueError(f"REACHED {word}")
    return 1
""",
        points=0,
        says="expected",
    ),
    Attack(
        "shadow-modules",
        """
import os, sys
for folder in (os.getcwd(), os.path.expanduser("~"), "/tmp", *sys.path):
    for name in ("numpy", "sitecustomize", "usercustomize", "peakmem", "autograder", "json"):
        try:
            with open(os.path.join(folder, name + ".py"), "w") as file:
                file.write("allclose = isclose = array_equal = lambda *a, **k: True\\n")
        except OSError: pass
# %%
"""
        + _ONE,
        points=0,
        says="expected",
    ),
    Attack(
        "rows-of-nothing",
        "import numpy\ndef largest_micro_batch(run, upper): return numpy.zeros((2**40, 0))",
        points=0,
        says="more than 1,048,576 rows",
    ),
    Attack(
        "rows-of-nothing-on-the-wire",
        FRAME
        + """
# %%
def largest_micro_batch(run, upper):
    to_grader(frame(b'{"array": ["<f8", "C", [1099511627776, 0]]}\\n'))
""",
        points=0,
        says="couldn't be accepted",
    ),
    Attack(
        "subclasses-of-plain-types",
        """
class Text(str):
    def __str__(self): return "4"
    def __repr__(self): raise SystemExit
class Number(float):
    def __float__(self): return 4.0
    def __eq__(self, other): return True
    def __repr__(self): raise SystemExit
    __hash__ = float.__hash__
def largest_micro_batch(run, upper): return Number(1.5)
""",
        points=0,
        says="but got 1.5",
    ),
    Attack(
        "lies-about-its-class",
        """
class Lie:
    __class__ = property(lambda self: int)
    def __int__(self): return 4
    def __index__(self): return 4
def largest_micro_batch(run, upper): return Lie()
""",
        points=0,
        says="isn't an answer|raised",
    ),
    Attack(
        "endless-tuple",
        """
class Endless(tuple):
    def __iter__(self):
        while True: yield 1
def largest_micro_batch(run, upper): return Endless()
""",
        points=0,
        says="isn't an answer|raised|stopped|ended",
    ),
    Attack(
        "keys-of-nan",
        """
def largest_micro_batch(run, upper):
    keys = {float("nan"): n for n in range(900)}
    return {(1, 2): keys, "id": 4, b"value": 4, None: float("inf")}
""",
        points=0,
        says="but got",
    ),
    Attack(
        "memory-view",
        "def largest_micro_batch(run, upper): return memoryview(bytes(8))",
        points=0,
        says="a value of type memoryview",
    ),
    Attack(
        "exception-that-cannot-be-told",
        """
class Evil(Exception):
    def __str__(self): raise SystemExit(4)
    __repr__ = __str__
def largest_micro_batch(run, upper): raise Evil
""",
        points=0,
        says="isn't an answer|ended",
    ),
    Attack(
        "exception-without-end",
        """
class Evil(Exception):
    def __str__(self):
        while True: pass
def largest_micro_batch(run, upper): raise Evil
""",
        points=0,
        says="ran for over",
    ),
    Attack(
        "forged-exception",
        """
import sys
def largest_micro_batch(run, upper):
    frame = sys._getframe()
    while "_become_shell" not in frame.f_globals: frame = frame.f_back
    frame.f_globals["describe"] = lambda error: (1 << 10**5, [["x"]], {"a": "b"})
    raise ValueError
""",
        points=0,
        says="Your code raised",
    ),
    Attack(
        "a-byte-now-and-then",
        FRAME
        + """
import signal, time
# %%
def largest_micro_batch(run, upper):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    to_grader((10**6).to_bytes(8, "big"))
    while True:
        to_grader(b"x")
        time.sleep(0.1)
""",
        points=0,
        says="ran for over",
    ),
    Attack(
        "traces-all-calls",
        """
import sys, threading
def trace(frame, event, argument):
    for name in ("secret", "expected", "fits", "judge", "_micro_batch_cases"):
        if name in frame.f_locals: print("REACHED", name, frame.f_locals[name])
    return trace
sys.settrace(trace); sys.setprofile(trace); threading.settrace(trace)
# %%
def largest_micro_batch(run, upper): return 1
""",
        points=0,
        says="expected",
    ),
    Attack(
        "forged-outcomes",
        """
from importlib import import_module  # hides from the search for changes of the library
probe = import_module("peakmem.probes.lab05.micro_batches")
said = "\\n=4+4" + chr(0xD800) + chr(27) + "[2J" + "x" * 10**6
probe.call_each = lambda function, calls: [("raised", said, said)] * len(calls)
""",
        points=4,  # another exercise's outcomes are forged
    ),
    Attack(
        "a-thread-that-stays",
        FRAME
        + """
import threading, time
def forge():
    for number in range(10**6):
        time.sleep(0.001)
        to_grader(frame({"id": number, "value": ("value", number)}))
threading.Thread(target=forge, daemon=True).start()
# %%
"""
        + _ONE,
        points=0,
    ),
]
