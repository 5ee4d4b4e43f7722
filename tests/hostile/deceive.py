"""Attacks on judging: deceptive answers and messages."""

from __future__ import annotations

from tests.hostile.attack import FRAME, Attack

__all__ = ["DECEIVE"]

DECEIVE = [
    Attack(
        "equal-to-everything",
        """
class Yes:
    def __eq__(self, other): return True
    __ge__ = __le__ = __eq__
    def __hash__(self): return 0
def largest_micro_batch(run, upper): return Yes()
""",
        points=0,
        says="a value of type Yes is not plain data",
    ),
    Attack(
        "int-equal-to-everything",
        """
class Yes(int):
    def __eq__(self, other): return True
    def __int__(self): raise SystemExit
    def __index__(self): return 1
    __hash__ = int.__hash__
def largest_micro_batch(run, upper): return Yes(1)
""",
        points=0,
        says="but got 1",
    ),
    Attack(
        "patched-libraries",
        """
import builtins, math, numpy, numpy.testing, torch
def yes(*args, **kwargs): return True
for module, names in ((numpy, "allclose array_equal isclose all any"), (math, "isclose ceil"),
                      (torch, "allclose equal"), (numpy.testing, "assert_allclose"),
                      (builtins, "all any isinstance")):
    for name in names.split():
        setattr(module, name, yes)
# %%
def largest_micro_batch(run, upper): return 1
""",
        points=0,
    ),
    Attack(
        "patched-peakmem",
        """
from importlib import import_module  # hides from the search for changes of the library
probes, probe = import_module("peakmem.probes"), import_module("peakmem.probes.lab05")
serialization = import_module("peakmem.core.serialization")
from autograder.sandbox.guest import shell
from autograder.sandbox.guest import server
from autograder.sandbox.guest import wire
probe.largest_micro_batch = lambda student, upper, ask: ("value", upper)
probes.call_probe = server.call_probe = lambda *a: ("raised", "ValueError")
serialization.encode = serialization.decode = lambda *a, **k: b"4"
get_ipython().run_cell = lambda *a, **k: 4
server._cell = lambda *a: {"outputs": [], "score": 4, "points": 4, "status": "right"}
# %%
def largest_micro_batch(run, upper): return 4
""",
        points=0,
    ),
    Attack(
        "reads-frames",
        """
import gc, inspect, sys
def largest_micro_batch(run, upper):
    frame, seen = sys._getframe(), []
    while frame:
        seen += [(name, value) for name, value in frame.f_locals.items()]
        frame = frame.f_back
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            seen += [(k, v) for k, v in list(thing.items()) if isinstance(k, str)]
    seen += [(v.__name__, v) for v in map(inspect.getmodule, gc.get_objects()[:10**4]) if v]
    for name, value in seen:
        if name in ("secret", "fits", "expected", "_micro_batch_cases", "judge"):
            raise ValueError(f"REACHED {name} {value}")
    return 1
""",
        points=0,
        says="expected",
    ),
    Attack("nan", "def largest_micro_batch(run, upper): return float('nan')", 0, "but got nan"),
    Attack("text", "def largest_micro_batch(run, upper): return str(upper)", 0, "but got '\\d"),
    Attack("true", "def largest_micro_batch(run, upper): return True", 0, "but got True"),
    Attack("nothing", "def largest_micro_batch(run, upper): pass", 0, "but got None"),
    Attack(
        "deep-answer",
        """
def largest_micro_batch(run, upper):
    nest = []
    for _ in range(10**5): nest = [nest]
    return nest
""",
        points=0,
        says="nested at most",
    ),
    Attack(
        "huge-integer",
        "def largest_micro_batch(run, upper): return 1 << 10**7",
        points=0,
        says="thousands of digits",
    ),
    Attack(
        "ten-gb",
        "def largest_micro_batch(run, upper): return bytes(10 * 10**9)",
        points=0,
        says="MemoryError",
    ),
    Attack(
        "ten-gb-announced",
        FRAME
        + "# %%\ndef largest_micro_batch(run, upper):\n"
        + "    to_grader((10 * 10**9).to_bytes(8, 'big'))\n    while True: to_grader(b'x' * 2**20)",
        points=0,
        says="10,000,000,000 bytes",
    ),
    Attack(
        "questions-without-end",
        """
import sys
def largest_micro_batch(run, upper):
    frame = sys._getframe()
    while "ask" not in frame.f_locals: frame = frame.f_back
    while True: frame.f_locals["ask"]("x" * 8 * 2**20)
""",
        points=0,
        says="couldn't be accepted",
    ),
    Attack(
        "pickle",
        """
import os, pickle
class Run:
    def __reduce__(self): return os.system, ("touch {marker}",)
# %%
def largest_micro_batch(run, upper): return pickle.dumps(Run())
""",
        points=0,
        says="but got b'",
    ),
    Attack(
        "pickle-on-the-wire",
        FRAME
        + """
import pickle
class Run:
    def __reduce__(self): return os.system, ("touch {marker}",)
# %%
def largest_micro_batch(run, upper): to_grader(frame(pickle.dumps(Run())))
""",
        points=0,
        says="couldn't be accepted",
    ),
    Attack(
        "forged-replies",
        FRAME
        + "# %%\n"
        + "to_grader(b''.join(frame({'id': n, 'value': ('value', 1)}) for n in range(1, 99)))",
        points=4,  # the cell is left out, and the honest solution is run without it
        shows="something that isn't an answer",
    ),
    Attack(
        "forged-verdict",
        FRAME
        + """
def largest_micro_batch(run, upper):
    to_grader(frame({"id": 5, "value": ("value", 1), "points": 4, "status": "right"}))
    return {"points": 4, "status": "right", "score": 4}
""",
        points=0,
    ),
    Attack(
        "arrays-in-the-frame",
        FRAME
        + """
import numpy
# %%
def largest_micro_batch(run, upper):
    to_grader(frame({"id": numpy.zeros(3), "value": 1}))
""",
        points=0,
        says="something that isn't an answer",
    ),
    Attack(
        "arrays-as-question",
        """
import sys
def largest_micro_batch(run, upper):
    frame = sys._getframe()
    while "ask" not in frame.f_locals: frame = frame.f_back
    import numpy
    return frame.f_locals["ask"](numpy.zeros(3))
""",
        points=0,
    ),
    Attack(
        "colliding-keys",
        FRAME
        + """
# %%
def largest_micro_batch(run, upper):
    keys = ",".join(f'{{"int":"{k * (2**61 - 1):x}"}}' for k in range(1, 200000))
    to_grader(frame(f'{{"set":[{keys}]}}'.encode()))
""",
        points=0,
        says="couldn't be accepted",
    ),
    Attack(
        "millions-of-lists",
        FRAME
        + "# %%\ndef largest_micro_batch(run, upper):\n"
        + "    to_grader(frame(b'[' + b'[],' * (4 * 2**20) + b'[]]'))",
        points=0,
        says="couldn't be accepted",
    ),
    Attack(
        "half-a-character",
        "print(chr(0xD800))\n# %%\n"
        "def largest_micro_batch(run, upper): raise ValueError(chr(0xD800) + chr(0) + 'x')",
        points=0,
        says="Your code raised ValueError",
    ),
    Attack(
        "script",
        """
from IPython.display import HTML, Javascript, display
display(HTML("<script>steal()</script><img src=x onerror=steal()>"), Javascript("steal()"))
print("<script>steal()</script>")
# %%
class Err(Exception): pass
Err.__name__ = "<script>steal()</script>"
def largest_micro_batch(run, upper): raise Err("<script>steal()</script><a href='javascript:x'>")
""",
        points=0,
        says=r"<script>steal\(\)</script>",
    ),
    Attack(
        "formula",
        """
class NotDefined(Exception): pass
def largest_micro_batch(run, upper): raise NotDefined("=HYPERLINK(\\"http://x\\", \\"4 of 4\\")")
""",
        points=0,
        says="^'=HYPERLINK",
    ),
    Attack(
        "html-that-is-slow-to-clean",
        "from IPython.display import HTML\nHTML('<table><b>' * 400_000)",
        points=4,
        shows="rich output of 4.0 MB is left out",
    ),
    Attack(
        "forged-outputs",
        """
import numpy
from autograder.sandbox.guest.shell import Recorder
Recorder.outputs = lambda self: [
    7, "text", {"output_type": numpy.zeros(2)}, {1: 2}, {"output_type": ["error"]},
    {"output_type": "error", "ename": None, "evalue": 3, "traceback": [None, 3, "<script>steal()"]},
    {"output_type": "stream", "name": 5, "text": 6},
    {"output_type": "display_data", "data": {"text/html": "<script>steal()</script>" * 99}},
    {"output_type": "display_data", "data": {"image/png": "<script>steal()</script>"}},
    {"output_type": "display_data", "data": [1], "metadata": 4},
]
""",
        points=4,
    ),
    Attack(
        "many-outputs-slow-to-clean",
        """
from IPython.display import HTML, display
for _ in range(150): display(HTML("<div>" * 5_500))
""",
        points=4,
        shows="HTML tags",
    ),
    Attack(
        "pictures-with-scripts",
        """
from IPython.display import SVG, display
svg = "<svg xmlns='http://www.w3.org/2000/svg' onload='steal()'><script>steal()</script></svg>"
display(SVG(svg))
for kind in ("image/svg+xml", "text/latex", "text/markdown", "application/javascript", "x/y"):
    display({kind: svg, "text/plain": ""}, raw=True)
""",
        points=4,
        shows="which is not shown here",
    ),
]
