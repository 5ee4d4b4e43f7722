"""Attacks on a measured exercise: the work is done, with memory that the meter does not see.

What is right of the answer may earn its points; the points for the memory stay with a person.
"""

from __future__ import annotations

from tests.hostile.attack import MEASURED, Attack

__all__ = ["MEASURED_ATTACKS"]

_OUTSIDE = "Seen from outside"

# Right gradients, and all micro-batches' graphs in memory at once.
_KEEPS = """
import torch
def keeps(model, loss_fn, inputs, targets, micro_batch):
    pairs = zip(inputs.split(micro_batch), targets.split(micro_batch))
    total = sum(loss_fn(model(x), y) * (len(x) / len(inputs)) for x, y in pairs)
    total.backward()
    return total.item()
"""

# A right solution, and `{scratch}` beside it.
_HONEST = """
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    {scratch}
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    return total
"""


def _scratch(name: str, scratch: str, setup: str = "") -> Attack:
    code = setup + "\n# %%\n" + _HONEST.replace("{scratch}", scratch)
    return Attack(name, code, None, says=_OUTSIDE, exercise=MEASURED)


def _keeps(name: str, call: str, setup: str = "") -> Attack:
    code = (
        f"{_KEEPS}{setup}\n# %%\n"
        "def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):\n"
        f"    given = (model, loss_fn, inputs, targets, micro_batch)\n    {call}"
    )
    return Attack(name, code, None, says=_OUTSIDE, exercise=MEASURED)


MEASURED_ATTACKS = [
    _keeps(
        "in-a-thread",
        "with ThreadPoolExecutor(1) as pool: return pool.submit(keeps, *given).result()",
        "from concurrent.futures import ThreadPoolExecutor",
    ),
    _scratch("numpy-scratch", "numpy.ones(8 << 20)", "import numpy"),
    _keeps(
        "disabled-dispatch-modes",
        "with _disable_current_modes(): return keeps(*given)",
        "from torch.utils._python_dispatch import _disable_current_modes",
    ),
    _keeps(
        "edited-meter",
        "return keeps(*given)",
        "from peakmem import meter\n"
        "meter.MemoryMeter.peak_bytes = property(lambda s: s.baseline_bytes, lambda s, value: 0)",
    ),
    _scratch(
        "memory-map",
        "block = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE); block.write(bytes(64 << 20))",
        "import mmap",
    ),
    _scratch(
        "in-a-child",
        "os.waitpid(os.fork() or (bytearray(b'x' * (64 << 20)), os._exit(0)), 0)",
        "import os",
    ),
    _scratch(
        "resets-its-peak",
        "bytearray(b'x' * (64 << 20)); reset()",
        "def reset():\n    try: open('/proc/self/clear_refs', 'w').write('5')\n"
        "    except OSError: pass",
    ),
    Attack(
        "replaced-probe",
        _KEEPS
        + """
from peakmem.probes import lab05 as probe
def large(student, ask, micro_batch, large):
    model, inputs, targets = probe.large_run(**large)
    keeps(model, torch.nn.functional.mse_loss, inputs, targets, micro_batch)
    gradients = [p.grad.numpy().copy() for p in model.parameters()]
    return {"value": 0.0, "sizes": [2], "changed": [], "gradients": gradients, "rise_bytes": 9}
probe._large = large
""",
        points=None,
        says=_OUTSIDE,
        exercise=MEASURED,
    ),
    _scratch(
        "scratch-in-a-file",
        "scratch()",
        "import os\ndef scratch():\n    with open('/tmp/scratch', 'wb') as file:\n"
        "        for _ in range(64): file.write(bytes(1 << 20))\n    os.remove('/tmp/scratch')",
    ),
    _keeps(
        "hides-its-memory",
        "with ThreadPoolExecutor(1) as pool: return pool.submit(keeps, *given).result()",
        "import ctypes\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "for option in (4, 35): ctypes.CDLL(None).prctl(option, 0, 0, 0, 0)",
    ),
    Attack(
        "another-program-replies",
        _KEEPS
        + """
import os, sys
from peakmem import plain
# %%
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = keeps(model, loss_fn, inputs, targets, micro_batch)
    if inputs.dim() < 3 or len(inputs) < 20: return total
    frame = sys._getframe()
    while "request" not in frame.f_locals or "connection" not in frame.f_locals:
        frame = frame.f_back
    number, fd = frame.f_locals["request"]["id"], frame.f_locals["connection"].fileno()
    gradients = [p.grad.numpy().copy() for p in model.parameters()]
    value = {"value": total, "sizes": [2], "changed": [], "gradients": gradients, "rise_bytes": 9}
    data = plain.encode({"id": number, "value": value})
    with open("/tmp/reply", "wb") as file: file.write(len(data).to_bytes(8, "big") + data)
    os.set_inheritable(fd, True)
    os.execv("/bin/sh", ["sh", "-c", f"cat /tmp/reply >&{fd}; sleep 9"])
""",
        points=1,  # one part is right; what follows is not run
        says="put another in its place",
        exercise=MEASURED,
    ),
]
