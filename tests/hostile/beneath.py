"""Attacks on what lies beneath a cell: descriptors, memory, hooks, imports, and its own source."""

from __future__ import annotations

from tests.hostile.attack import Attack

__all__ = ["BENEATH"]

BENEATH = [
    Attack(
        "inherited-descriptors",
        r"""
import fcntl, os, stat
for fd in range(1024):
    try: mode = os.fstat(fd).st_mode
    except OSError: continue
    if stat.S_ISDIR(mode): print("REACHED the folder", os.readlink(f"/proc/self/fd/{fd}"))
    if stat.S_ISREG(mode) and fcntl.fcntl(fd, fcntl.F_GETFL) & 3: print("REACHED", fd)
for fd in (1, 2): os.write(fd, b"\x1b[2J")
""",
        points=4,
    ),
    Attack(
        "shared-mappings",
        """
for line in open("/proc/self/maps"):
    rights = line.split()[1]
    if "w" in rights and "s" in rights: print("REACHED", line)
""",
        points=4,
    ),
    Attack(
        "memory-of-others",
        """
import ctypes, os
libc, here = ctypes.CDLL(None), ctypes.create_string_buffer(64)
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
for pid in {*range(1, 60), os.getppid()} - {0, os.getpid()}:
    local, remote = Piece(ctypes.addressof(here), 8), Piece(id(here), 8)
    if libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0:
        print("REACHED the memory of", pid)
    for what in ("environ", "mem", "root/etc/passwd"):
        try:
            with open(f"/proc/{pid}/{what}", "rb") as file: print("REACHED", pid, file.read(1))
        except OSError: pass
""",
        points=4,
    ),
    Attack(
        "answers-from-the-socket",
        """
import os, socket, threading
from peakmem.core import serialization
def answer_first(connection):
    while data := connection.recv(2**16):
        try: asked = serialization.decode(data[8:8 + int.from_bytes(data[:8], "big")])
        except Exception: continue
        reply = {"id": asked.get("id"), "value": ("value", 1), "points": 4, "status": "right"}
        raw = serialization.encode(reply)
        connection.sendall(len(raw).to_bytes(8, "big") + raw)
for fd in range(3, 64):
    try: connection = socket.socket(fileno=os.dup(fd))
    except OSError: continue
    threading.Thread(target=answer_first, args=[connection], daemon=True).start()
# %%
def largest_micro_batch(run, upper): return 1
""",
        points=0,
    ),
    Attack(
        "import-hooks",
        """
import importlib.abc, os, sys, types
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("peakmem.probes", "autograder")):
            sys.modules[name] = module = types.ModuleType(name)
            module.largest_micro_batch = lambda student, upper, ask: ("value", upper)
sys.meta_path.insert(0, Finder())
for name in [n for n in sys.modules if n.startswith(("peakmem.probes", "autograder"))]:
    sys.modules.pop(name)
for folder in sys.path:
    for file in ("usercustomize.py", "sitecustomize.py", "x.pth"):
        try: open(os.path.join(folder or ".", file), "x").close()
        except OSError: continue
        if folder and not folder.startswith("/tmp"): print("REACHED", folder, file)
# %%
def largest_micro_batch(run, upper): return upper
""",
        points=0,
    ),
    Attack(
        "hooks-of-the-interpreter",
        """
import atexit, faulthandler, gc, os, signal, sys, threading
signal.signal = signal.setitimer = faulthandler.enable = lambda *args, **options: None
sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *args: None
atexit.register(lambda: os.write(1, b"REACHED"))
os.register_at_fork(before=lambda: None, after_in_child=lambda: None)
sys.addaudithook(lambda *args: None)
gc.callbacks.append(lambda phase, info: None)
""",
        points=4,
    ),
    Attack(
        "numpy-scalar-that-lies",
        """
import numpy as np
class Yes(np.int64):
    def __eq__(self, other): return True
    __ge__ = __le__ = __gt__ = __lt__ = __eq__
    __hash__ = np.int64.__hash__
    def item(self): return 0
    def __index__(self): return 7
# %%
def largest_micro_batch(run, upper): return Yes(1)
""",
        points=0,
        says="but got \\d",
    ),
    Attack(
        "source-that-lies",
        r"""
import linecache
name = "<ipython-input-1-\x1b[2J/../../etc/passwd>"
told = "\x1b]8;;http://evil.example\x07click\x1b]8;;\x07 <script>alert(1)</script>"
linecache.cache[name] = (len(told), None, [told + "\n"] * 5, name)
exec(compile("def g():\n    raise ValueError('\\x9b2J \\u202e \\x85 \\u2028')", name, "exec"))
g.__code__ = g.__code__.replace(co_name="=cmd|' /C calc'!A0\x1b[2J\n\n4 of 4 points")
# %%
def largest_micro_batch(run, upper): return g()
""",
        points=0,
        says="raised ValueError",
    ),
    Attack(
        "outputs-of-many-kinds",
        r"""
from IPython.display import publish_display_data as show
link = "[x](javascript:alert(1)) <javascript:alert(2)> <img src=x onerror=alert(3)>"
show({"text/markdown": link, "application/javascript": "alert(4)", "application/pdf": "JVBERi0="})
show({"application/vnd.jupyter.widget-view+json": '{"model_id": "x"}', "image/png": "'><script>"})
show({"text/latex": r"$\href{javascript:alert(5)}{x}\require{html}\style{background:red}{x}$"})
show({"text/html": "<meta http-equiv=refresh content='0;url=//evil.example'><form action=//e>"
      "<base href=//e><iframe srcdoc='<script>alert(6)</script>'></iframe><link href=//e>"
      "<a href='java&#10;script:alert(7)'>a</a><details open ontoggle=alert(8)>"
      "<div style='position:fixed;top:0;left:0'>4 of 4 points</div>"})
""",
        points=4,
    ),
]
