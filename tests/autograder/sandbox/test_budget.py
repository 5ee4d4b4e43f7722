"""Budgets: the kernel refuses a student's process more memory, whatever its code tries."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.model.task import Answer, Budget
from autograder.sandbox.host import budget as budgets
from autograder.sandbox.host.budget import HELD_BYTES, Enforced, footprint
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent

pytestmark = pytest.mark.sandbox

MIB = 2**20
BUDGET = Budget(16 * MIB)

# A probe that is put into the process by a cell; `work` is what it does with n bytes.
PROBE = """
import mmap, numpy, os, sys, threading, torch, types
module = sys.modules["trial"] = types.ModuleType("trial")
def window(path, n, access=mmap.ACCESS_WRITE):
    with open(path, "r+b") as file: mapped = mmap.mmap(file.fileno(), n, access=access)
    if access == mmap.ACCESS_WRITE:
        for start in range(0, n, 4096): mapped[start] = 1
def work(n):
    {work}
def probe(student, n, metered=True):
    work(n)
    return "done"
module.probe = probe
"""
SPARSE = "with open('/dev/shm/sparse', 'wb') as file: file.truncate({n})"

# Code that takes n bytes in one way or another.
WAYS = {
    "a tensor": "torch.ones(n // 4)",
    "a tensor that is not touched": "torch.empty(n // 4)",
    "many small tensors": "kept = [torch.ones(2500) for _ in range(n // 10_000)]",
    "an array": "numpy.ones(n, numpy.uint8)",
    "bytes": "bytes(n)",
    "small objects": "kept = [str(i) * 50 for i in range(n // 290)]",
    "an anonymous map": "mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE)",
    "a window into a file in memory": "window('/dev/shm/sparse', n - n % 4096)",
    "a private copy of a file": "mmap.mmap(os.open('/dev/shm/sparse', 0), n, access=3)",
    "in pieces that it holds": "kept = [bytearray(n // 8) for _ in range(8)]",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as prepared:
        yield prepared


@pytest.fixture
def student(sandbox: Sandbox) -> Iterator[SandboxStudent]:
    with sandbox.open() as opened:
        yield opened


def run(student: SandboxStudent, work: str, n: int, budget: Budget = BUDGET) -> Answer:
    student.run_cell(PROBE.replace("{work}", work))
    if "sparse" in work:
        student.run_cell(SPARSE.format(n=40 * MIB))
    return student.run("trial:probe", {"n": n}, budget=budget)


@pytest.mark.parametrize("way", WAYS)
def test_what_fits_the_budget_is_had_and_what_does_not_is_refused(
    sandbox: Sandbox, way: str
) -> None:
    with sandbox.open() as student:
        answer = run(student, WAYS[way], 14 * MIB)
    assert (answer.value, answer.memory) == ("done", "within")
    assert bool(answer.doubt) == ("file" in way)  # which is there before
    # In a process of its own: the heap may keep room between small pieces, and that is held.
    with sandbox.open() as student:
        above = run(student, WAYS[way], 24 * MIB)
    assert above.memory == "refused"
    assert above.value == "done"  # the second call, which only names the mistake


def test_a_budget_is_kept_to_a_mebibyte(student: SandboxStudent) -> None:
    for off, memory in ((-MIB, "within"), (MIB, "refused")):
        assert run(student, "torch.ones(n // 4)", BUDGET.bytes + off).memory == memory


# Each level goes through C, so it takes of the stack, and counts twice.
NESTED = "level = lambda depth: depth and max(map(level, [depth - 1])); level(450)"


def test_calls_may_nest_as_deep_as_python_lets_them(student: SandboxStudent) -> None:
    answer = run(student, NESTED, 0)
    assert (answer.value, answer.memory, answer.doubt) == ("done", "within", "")


GROWTH = """
import re, torch
def mib():
    return int(re.search(r"VmData:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
a, b = torch.ones({a}), torch.ones({b})
before = mib()
c = a @ b.T
print(mib() - before)
"""


@pytest.mark.parametrize(("a", "b"), [("512, 512", "512, 512"), ("32, 16", "8192, 16")])
def test_a_matrix_product_takes_its_result_and_little_else(
    student: SandboxStudent, a: str, b: str
) -> None:
    # The result takes 1 MiB. With AVX-512 a library's first such product takes 8 more.
    (output,) = student.run_cell(GROWTH.format(a=a, b=b))
    assert float(output["text"]) < 4


def test_a_process_that_ends_itself_is_neither_within_nor_refused(student: SandboxStudent) -> None:
    answer = run(student, "os._exit(0)", 14 * MIB)
    assert (answer.lost is not None, answer.memory) == (True, "")


def test_a_budget_ends_with_its_call(student: SandboxStudent) -> None:
    for _ in range(2):
        assert run(student, "torch.ones(n // 4)", 14 * MIB).memory == "within"
        assert not student.run_cell("block = torch.ones(100 << 18); del block")
        printed = student.run_cell("import os; print(os.waitpid(os.fork() or os._exit(0), 0)[1])")
        assert printed[0]["text"] == "0\n"


REFUSED_BESIDE = {
    "a process": ("os.fork() or os._exit(0)", "can't start a thread or process"),
    "a program": ("os.system('true') and 1 / 0", "ZeroDivisionError"),
    "a thread": ("threading.Thread(target=work).start()", "can't start a thread or process"),
    "a file": ("open('/tmp/scratch', 'wb', buffering=0).write(b'x')", "write to a file"),
    "a hole in a file that is there": (
        "os.pwrite(os.open('/dev/shm/sparse', os.O_RDWR), b'x', 9)",
        "write to a file",
    ),
    "a higher limit": (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))",
        "Function not implemented",
    ),
    "a higher limit of its own": (
        "import resource; resource.prlimit(0, resource.RLIMIT_AS, (-1, -1))",
        "Function not implemented",
    ),
}


@pytest.mark.parametrize("what", REFUSED_BESIDE)
def test_a_budget_leaves_no_way_around_it(student: SandboxStudent, what: str) -> None:
    work, said = REFUSED_BESIDE[what]
    answer = run(student, work, 1)
    assert answer.raised is not None, answer
    assert said in " ".join(answer.raised)


def test_files_may_be_written_and_read_through_a_window_if_the_budget_says_so(
    student: SandboxStudent,
) -> None:
    work = "open('/tmp/host', 'wb').truncate(n); window('/tmp/host', n, mmap.ACCESS_READ)"
    host = Budget(4 * MIB, window_bytes=16 * MIB, files=True)
    assert run(student, work, 14 * MIB, host).memory == "within"
    assert run(student, work, 14 * MIB, replace(host, window_bytes=0)).memory == "refused"
    assert run(student, work, 14 * MIB, replace(host, files=False)).raised is not None


# Memory allocated before the call, which a budget would not count.

BEFORE = {
    "a tensor": "held = torch.ones({n} // 4)",
    "a file": SPARSE,
    "a file without a name": "import os; file = os.open('/tmp', os.O_TMPFILE | os.O_RDWR); "
    "os.truncate(file, {n})",
    "a file in a folder": "import os; os.makedirs('/tmp/a/b', exist_ok=True); "
    "file = open('/tmp/a/b/c', 'wb'); file.truncate({n})",
    "a private copy of a library": "import mmap; "
    "library = open('/course/packages/torch/lib/libtorch_cpu.so', 'rb'); "
    "held = mmap.mmap(library.fileno(), {n}, access=mmap.ACCESS_COPY)",
    "a window, which counts like its file": SPARSE.replace("{n}", "{n} // 2")
    + "\nimport mmap; file = open('/dev/shm/sparse', 'r+b'); "
    "held = mmap.mmap(file.fileno(), {n} // 2)",
    "addresses": "import ctypes; libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p; "
    "held = libc.mmap(None, ctypes.c_size_t({n}), 0, 0x22, -1, 0)",
}


@pytest.mark.parametrize("what", BEFORE)
def test_memory_that_a_cell_made_before_is_doubted(student: SandboxStudent, what: str) -> None:
    run(student, "pass", 1)
    student.run_cell(BEFORE[what].format(n=HELD_BYTES // 2))
    assert run(student, "pass", 1) == Answer("done", memory="within")
    student.run_cell(BEFORE[what].format(n=HELD_BYTES + MIB).replace("held", "more"))
    assert "MiB of its own" in run(student, "pass", 1).doubt


def test_many_files_left_open_are_doubted(student: SandboxStudent) -> None:
    student.run_cell("import os\nheld = [os.open('/dev/null', 0) for _ in range(20)]")
    assert "files, pipes and sockets open" in run(student, "pass", 1).doubt


def test_few_files_can_be_opened_in_a_call(student: SandboxStudent) -> None:
    assert run(student, "[os.pipe() for _ in range(10)]", 1).value == "done"
    answer = run(student, "[os.pipe() for _ in range(16)]", 1)
    assert answer.raised is not None
    assert "Too many open files" in answer.raised[1]


def test_files_count_only_where_the_budget_allows_none(student: SandboxStudent) -> None:
    student.run_cell(SPARSE.format(n=40 * MIB))
    assert not run(student, "pass", 1, replace(BUDGET, files=True)).doubt
    assert "of its own" in run(student, "pass", 1).doubt


def test_garbage_that_a_cell_left_is_not_held_against_it(student: SandboxStudent) -> None:
    student.run_cell("import torch\nx = [torch.ones(64 << 18)]; x.append(x); del x")
    assert run(student, "pass", 1) == Answer("done", memory="within")


def test_a_process_that_a_cell_left_running_is_doubted_and_an_ended_one_is_not(
    student: SandboxStudent,
) -> None:
    ended = "os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)"  # and stays, as a zombie
    student.run_cell(f"import os\nos.fork() or os._exit(0)\n{ended}")
    assert not run(student, "pass", 1).doubt
    student.run_cell("import os, signal\nos.fork() or (signal.pause(), os._exit(0))")
    assert "left processes running" in run(student, "pass", 1).doubt


def test_memory_given_back_to_make_room_is_doubted(student: SandboxStudent) -> None:
    student.run_cell("import torch\nheld = [torch.ones(6 << 18)]")
    answer = run(student, "held.clear(); torch.ones(n // 4)", 20 * MIB)
    assert answer.memory == "within"  # in the room that it made
    assert "freed memory that was held" in answer.doubt


@pytest.mark.parametrize(("freed_bytes", "doubted"), [(3 * MIB // 2, False), (3 * MIB, True)])
def test_a_call_may_free_a_little_as_a_shrinking_heap_does(
    student: SandboxStudent, freed_bytes: int, doubted: bool
) -> None:
    student.run_cell(f"import mmap\nheld = mmap.mmap(-1, {freed_bytes}, flags=mmap.MAP_PRIVATE)")
    answer = run(student, "held.close()", 1)
    assert answer.memory == "within"
    assert ("freed memory that was held" in answer.doubt) == doubted


def test_a_machine_that_enforces_nothing_is_found_out(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "_set", lambda pid, limits: None)  # as on a kernel that ignores it
    with sandbox.open() as student:
        answer = run(student, "torch.ones(n // 4)", 19 * MIB)
    assert answer.memory == ""
    assert "doesn't hold a process to a memory budget" in answer.doubt


def test_a_call_without_a_budget_is_free(student: SandboxStudent) -> None:
    student.run_cell(
        PROBE.replace("{work}", "torch.ones(n // 4); os.waitpid(os.fork() or os._exit(0), 0)")
    )
    assert student.run("trial:probe", {"n": 64 * MIB}) == Answer("done")


# The two halves separately, on a process that isn't a student's.


@pytest.fixture
def process() -> Iterator[int]:
    code = "import sys\nprint(flush=True)\nfor line in sys.stdin: exec(line)"
    with subprocess.Popen(
        [sys.executable, "-uc", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        child.stdout.readline()
        yield child.pid
        child.kill()


def test_a_footprint_is_what_the_kernel_counts(process: int) -> None:
    found = footprint(process)
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    assert found.data_bytes == int(status["VmData"].split()[0]) * 1024
    assert found.mapped_bytes == int(status["VmSize"].split()[0]) * 1024
    assert 0 < found.own_bytes < found.mapped_bytes
    assert found.devices


def test_files_on_other_devices_are_the_processs_own(process: int) -> None:
    everything = footprint(process)
    assert footprint(process, everything.devices).own_bytes == everything.own_bytes
    assert footprint(process, frozenset()).own_bytes > everything.own_bytes + MIB


def test_limits_are_set_back_as_they_were(process: int) -> None:
    import resource

    kinds = (resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE)
    before = [resource.prlimit(process, kind) for kind in kinds]
    prepared = footprint(process)
    enforced = Enforced(process, BUDGET, prepared)
    during = [resource.prlimit(process, kind)[0] for kind in kinds]
    assert during == [
        prepared.data_bytes + BUDGET.bytes,
        prepared.mapped_bytes + BUDGET.bytes,
        0,
        0,
    ]
    enforced.lift()
    assert [resource.prlimit(process, kind) for kind in kinds] == before


def test_a_process_that_is_gone_has_no_footprint() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    with pytest.raises(OSError, match=str(done.pid)):
        footprint(done.pid)


@pytest.mark.parametrize("own", [True, False], ids=["its own", "another user's"])
def test_only_another_users_folder_may_go_while_files_are_counted(
    tmp_path: Path, own: bool
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    user = os.getuid() if own else os.getuid() + 1
    expected = pytest.raises(FileNotFoundError) if own else contextlib.nullcontext()
    with expected:
        for status in budgets._statuses(os.getpid(), [str(tmp_path)], user):
            if stat.S_ISDIR(status.st_mode) and folder.exists():
                folder.rmdir()
    assert not folder.exists()
