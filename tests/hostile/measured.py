"""Attacks on measured exercises: they do the work, in memory hidden from the budget.

Each attack starts when the honest solution runs on the large inputs, recognized by their size;
small inputs are answered honestly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from autograder.model.submission import RunCell, Submission
from tests.grading import cell_of, solved

__all__ = ["LEAN", "MEASURED_ATTACKS", "OFFLOADED", "STREAM", "Exercise", "MeasuredAttack"]


@dataclass(frozen=True)
class Exercise:
    """A measured exercise: its `part` for the memory, and the code that wraps an attack on it.

    `greedy` is a solution with right values that takes too much memory. `wrapper` defines the
    exercise's function from `honest`, `greedy` and the attack's `work(call, greedy)`.
    """

    lab: str
    task: str
    part: str
    greedy: str
    wrapper: str
    neighbour: str
    #: The given cells that the course's solutions use.
    given: tuple[str, ...] = ()

    def honest(self) -> str:
        """The course's own solution, renamed to `honest`."""
        source = cell_of(solved(self.lab), f"{self.task}-solution")["source"]
        return re.sub(r"(?m)^(def|class) \w+", r"\1 honest", source, count=1)


LEAN = Exercise(
    lab="lab03_adam",
    task="lab03-lean_adam_step",
    part="under the budget",
    neighbour="lab03-bytes_per_parameter",
    given=("lab03-pieces", "lab03-recipe-table"),
    greedy="""
def greedy(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            s = state.setdefault(i, {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)})
            s["t"] += 1
            s["m"].mul_(betas[0]).add_(g, alpha=1 - betas[0])
            s["v"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
            root = (s["v"] / (1 - betas[1] ** s["t"])).sqrt().add_(eps)
            p.sub_(lr / (1 - betas[0] ** s["t"]) * s["m"] / root)
""",
    wrapper="""
def lean_adam_step(params, *more, **options):
    if sum(p.numel() for p in params) < 10**6: return honest(params, *more, **options)
    return work(lambda: honest(params, *more, **options), lambda: greedy(params, *more, **options))
""",
)
STREAM = Exercise(
    lab="lab06_swap",
    task="lab06-stream_forward",
    part="two layers at most",
    neighbour="lab06-worth_swapping",
    greedy="""
@torch.no_grad()
def greedy(host_layers, x):
    for layer in [host_layer.load() for host_layer in host_layers]: x = layer(x)
    return x
""",
    wrapper="""
def stream_forward(host_layers, x):
    if len(host_layers) < 5: return honest(host_layers, x)
    return work(lambda: honest(host_layers, x), lambda: greedy(host_layers, x))
""",
)
OFFLOADED = Exercise(
    lab="lab06_swap",
    task="lab06-offloaded_adam",
    part="device bytes during step",
    neighbour="lab06-worth_swapping",
    greedy="class greedy: pass",
    wrapper="""
from peakmem.labs.lab06 import adam_update_
class OffloadedAdam(honest):
    def __init__(self, params, host, **options):
        self.large = (params := list(params))[0].numel() > 10**5
        super().__init__(params, host, **options)
    def step(self):
        return work(super().step, super().step) if self.large else super().step()
""",
)


@dataclass(frozen=True)
class MeasuredAttack:
    """Code cells, separated by `# %%`, which define `work(call, greedy)`.

    `says` is a pattern that the message must match. With all guards in `off` switched off, the
    attack earns the exercise's part; each of them alone stops it.
    """

    name: str
    cells: str
    off: tuple[str, ...]
    says: str = ""
    exercise: Exercise = LEAN

    def submission(self) -> Submission:
        """The notebook, with an honest answer to another exercise in it."""
        exercise = self.exercise
        neighbour = cell_of(solved(exercise.lab), f"{exercise.neighbour}-solution")["source"]
        given = [cell_of(solved(exercise.lab), name)["source"] for name in exercise.given]
        own = [_IMPORTS, *given, exercise.honest(), exercise.greedy, *self.cells.split("# %%")]
        sources = [(source, "own", None) for source in own]
        sources.append((neighbour, "solution", exercise.neighbour))
        sources.append((exercise.wrapper, "solution", exercise.task))
        return Submission(
            student=self.name,
            lab=exercise.lab,
            raw=self.name.encode(),
            notebook={"cells": [{"cell_type": "code", "source": s} for s, _, _ in sources]},
            cells=tuple(
                RunCell(index, source, kind, task)  # type: ignore[arg-type]
                for index, (source, kind, task) in enumerate(sources)
            ),
        )


_IMPORTS = """
import ctypes, math, mmap, os, pickle, queue, resource, signal, socket, sys, threading, time
import numpy, peakmem, torch
N = 30 << 20
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
def touch(block):
    for start in range(0, len(block), 4096): block[start] = 1
    return block
"""

_LIMITS = ("budget",)
_SHUT = ("shut",)
_MAP = "place = room_of_a_library()"


def _beside(
    name: str, scratch: str, setup: str = "", off: tuple[str, ...] = _LIMITS, **more: object
) -> MeasuredAttack:
    """An attack that does honest work while `held` holds the value of the expression `scratch`."""
    work = f"def work(call, greedy):\n    held = {scratch}\n    return call()\n"
    return MeasuredAttack(name, setup + "\n# %%\n" + work, off, **more)  # type: ignore[arg-type]


_ON_REQUEST = """
asked, done = queue.Queue(), queue.Queue()
def serve():
    while True: done.put(asked.get()())
threading.stack_size(1 << 18)
threading.Thread(target=serve, daemon=True).start()
"""
_SPARSE = "with open('/dev/shm/sparse', 'wb') as file: file.truncate(N)"
_WINDOW = """
def window(path):
    with open(path, 'r+b') as file: return sys.modules["mm" "ap"].mmap(file.fileno(), N)
"""
# Address space that a call can free for other uses and then take again.
_ROOM = """
places = [os.path.join(torch.__path__[0], "lib", name) for name in
          os.listdir(os.path.join(torch.__path__[0], "lib"))]
library = os.open(max(places, key=os.path.getsize), os.O_RDONLY)
def of_a_library(): return mmap.mmap(library, 2 * N, prot=1, flags=mmap.MAP_PRIVATE)
room = [of_a_library()]
"""
_FRAME = """
def frame_with(*names):
    frame = sys._getframe()
    while not all(name in frame.f_locals for name in names): frame = frame.f_back
    return frame.f_locals
"""
# If the C library's functions are refused, the system call itself, on x86-64 or ARM.
_RAISE = """
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = (160, 302) if os.uname().machine == "x86_64" else (164, 261)
def higher():
    most = (ctypes.c_uint64 * 2)(2**40, 2**64 - 1)
    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_NPROC):
        hard = resource.getrlimit(kind)[1]
        most = (ctypes.c_int64 * 2)(hard, hard)
        for raised in (
            lambda: resource.setrlimit(kind, (hard, hard)),
            lambda: resource.prlimit(os.getpid(), kind, (hard, hard)),
        ):
            try: raised()
            except OSError: pass
        libc.syscall(NUMBERS[0], kind, most)
        libc.syscall(NUMBERS[1], 0, kind, most, None)
        libc.syscall(NUMBERS[1], 1, kind, most, None)
"""
# Memory that is writable only for a moment, a piece at a time.
_BY_PIECES = """
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_size_t]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PIECE = 1 << 19
def fill(place, most=N, rights=1):
    for at in range(place, place + most, PIECE):
        if libc.mprotect(at, PIECE, 3) != 0: raise MemoryError
        code = ctypes.string_at(at, PIECE) if rights == 5 else b""
        ctypes.memset(at, 7, PIECE)
        ctypes.memmove(at, code, len(code))  # some processors may run it later
        if libc.mprotect(at, PIECE, rights) != 0: raise MemoryError
    return ctypes.string_at(place, 1)
def room_of_a_library():
    path = max((os.path.join(torch.__path__[0], "lib", name) for name in
        os.listdir(os.path.join(torch.__path__[0], "lib"))), key=os.path.getsize)
    return libc.mmap(None, N, 1, 2, os.open(path, os.O_RDONLY), 0)
def code_of_a_library():
    for line in open("/proc/self/maps"):
        if "libtorch_cpu" in line and "r-xp" in line:
            first, end = (int(word, 16) for word in line.split()[0].split("-"))
            place = end - N - (end - N) % 4096
    return place
def in_its_room(place):
    libc.munmap(place, N)
    return libc.mmap(place, N, 1, 0x32, -1, 0)
"""
# A thread's own table of open files, which /proc/PID/fd doesn't show.
_HIDDEN_FILE = """
with open("/dev/shm/hidden", "wb") as file: file.truncate(N)
hidden = os.open("/dev/shm/hidden", os.O_RDWR)
os.unlink("/dev/shm/hidden")
def by_windows(thread):
    file = os.open(f"/proc/self/task/{thread}/fd/{hidden}", os.O_RDWR)
    for at in range(0, N, 1 << 19):
        with sys.modules["mm" "ap"].mmap(file, 1 << 19, offset=at) as window: touch(window)
    os.close(file)
"""
# A deleted file kept only by its windows, and the end of a library's unused memory.
_DELETED = """
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_size_t]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
libc.remap_file_pages.argtypes = [ctypes.c_void_p] + 4 * [ctypes.c_long]
libc.mremap.restype = ctypes.c_void_p
PIECE = 1 << 19
def windows(bytes_each, every):
    file = os.open("/dev/shm/deleted", os.O_RDWR | os.O_CREAT)
    os.unlink("/dev/shm/deleted")
    os.ftruncate(file, N)
    places = [libc.mmap(None, bytes_each, 3, 1, file, at) for at in range(0, N, every)]
    os.close(file)
    return places
def done(place):
    if place in (None, 2**64 - 1): raise MemoryError
    return place
def unmap_idle():
    for line in open("/proc/self/maps"):
        first, end = (int(word, 16) for word in line.split()[0].split("-"))
        if end - first == 32 << 20 and "rw-p" in line: libc.munmap(first + (8 << 20), 24 << 20)
def stack():
    for line in open("/proc/self/maps"):
        if "[stack]" in line: return int(line.partition("-")[0], 16)
"""
_FORKED = """
kept = []
def child(work):
    said, says = os.pipe()
    end, kept_open = os.pipe()
    if os.fork() == 0:
        try: os.write(says, b'y' if work() else b'n'); os.read(end, 1)
        finally: os._exit(0)
    return said
"""

MEASURED_ATTACKS = [
    # Memory that the kernel counts, whatever the meter sees.
    MeasuredAttack("whole-tensors", "def work(call, greedy): return greedy()", _LIMITS),
    _beside("numpy-scratch", "numpy.ones(N, numpy.uint8)"),
    _beside("bytes-as-scratch", "bytes(N)"),
    _beside("memory-map", "mmap.mmap(-1, N, flags=mmap.MAP_PRIVATE)"),
    _beside("untouched-memory", "torch.empty(N // 4)"),
    _beside("memory-from-c", "libc.malloc(ctypes.c_size_t(N)) or 1 / 0"),
    _beside("numpy-scratch-beside-layers", "numpy.ones(N, numpy.uint8)", exercise=STREAM),
    _beside("numpy-scratch-beside-moments", "numpy.ones(N, numpy.uint8)", exercise=OFFLOADED),
    MeasuredAttack(
        "all-layers-at-once", "def work(call, greedy): return greedy()", _LIMITS, exercise=STREAM
    ),
    _beside(
        "tensor-subclass",
        "Quiet(torch.ones(N // 4))",
        "class Quiet(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, f, types, args=(), kwargs=None): return len(args)\n"
        "    def __new__(cls, t): return torch.Tensor._make_subclass(cls, t)",
    ),
    _beside(
        "given-back-as-advice",
        "advised()",
        "def advised():\n"
        "    blocks = []\n"
        "    for _ in range(30):\n"
        "        blocks.append(touch(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE)))\n"
        "        blocks[-1].madvise(mmap.MADV_DONTNEED)\n"
        "    return blocks",
    ),
    MeasuredAttack(
        "disabled-dispatch-modes",
        "from torch.utils._python_dispatch import _disable_current_modes\n"
        "def work(call, greedy):\n"
        "    with _disable_current_modes(): return greedy()",
        _LIMITS,
    ),
    MeasuredAttack(
        "edited-meter",
        "from peakmem.measure import meter\n"
        "meter.MemoryMeter.peak_bytes = property(lambda s: s.baseline_bytes, lambda s, value: 0)\n"
        "def work(call, greedy): return greedy()",
        _LIMITS,
    ),
    MeasuredAttack(
        "replaced-probe",
        """
from peakmem.probes.lab03 import lean_adam as probe
real = probe._large
def large(step, *args, metered, **more):
    moments = 8 * sum(map(math.prod, more["shapes"]))
    figures = dict(rise_bytes=moments, kept_bytes=moments, numpy_rise_bytes=0, numpy_kept_bytes=0)
    return {**real(step, *args, metered=False, **more), **figures}
probe._large = large
def work(call, greedy): return greedy()
""",
        _LIMITS,
    ),
    MeasuredAttack(
        "steps-on-watched-values-alone",
        """
def work(call, greedy):
    frame = sys._getframe()
    while frame.f_code.co_name != "train": frame = frame.f_back
    run = frame.f_locals["self"]
    places = [torch.from_numpy(places) for places in run._watched]
    flat = [p.detach().reshape(-1) for p in run.parameters]
    some = [p[at] for p, at in zip(flat, places)]
    honest(some, [g.reshape(-1)[at] for g, at in zip(run.gradients, places)], run._state, lr=0.1)
    for p, at, values in zip(flat, places, some): p[at] = values
""",
        ("sums",),
        says="don't cover a tensor exactly once",
    ),
    MeasuredAttack(
        "keeps-its-scratch-for-the-second-run",
        """
kept = []
def work(call, greedy):
    if not kept:
        try: kept.append(bytearray(N))
        except MemoryError: kept.append(None); raise
    return call()
""",
        _LIMITS,
    ),
    MeasuredAttack(
        "catches-and-makes-do",
        """
def work(call, greedy):
    try: held = bytearray(N)
    except MemoryError: return None
    return call()
""",
        _LIMITS,
    ),
    # Threads and processes.
    MeasuredAttack(
        "in-a-thread",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def work(call, greedy):\n"
        "    with ThreadPoolExecutor(1) as pool: return pool.submit(greedy).result()",
        ("budget", "NPROC"),
        says="can't start a thread or process",
    ),
    MeasuredAttack(
        "in-a-thread-that-waits",
        _ON_REQUEST
        + "def work(call, greedy):\n    asked.put(greedy)\n    return done.get(timeout=9)",
        _LIMITS,
    ),
    MeasuredAttack(
        "in-a-child",
        _FORKED
        + """
def work(call, greedy):
    if not kept:  # before the moments are made, a child of this process has room for more
        kept.append(child(lambda: touch(bytearray(N))))
        assert os.read(kept[0], 1) == b"y"
    return call()
""",
        ("NPROC",),
        says="can't start a thread or process",
    ),
    MeasuredAttack(
        "in-a-child-that-shares-a-file",
        _FORKED
        + _WINDOW
        + _SPARSE
        + """
def work(call, greedy):
    if not kept:
        kept.append(child(lambda: touch(window('/dev/shm/sparse'))))
        assert os.read(kept[0], 1) == b"y"
    return call()
""",
        ("NPROC", "held"),
        says="can't start a thread or process|of its own",
    ),
    MeasuredAttack(
        "in-a-child-that-stays",
        _FORKED
        + "held = bytearray(1)\n"
        + "said = child(lambda: touch(bytearray(N)))\nassert os.read(said, 1) == b'y'\n"
        + "def work(call, greedy): return call()",
        ("children",),
        says="left processes running",
    ),
    MeasuredAttack(
        "in-a-child-whose-first-thread-ended",
        _FORKED
        + """
def hold():
    block = touch(bytearray(N))
    def stay(block=block):
        theirs.send(b"y")
        theirs.recv(1)
    threading.Thread(target=stay).start()
    libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # exit, of this thread only
ours, theirs = socket.socketpair()
if os.fork() == 0: hold()
assert ours.recv(1) == b"y"
def work(call, greedy): return call()
""",
        ("children",),
        says="left processes running",
    ),
    # Files.
    _beside(
        "window-into-shared-memory",
        "touch(window('/dev/shm/sparse'))",
        _WINDOW + _SPARSE,
        off=("AS", "held"),
    ),
    _beside(
        "window-through-a-link",
        "touch(window('/dev/shm/link'))",
        _WINDOW + _SPARSE + "\nos.link('/dev/shm/sparse', '/dev/shm/link')",
        off=("AS", "held"),
    ),
    _beside(
        "window-beside-layers",
        "touch(window('/dev/shm/sparse'))",
        _WINDOW + _SPARSE,
        off=("AS",),
        exercise=STREAM,
    ),
    MeasuredAttack(
        "window-in-the-room-of-another",
        _WINDOW
        + _SPARSE
        + _ROOM
        + """
def work(call, greedy):
    room.pop().close()
    held = touch(window('/dev/shm/sparse'))
    value = call()
    held.close()
    room.append(of_a_library())  # as if nothing had been
    return value
""",
        ("held",),
        says="of its own",
    ),
    _beside(
        "enlarges-windows-into-a-deleted-file",
        "fill()",
        _DELETED
        + """
places = windows(4096, PIECE)
def fill():
    for i, place in enumerate(places):
        place = done(libc.mremap(place, 4096, PIECE, 1))
        ctypes.memset(place, 7, PIECE)
        places[i] = libc.mremap(place, PIECE, 4096, 1)
""",
        off=("deleted",),
        says="through a deleted file",
    ),
    _beside(
        "renames-its-file-while-the-grader-looks",
        "fill()",
        _DELETED
        + """
folders = "/dev/shm/one", "/dev/shm/other"
for folder in folders: os.mkdir(folder)
with open("/dev/shm/one/file", "wb") as file: file.truncate(N)
def move():
    while True:
        for a, b in (folders, folders[::-1]): os.rename(a + "/file", b + "/file")
threading.stack_size(1 << 18)
threading.Thread(target=move, daemon=True).start()
def fill():
    for at in range(0, N, PIECE):
        for folder in folders:
            try: file = os.open(folder + "/file", os.O_RDWR)
            except FileNotFoundError: continue
            place = done(libc.mmap(None, PIECE, 3, 1, file, at))
            ctypes.memset(place, 7, PIECE)
            libc.munmap(place, PIECE)
            os.close(file)
""",
        off=("held",),
        says="of its own",
    ),
    _beside(
        "moves-a-window-over-a-deleted-file",
        "fill()",
        _DELETED
        + """
place, = windows(PIECE, N)
def fill():
    for at in range(0, N, PIECE):
        if libc.remap_file_pages(place, PIECE, 0, at // 4096, 0) != 0: raise MemoryError
        ctypes.memset(place, 7, PIECE)
""",
        off=("deleted", "filter"),
        says="through a deleted file|MemoryError",
    ),
    _beside(
        "deleted-file-in-the-place-of-idle-memory",
        "ctypes.memset(place, 7, 20 << 20)",
        _DELETED + "N = 20 << 20\nplace, = windows(N, N)\nunmap_idle()",
        off=("deleted",),
        says="through a deleted file",
    ),
    _beside(
        "stack-in-the-place-of-idle-memory",
        "ctypes.memset(place, 7, 6 << 20), touch(block)",
        _DELETED
        + """
place = stack() - (6 << 20)
ctypes.memset(place, 7, 6 << 20)
block = bytearray(6 << 20)
unmap_idle()
""",
        off=("held",),
        says="of its own",
    ),
    MeasuredAttack(
        "grows-the-stack-in-the-room-of-another",
        _DELETED
        + _ROOM
        + """
place = stack() - (5 << 20)
def work(call, greedy):
    room.pop().close()
    ctypes.memset(place, 7, 5 << 20)
    value = call()
    libc.munmap(place, 5 << 20)
    room.append(of_a_library())
    return value
""",
        ("STACK",),
    ),
    MeasuredAttack(
        "piece-of-the-stack-in-the-room-of-another",
        _DELETED
        + _ROOM
        + """
low = stack()
enlarged = [done(libc.mremap(low, 4096, 8192, 1))]
def work(call, greedy):
    room.pop().close()
    piece = done(libc.mremap(enlarged.pop(), 8192, N, 1))
    ctypes.memset(piece, 7, N)
    value = call()
    enlarged.append(libc.mremap(piece, N, 8192, 1))
    room.append(of_a_library())
    return value
""",
        ("filter",),
    ),
    MeasuredAttack(
        "stack-in-the-room-of-another",
        _ROOM
        + """
def work(call, greedy):
    room.pop().close()
    grows_down = 0x122
    place = libc.mmap(None, ctypes.c_size_t(N), 3, grows_down, -1, 0)
    touch((ctypes.c_char * N).from_address(place))
    value = call()
    libc.munmap(ctypes.c_void_p(place), ctypes.c_size_t(N))
    room.append(of_a_library())
    return value
""",
        ("filter",),
    ),
    _beside(
        "scratch-in-a-file",
        "open('/tmp/scratch', 'wb', buffering=0).write(bytes(1 << 20)) and swap()",
        "def swap():\n    for _ in range(30):\n"
        "        with open('/tmp/scratch', 'ab') as file: file.write(bytes(1 << 20))",
        off=("FSIZE",),
        says="write to a file",
    ),
    _beside(
        "scratch-over-an-old-file",
        "swap()",
        "with open('/dev/shm/old', 'wb') as file: file.write(bytes(N))\n"
        "def swap():\n    with open('/dev/shm/old', 'r+b') as file: file.write(bytes(1 << 20))",
        off=("FSIZE", "held"),
    ),
    _beside(
        "tensors-in-pickles",
        "swap(torch.ones(1 << 17))",
        "def swap(t):\n"
        "    for i in range(60): pickle.dump(t.numpy(), open(f'/tmp/{i}', 'wb'))\n"
        "    return [pickle.load(open(f'/tmp/{i}', 'rb')).shape for i in range(60)]",
        off=("FSIZE",),
        says="write to a file",
    ),
    # Memory held before the call.
    _beside("scratch-in-a-global", "touch(scratch)", "scratch = bytearray(N)", off=("held",)),
    _beside(
        "scratch-in-a-default",
        "use()",
        "def use(scratch=torch.empty(N // 4)): scratch.fill_(1)",
        off=("held",),
    ),
    _beside(
        "scratch-in-a-window",
        "touch(scratch)",
        _WINDOW + _SPARSE + "\nscratch = window('/dev/shm/sparse')",
        off=("held",),
    ),
    _beside(
        "scratch-in-a-librarys-file",
        "touch(scratch)",
        "path = max((os.path.join(torch.__path__[0], 'lib', name) for name in\n"
        "    os.listdir(os.path.join(torch.__path__[0], 'lib'))), key=os.path.getsize)\n"
        "scratch = mmap.mmap(os.open(path, os.O_RDONLY), N, access=mmap.ACCESS_COPY)",
        off=("held",),
    ),
    _beside(
        "scratch-in-a-librarys-code",
        "touch((ctypes.c_char * N).from_address(place))",
        """
for line in open("/proc/self/maps"):
    if "libtorch_cpu" in line and "r-xp" in line:
        first, end = (int(word, 16) for word in line.split()[0].split("-"))
        place = end - N - (end - N) % 4096
        libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(N), 7)
""",
        off=("held",),
    ),
    _beside(
        "scratch-in-a-librarys-idle-memory",
        "touch((ctypes.c_char * (24 << 20)).from_address(place))",
        """
for line in open("/proc/self/maps"):
    first, end = (int(word, 16) for word in line.split()[0].split("-"))
    if end - first == 32 << 20 and "rw-p" in line: place = first + (8 << 20)
""",
        off=("idle",),
        says="ended its own process",
    ),
    _beside(
        "opens-a-librarys-idle-memory",
        "libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(24 << 20), 3) and bytes(1 << 50)",
        """
for line in open("/proc/self/maps"):
    first, end = (int(word, 16) for word in line.split()[0].split("-"))
    if end - first == 32 << 20 and "rw-p" in line: place = first + (8 << 20)
""",
        off=("budget",),
    ),
    _beside(
        "writes-by-pieces-into-a-librarys-code",
        "fill(code_of_a_library(), rights=5)",
        _BY_PIECES,
        _SHUT,
    ),
    _beside("writes-by-pieces-into-a-map", "fill(place)", _BY_PIECES + _MAP, _SHUT),
    _beside(
        "shuts-a-byte-of-each-page",
        "place in filled or fill_once()",
        _BY_PIECES
        + _MAP
        + """
filled = []
def fill_once():
    filled.append(place)
    for at in range(place, place + N, PIECE):
        if libc.mprotect(at, PIECE, 3) != 0: raise MemoryError
        ctypes.memset(at, 7, PIECE)
        for page in range(at, at + PIECE, mmap.PAGESIZE):
            if libc.mprotect(page, 1, 1) != 0: raise MemoryError
""",
        _SHUT,
    ),
    _beside("writes-by-pieces-into-room", "fill(in_its_room(place))", _BY_PIECES + _MAP, _SHUT),
    _beside(
        "opens-a-librarys-idle-memory-by-pieces",
        "fill(place, 24 << 20)",
        _BY_PIECES
        + """
for line in open("/proc/self/maps"):
    first, end = (int(word, 16) for word in line.split()[0].split("-"))
    if end - first == 32 << 20 and "rw-p" in line: place = first + (8 << 20)
""",
        _SHUT,
    ),
    MeasuredAttack(
        "gives-back-what-a-cell-held",
        """
held = [bytearray(1 << 20) for _ in range(6)]
def work(call, greedy):
    held.clear()
    block = bytearray(6 << 20)
    return call()
""",
        ("let go",),
        says="freed memory that was held",
    ),
    # Limits.
    MeasuredAttack(
        "raises-its-limits",
        _RAISE + "def work(call, greedy):\n    higher()\n    return greedy()",
        ("filter",),
    ),
    MeasuredAttack(
        "raises-its-limits-from-a-thread",
        _ON_REQUEST
        + _RAISE
        + "def work(call, greedy):\n    asked.put(higher)\n    done.get(timeout=9)\n"
        "    return greedy()",
        ("filter",),
    ),
    MeasuredAttack(
        "another-program-replies",
        _FRAME
        + """
from peakmem.core import serialization
from peakmem.probes.lab03 import lean_adam as probe
real = probe._large
def large(*args, **more):
    value = real(*args, **more)
    if more.get("even"): return value  # no budget holds yet, and more requests come
    found = frame_with("request", "connection")
    fd = found["connection"].fileno()
    data = serialization.encode({"id": found["request"]["id"], "value": value})
    os.write(PIPE[1], len(data).to_bytes(8, "big") + data)
    os.dup2(PIPE[0], 0)
    os.dup2(fd, 1)
    os.execv("/bin/cat", ["cat"])  # and waits for more
PIPE = os.pipe()
os.set_inheritable(PIPE[1], True)
probe._large = large
def work(call, greedy): return call()
""",
        ("same program", "let go", "STACK"),
        says="ended its own process",  # a new program's stack has no room
    ),
    # Memory that belongs to no process.
    _beside(
        "scratch-in-pipes",
        "stored()",
        """
import fcntl
def stored():
    pipes, left = [], N
    while left > 0:
        pipes.append(os.pipe())
        try: fcntl.fcntl(pipes[-1][1], 1031, 1 << 20)
        except OSError: pass
        os.set_blocking(pipes[-1][1], False)
        left -= os.write(pipes[-1][1], bytes(1 << 20))
    return pipes
""",
        off=("NOFILE", "filter"),
    ),
    _beside(
        "scratch-in-sockets",
        "stored()",
        """
def stored():
    pairs, left = [], N
    while left > 0:
        pairs.append(socket.socketpair())
        for one in pairs[-1]:
            one.setblocking(False)
            try: one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            except OSError: pass
            try:
                while True: left -= one.send(bytes(1 << 16))
            except BlockingIOError: pass
    return pairs
""",
        off=("NOFILE", "sockets"),
    ),
    _beside(
        "scratch-in-a-few-sockets",
        "stored()",
        """
def stored():
    pairs = [socket.socketpair() for _ in range(8)]
    for one in sum(pairs, ()):
        one.setblocking(False)
        one.send(bytes(1 << 17))
    return pairs
""",
        off=("sockets",),
    ),
    _beside(
        "scratch-in-sockets-that-are-there",
        "stored()",
        """
ends = [one for _ in range(110) for one in socket.socketpair()]
for one in ends: one.setblocking(False)
def stored():
    for one in ends:
        try: one.send(bytes(1 << 17))
        except BlockingIOError: pass
""",
        off=("left open",),
        says="files, pipes and sockets open",
    ),
    _beside(
        "scratch-in-a-threads-files",
        "by_windows(threads[0])",
        _HIDDEN_FILE
        + """
threads = []
def hold():
    libc.close_range(250, 250, 2)  # CLOSE_RANGE_UNSHARE
    threads.append(threading.get_native_id())
    closed.wait()
    time.sleep(60)
closed = threading.Event()
threading.stack_size(1 << 18)
threading.Thread(target=hold, daemon=True).start()
while not threads: time.sleep(0.001)
os.close(hidden)
closed.set()
""",
        off=("filter",),
    ),
    _beside(
        "scratch-in-the-files-of-a-thread-of-its-own",
        "by_windows(threads[0])",
        _HIDDEN_FILE
        + """
before = {*os.listdir("/proc/self/task")}
stack = ctypes.create_string_buffer(1 << 16)
libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
top = ctypes.addressof(stack) + (1 << 16) - 64 & ~63
libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, 0x10900, None)  # VM, SIGHAND, THREAD
threads = [*{*os.listdir("/proc/self/task")} - before]
os.close(hidden)
""",
        off=("filter",),
    ),
    _beside(
        "scratch-in-the-stack",
        "ctypes.memset(place, 7, 5 << 20)",  # the stack grows to 8 MiB at most
        """
for line in open("/proc/self/maps"):
    if "[stack]" in line: place = int(line.partition("-")[0], 16) - (5 << 20)
""",
        off=("AS", "STACK"),
    ),
    _beside(
        "scratch-in-a-threads-stack",
        "ctypes.memset(min(places) - (24 << 20), 7, 24 << 20)",
        """
places = []
def wait():
    places.append(ctypes.addressof(ctypes.c_char.from_buffer(block := bytearray(1))))
    libc.__errno_location.restype = ctypes.c_void_p
    places[0] = libc.__errno_location()  # at the top of the thread's stack
    time.sleep(60)
threading.stack_size(N)
threading.Thread(target=wait, daemon=True).start()
while not places: time.sleep(0.001)
""",
        off=("held",),
        says="of its own",
    ),
    _beside("scratch-in-the-environment", "os.environ.update(SCRATCH='7' * N)"),
    _beside(
        "scratch-in-names-of-files",
        "stored()",
        """
import tempfile
def stored():
    with tempfile.TemporaryDirectory() as folder:  # of thousands that there may be
        for i in range(5000): os.close(os.open(f"{folder}/{i:0250}", os.O_CREAT | os.O_WRONLY))
""",
        off=("filter",),
    ),
    _beside(
        "scratch-in-links",
        "stored()",
        """
import tempfile
def stored():
    with tempfile.TemporaryDirectory() as folder:  # of thousands that there may be
        for i in range(500): os.symlink("x" * 4000, f"{folder}/{i}")
""",
        off=("filter",),
    ),
]
