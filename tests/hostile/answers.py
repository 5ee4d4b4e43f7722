"""Attacks on what comes back: answers, how often they come, and the shell that asks for them."""

from __future__ import annotations

from tests.hostile.attack import Attack

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
        says="PlainError",
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
        says="could not be taken",
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
        points=0,  # its own cells are no code any more, the solution's among them
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
    words = ("from autograder.stock import", "autograder" + ".tasks", "_micro_batch_" + "cases")
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
]
