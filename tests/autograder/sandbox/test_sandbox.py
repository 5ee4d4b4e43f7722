"""The sandbox against code that tries to escape. Each attack is run for real."""

import ast
import os
import select
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from autograder.base.limits import Allowance, Limits, ProcessLost
from autograder.content import lab_names
from autograder.model.scoring import SANE, Score, score
from autograder.sandbox.guest.shell import MAX_TEXT
from autograder.sandbox.host import clock
from autograder.sandbox.host.binds import GUEST
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.namespaces import Namespaces
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.unprotected import Unprotected
from peakmem.core import serialization
from tests.grading import released

pytestmark = pytest.mark.sandbox

MIB = 2**20
# No verdict depends on these seconds; tests of a limit have fewer, and wait patiently.
LIMITS = Limits(cell_seconds=60, submission_seconds=600, memory_bytes=512 * MIB, tmp_bytes=32 * MIB)
SHORT = 0.5


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(hides=("gfloat", "peakmem.numbers.rounding_outcomes"), limits=LIMITS) as prepared:
        yield prepared


@pytest.fixture
def student(sandbox):
    with sandbox.open() as opened:
        yield opened


@pytest.fixture
def hurried(student, monkeypatch):
    """A student whose cells are stopped soon."""
    monkeypatch.setattr(clock, "GRACE", SHORT)
    monkeypatch.setattr(clock, "_PATIENCE", 10**6)
    monkeypatch.setattr(student, "_limits", replace(LIMITS, cell_seconds=SHORT))
    return student


def printed(outputs):
    return "".join(o["text"] for o in outputs if o["output_type"] == "stream")


def error_of(outputs):
    return next((o["ename"] for o in outputs if o["output_type"] == "error"), None)


def probe(student, source, **options):
    """The outcomes of `largest_micro_batch`, a probe that is there, on a function of our own."""
    student.run_cell(source)
    return student.run(
        "peakmem.probes.lab05:largest_micro_batch", {"upper": 8}, lambda m: "fits", **options
    )


# What honest code needs.


def test_cells_share_names_and_their_outputs_come_back(student):
    assert student.run_cell("import numpy as np\nx = 6") == []
    outputs = student.run_cell("print('six', x)\nimport sys; print('err', file=sys.stderr)\nx * 7")
    assert printed(outputs) == "six 6\nerr\n"
    assert outputs[-1]["data"]["text/plain"] == "42"


def test_the_library_is_there_already_but_for_what_is_hidden(student):
    source = "import sys\nprint([n for n in names if n in sys.modules])"
    names = [
        "peakmem.meter",
        "peakmem.nn",
        "peakmem.probes.lab05",
        "peakmem.numbers.rounding_outcomes",
        "gfloat",
    ]
    found = printed(student.run_cell(f"names = {names}\n{source}"))
    assert found == f"{names[:3]}\n"


def test_a_figure_is_a_png(student):
    outputs = student.run_cell("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    assert [o["data"]["image/png"][:8] for o in outputs] == ["iVBORw0K"]


def test_an_error_ends_its_cell_only(student):
    assert error_of(student.run_cell("x = 1\n1 / 0\nx = 2")) == "ZeroDivisionError"
    assert error_of(student.run_cell("def broken(:")) == "SyntaxError"
    assert printed(student.run_cell("print(x)")) == "1\n"


def test_torch_trains_in_there(student):
    source = "import torch\nw = torch.ones(3, requires_grad=True)\n(w * w).sum().backward()\n"
    assert printed(student.run_cell(source + "print(w.grad.tolist())")) == "[2.0, 2.0, 2.0]\n"


def test_students_do_not_see_each_other(sandbox):
    with sandbox.open() as first, sandbox.open() as second:
        first.run_cell("left_behind = 1\nopen('/tmp/left', 'w').write('x')")
        assert error_of(second.run_cell("left_behind")) == "NameError"
        assert printed(second.run_cell("import os\nprint(os.listdir('/tmp'))")) == "['home']\n"
        seen = printed(second.run_cell("print([p for p in os.listdir('/proc') if p.isdigit()])"))
        assert seen == "['1']\n"


def test_the_probe_asks_and_its_answer_comes_back(student):
    source = "def largest_micro_batch(run, upper):\n    run(3)\n    run(5)\n    return upper"
    answer = probe(student, source)
    assert answer.value == ("value", 8)
    assert answer.asked == ((3, "fits"), (5, "fits"))


# Actions before the reply that make the memory's peak another program's, or no program's.
ANOTHER = """
import os, sys
from peakmem.core import serialization
def largest_micro_batch(run, upper):
    frame = sys._getframe()
    while "request" not in frame.f_locals or "connection" not in frame.f_locals:
        frame = frame.f_back
    fd = frame.f_locals["connection"].fileno()
    data = serialization.encode({"id": frame.f_locals["request"]["id"], "value": 1})
    with open("/tmp/reply", "wb") as file: file.write(len(data).to_bytes(8, "big") + data)
    os.set_inheritable(fd, True)
    TURN
"""


def test_another_program_in_the_process_is_not_believed(student):
    turn = "os.execv('/bin/sh', ['sh', '-c', f'cat /tmp/reply >&{fd}; sleep 9'])"
    answer = probe(student, ANOTHER.replace("TURN", turn))
    assert answer.value is None
    assert "put another in its place" in answer.lost


def test_a_forged_reply_of_the_same_process_would_be_taken(student):
    # Shows that the one above is refused for what the process is, not for how it replied.
    turn = "os.write(fd, open('/tmp/reply', 'rb').read()); os.read(fd, 0)"
    assert probe(student, ANOTHER.replace("TURN", turn)).value == 1


HIDES = "import ctypes\nprint(ctypes.CDLL(None).prctl({option}, 0, 0, 0, 0))"


@pytest.mark.parametrize("option", [4, 35], ids=["not dumpable", "other addresses"])
def test_a_process_cannot_hide_its_memory(student, option):
    assert printed(student.run_cell(HIDES.format(option=option))) == "-1\n"


def test_outside_a_process_can_hide_its_memory():
    # Shows that the call above works unless it is refused.
    with Sandbox(limits=LIMITS, preload=(), backend=Unprotected()) as bare, bare.open() as student:
        assert printed(student.run_cell(HIDES.format(option=4))) == "0\n"


# Places that it must not reach.


@pytest.mark.parametrize(
    "source",
    [
        "import socket; socket.create_connection(('127.0.0.1', {port}))",
        "import socket; socket.create_connection(('10.0.0.1', 80))",
        "import socket; socket.getaddrinfo('example.com', 80)",
        "import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}')",
    ],
)
def test_there_is_no_network(student, source):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        name = f"peakmem-test-{os.getpid()}"
        local.bind(f"\0{name}")
        local.listen()
        outputs = student.run_cell(source.format(port=server.getsockname()[1], name=name))
    assert error_of(outputs) in {"OSError", "URLError", "gaierror", "ConnectionRefusedError"}


def test_the_same_connection_works_outside():
    # Shows that the test above would notice a network.
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


@pytest.mark.parametrize("name", ["solutions", "autograder/content", "bank", ".git", "labs"])
def test_the_course_is_not_there(student, repository, name):
    there = repository / name
    assert there.exists()
    assert (
        printed(student.run_cell(f"import os; print(os.path.exists({str(there)!r}))")) == "False\n"
    )


def test_nothing_of_the_grader_is_there_but_what_runs_it(student):
    listing = "import glob; print(glob.glob('/course/autograder/**/*.py', recursive=True))"
    guest = {f"/course/autograder/sandbox/guest/{path.name}" for path in GUEST.glob("*.py")}
    assert set(ast.literal_eval(printed(student.run_cell(listing)))) == guest
    assert error_of(student.run_cell("import autograder.content")) == "ModuleNotFoundError"


def test_files_of_this_machine_are_not_there(student, tmp_path):
    secret = tmp_path / "gradebook.db"
    secret.write_text("everybody's grades")
    for path in (secret, Path("/etc/shadow"), Path("/etc/passwd"), Path.home() / ".bashrc"):
        assert error_of(student.run_cell(f"open({str(path)!r})")) == "FileNotFoundError"


def test_what_is_there_cannot_be_written(student):
    for path in (
        "/course/peakmem/core/serialization.py",
        "/course/packages/x",
        "/dev/x",
        "/proc/self/clear_refs",
        "/usr/bin/x",
        f"{sys.base_prefix}/x",
        "/x",
    ):
        outputs = student.run_cell(f"open({path!r}, 'w')")
        assert error_of(outputs) in {"OSError", "PermissionError"}


def test_the_environment_holds_nothing_of_the_graders(monkeypatch):
    monkeypatch.setenv("GRADERS_TOKEN", "canary")
    with Sandbox(limits=LIMITS, preload=()) as other, other.open() as student:
        seen = printed(student.run_cell("import os; print(os.environ)"))
    assert "canary" not in seen
    assert "OMP_NUM_THREADS" in seen


@pytest.mark.parametrize("module", ["gfloat", "peakmem.numbers.rounding_outcomes"])
def test_modules_with_the_answers_are_hidden(student, module):
    assert error_of(student.run_cell(f"import {module}")) == "ImportError"


# Ways around a module that refuses to be imported: the rest of its package, and compiled copies.
PIECES = """
import glob, importlib.machinery, importlib.util, sys, types
sys.modules["gfloat"] = stub = types.ModuleType("gfloat")
stub.__path__ = ["/course/packages/gfloat"]
try:
    import gfloat.round
    print("REACHED gfloat.round")
except ImportError:
    pass
for path in glob.glob("/course/peakmem/numbers/__pycache__/formats*"):
    print("REACHED", path)
"""


def test_no_piece_of_a_hidden_module_is_there(student):
    assert student.run_cell(PIECES) == []


def test_only_the_labs_own_answers_are_hidden():
    with Sandbox(limits=LIMITS) as other, other.open() as student:
        assert student.run_cell("import gfloat, peakmem.numbers.rounding_outcomes") == []
        assert printed(student.run_cell(PIECES)).startswith("REACHED gfloat.round")


def test_no_privilege_is_left(student):
    status = printed(student.run_cell("print(open('/proc/self/status').read())"))
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert [fields[name].strip("0") for name in ("CapPrm", "CapEff", "CapBnd")] == ["", "", ""]
    assert fields["NoNewPrivs"] == "1"
    source = (
        "import ctypes; c = ctypes.CDLL(None)\nprint([c.unshare(f) for f in (0x10000000, 0x20000)])"
    )
    assert printed(student.run_cell(source)) == "[-1, -1]\n"
    mount = "print(c.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None), c.umount2(b'/tmp', 2))"
    assert printed(student.run_cell(mount)) == "-1 -1\n"


def test_the_student_is_nobody_on_the_host(sandbox):
    with sandbox.open() as student:
        # Its command line is there from its first word on, and not yet when Popen returns.
        child = "['sh', '-c', 'echo on; read x', 'waits-1234'], stdin=-1, stdout=-1"
        student.run_cell(f"import subprocess\nsubprocess.Popen({child}).stdout.readline()")
        table = subprocess.run(
            ["ps", "-eo", "uid=,args="], capture_output=True, text=True, check=True
        )
        owners = [line.split()[0] for line in table.stdout.splitlines() if "waits-1234" in line]
    assert owners
    assert owners != ["0"]


# Resources that it must not use up.


def lost(student, source):
    with pytest.raises(ProcessLost) as caught:
        student.run_cell(source)
    return str(caught.value)


def test_a_loop_that_swallows_every_exception_is_stopped(hurried):
    endless = "def f():\n    while True:\n        try:\n            while True: pass\n"
    deaf = "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
    source = deaf + endless + "        except BaseException: pass\nf()"
    assert "0.5 s" in lost(hurried, source)
    assert "0.5 s" in lost(hurried, "print('alive')"), "what is lost stays lost, and says why"


# Ways to keep talking, so that the other side never waits: time while it waits isn't charged.
TALKS = {
    "a byte now and then": "send((10**6).to_bytes(8, 'big'))\n    while True:\n"
    "        send(b'x'); time.sleep(0.01)",
    "questions": "while True: ask('m')",
}
TALKER = """
import os, signal, sys, time
def largest_micro_batch(run, upper):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    frame = sys._getframe()
    while "ask" not in frame.f_locals: frame = frame.f_back
    ask = frame.f_locals["ask"]
    while "connection" not in frame.f_locals: frame = frame.f_back
    fd = frame.f_locals["connection"].fileno()
    def send(data): os.write(fd, data)
    BEFORE
    TALK
"""


@pytest.mark.parametrize("talk", TALKS)
def test_who_talks_without_end_is_stopped_in_time(hurried, talk):
    source = TALKER.replace("BEFORE", "").replace("TALK", TALKS[talk])
    answer = probe(hurried, source)
    assert answer.lost is not None
    assert "ran for over 0.5 s" in answer.lost or "this exercise doesn't allow" in answer.lost


@pytest.mark.parametrize("talk", TALKS)
def test_who_talks_without_end_may_not_use_more_memory(student, talk):
    hoard = (
        "for _ in range(4):\n        if os.fork() == 0:\n"
        "            block = bytearray(300 << 20); time.sleep(60)"
    )
    source = TALKER.replace("BEFORE", hoard).replace("TALK", TALKS[talk])
    answer = probe(student, source)
    assert answer.lost is not None
    assert "GiB of memory" in answer.lost


def test_processes_of_one_submission_share_its_time(sandbox):
    left = Allowance(replace(LIMITS, submission_seconds=0.5))
    with sandbox.open() as first:
        first.share(left)
        lost(first, "import time; time.sleep(60)")
    assert "0.5 s" in str(left.spent())
    with sandbox.open() as second:
        second.share(left)
        assert "0.5 s" in lost(second, "1 + 1")


def test_the_time_that_a_submission_keeps_the_grader_busy_is_bounded(student, monkeypatch):
    monkeypatch.setattr("autograder.base.limits._MAX_CPU", 0.2)
    left = Allowance(LIMITS)
    student.share(left)
    answer = probe(student, TALKER.replace("BEFORE", "").replace("TALK", "while True: ask('m')"))
    assert answer.lost is not None
    assert "busy" in answer.lost
    assert "busy" in str(left.spent())


def test_each_slot_keeps_to_a_processor_of_its_own():
    where = "import os\nprint(sorted(os.sched_getaffinity(0)))"
    wider = (
        "try: os.sched_setaffinity(0, range(os.cpu_count()))\nexcept OSError as e: print(e.errno)"
    )
    seen = []
    for slot in (0, 1):
        with Sandbox(limits=LIMITS, preload=(), slot=slot) as prepared, prepared.open() as student:
            seen.append(printed(student.run_cell(where)))
            assert printed(student.run_cell(wider)) == "38\n"
            assert printed(student.run_cell(where)) == seen[-1]
    assert all(len(eval(text)) == 1 for text in seen)
    assert len(set(seen)) == min(2, len(os.sched_getaffinity(0)))


def test_memory_is_bounded(student):
    source = "blocks = []\nwhile True: blocks.append(bytearray(64 << 20))"
    assert error_of(student.run_cell(source)) == "MemoryError"


def test_memory_of_all_processes_together_is_bounded(student):
    source = (
        "import os, time\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        block = bytearray(b'x' * (200 << 20))\n"
        "        time.sleep(60)\n"
        "time.sleep(60)\n"
    )
    assert "0.5 GiB" in lost(student, source)


def test_shared_memory_and_files_are_bounded(student):
    for folder in ("/dev/shm", "/tmp"):
        source = f"with open('{folder}/big', 'wb') as f:\n    while True: f.write(b'x' * (1 << 20))"
        assert error_of(student.run_cell(source)) == "OSError"
    many = "n = 0\nwhile True:\n    open(f'/tmp/{n}', 'w').close()\n    n += 1"
    assert error_of(student.run_cell(many)) == "OSError"
    shared = "import mmap\nm = mmap.mmap(-1, 1 << 40)"
    assert error_of(student.run_cell(shared)) in {"OSError", "MemoryError"}


UNMAPPED = """
import ctypes, os
libc = ctypes.CDLL(None)
made = []
try:
    made.append(os.memfd_create("x"))
except OSError:
    pass
made += [n for n in (libc.shmget(0, 4096, 0o1600), libc.msgget(0, 0o1600)) if n >= 0]
print(len(made))
"""


def test_no_memory_is_to_be_had_that_no_process_maps(student):
    """It would count in no process's size."""
    assert printed(student.run_cell(UNMAPPED)) == "0\n"


def test_a_fork_bomb_burns_out_and_nothing_of_it_is_left(sandbox, monkeypatch):
    monkeypatch.setattr(clock, "GRACE", SHORT)
    monkeypatch.setattr(clock, "_PATIENCE", 10**6)
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    with sandbox.open() as student:
        monkeypatch.setattr(student, "_limits", replace(LIMITS, cell_seconds=SHORT))
        lost(student, bomb)
        assert len(descendants(sandbox)) <= LIMITS.processes + 5
    assert len(descendants(sandbox)) <= 3
    with sandbox.open() as next_student:
        assert printed(next_student.run_cell("print('fine')")) == "fine\n"


def descendants(sandbox):
    found = psutil.Process(sandbox._process.pid).children(recursive=True)
    return [process for process in found if alive(process)]


def alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended while the others were looked at
        return False


def test_the_next_process_is_made_while_one_is_there(sandbox, monkeypatch):
    asked = []
    send_fds = socket.send_fds
    monkeypatch.setattr(socket, "send_fds", lambda *a: asked.append(a) or send_fds(*a))
    with sandbox.open() as first:
        sandbox.make_ready()
        sandbox.make_ready()
        assert len(asked) == 2
        first.run_cell("x = 1")
    with sandbox.open() as second:
        assert second.run_cell("x")[-1]["ename"] == "NameError"
    assert len(asked) == 2


@pytest.mark.parametrize("backend", [Namespaces(), Unprotected()])
def test_a_process_that_was_made_ready_goes_with_its_sandbox(backend):
    with Sandbox(limits=LIMITS, preload=(), backend=backend) as other:
        other.make_ready()
        other._next.meet()
        below = psutil.Process(other._next._pid)
        assert alive(below)
    psutil.wait_procs([below])


def test_a_process_made_ready_in_a_sandbox_that_is_gone_is_not_met():
    with Sandbox(limits=LIMITS, preload=()) as other:
        with other.open():
            pass  # it has started
        for process in descendants(other):
            process.suspend()  # otherwise the student's process could say that it is ready
        other.make_ready()
        for process in descendants(other):
            with suppress(psutil.NoSuchProcess):  # the first one's end may be the others' too
                process.kill()
        other._process.kill()
        other._process.wait()
        with pytest.raises(IsolationError, match="gone"):
            other.open()
        other.make_ready()  # says nothing
        with pytest.raises(IsolationError, match="gone"):
            other.open()


# A program that has just begun has an empty command line for a moment.
DETACH = """
import subprocess
daemon = subprocess.Popen(["sleep", "4321"], start_new_session=True)
while "4321" not in open(f"/proc/{daemon.pid}/cmdline").read():
    pass
"""


def test_a_daemon_does_not_outlive_its_submission(sandbox):
    with sandbox.open() as student:
        assert student.run_cell(DETACH) == []
        assert any("4321" in process.cmdline() for process in descendants(sandbox))
    assert not any("4321" in process.cmdline() for process in descendants(sandbox))


def test_the_next_student_is_not_met_before_the_last_ones_processes_are_gone(sandbox):
    last = sandbox.open()
    assert last.run_cell("block = bytearray(200 << 20)") == []
    sandbox.make_ready()
    assert select.select([sandbox._next._enclosure.connection], [], [], 60)[0], "it waits to be met"
    handle = os.pidfd_open(last._pid)
    sandbox.part_with(last)
    with sandbox.open():
        assert select.select([handle], [], [], 0)[0], "the last one has ended"
    os.close(handle)


# Once a block of 8 MiB was freed, malloc takes smaller ones from its heap, and keeps them there.
FREED = """
import numpy as np
def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
np.ones(2**20)
before = resident()
blocks = [np.ones(2**17) for _ in range(12)]
del blocks
print(resident() - before > 8 * 2**20)
"""


@pytest.mark.parametrize("measured", [True, False])
def test_freed_memory_is_kept_only_where_none_is_measured(measured):
    with Sandbox(limits=LIMITS, preload=(), measured=measured) as other, other.open() as student:
        assert printed(student.run_cell(FREED)) == f"{not measured}\n"


# A module that each student's process has to import again delays every submission.
IMPORTED = """
import sys
there = set(sys.modules)
{}
print([name for name in set(sys.modules) - there if name.startswith("peakmem.")])
"""


@pytest.mark.parametrize("lab", lab_names())
def test_what_a_lab_imports_of_the_library_is_there_already(student, lab):
    first = next(cell for cell in released(lab)["cells"] if cell["cell_type"] == "code")
    assert printed(student.run_cell(IMPORTED.format(first["source"]))).endswith("[]\n")


def test_an_output_flood_is_cut(student):
    outputs = student.run_cell("for _ in range(10**5): print('x' * 1000)")
    assert len(printed(outputs)) < 30_000
    assert "is cut" in printed(outputs)
    assert student.run_cell("import os\nfor _ in range(1000): os.write(2, b'x' * 10000)") == []


FLOODS = {
    "of characters": "print('x' * 10**5, file=sys.stderr)",
    "of outputs": "for i in range(300): print(i, file=sys.stderr if i % 2 else sys.stdout)",
}
TEST = """
import sys, unittest
class Test(unittest.TestCase):
    def test_it(self):
        flood()
        self.assertTrue(False)
unittest.main(argv=[""], exit=False);
"""


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_what_a_test_says_after_a_flood_is_kept(student, flood):
    student.run_cell(f"def flood():\n    {flood}")
    outputs = student.run_cell(TEST)
    assert len(str(outputs)) < 60_000
    assert score(outputs, 2, SANE) == Score(0.0, "The test's unittest FAILED (failures=1).")


def test_a_flood_that_is_cut_in_the_middle_of_what_failed_hides_nothing(student):
    student.run_cell("def flood(): pass")
    said = student.run_cell(TEST)[0]["text"]
    before = MAX_TEXT - len(said) + len("(failures=1)\n")
    student.run_cell(f"def flood(): print('x' * {before - 1}, file=sys.stderr)")
    outputs = student.run_cell(TEST)
    assert outputs[0]["text"].endswith("FAILED "), "the cut is where it was meant to be"
    assert score(outputs, 2, SANE) == Score(0.0, "The test's unittest FAILED (failures=1).")


# Calls that it must not make to the kernel.

# The calls do no harm where they are let through: there is no place of that name to mount on.
KERNEL = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for name, *arguments in [
    ("ptrace", 0, 0, 0, 0), ("unshare", 0x10000000), ("mount", b"x", b"/nowhere", b"x", 0, None)
]:
    print(name, getattr(libc, name)(*arguments), errno.errorcode.get(ctypes.get_errno()))
"""


def test_system_calls_that_no_notebook_needs_are_refused(student):
    refused = "ptrace -1 ENOSYS\nunshare -1 ENOSYS\nmount -1 ENOSYS\n"
    assert printed(student.run_cell(KERNEL)) == refused


@pytest.mark.parametrize("family", ["AF_NETLINK", "AF_PACKET", "AF_VSOCK"])
def test_sockets_are_of_families_that_a_namespace_encloses(student, family):
    outputs = student.run_cell(f"import socket; socket.socket(socket.{family}, 3)")
    assert outputs[0]["evalue"] == "[Errno 38] Function not implemented"
    assert student.run_cell("for f in (1, 2): socket.socket(f).close()") == []


def test_threads_and_child_processes_work(student):
    source = (
        "import subprocess, threading, multiprocessing as m\n"
        "threads = [threading.Thread(target=print, args=('thread',)) for _ in range(2)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout)\n"
        "with m.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1]))\n"
    )
    assert printed(student.run_cell(source)) == "thread\nthread\nchild\n\n[1]\n"


def test_outside_the_same_calls_and_memory_are_to_be_had():
    # Shows that the tests above would notice a filter that lets all through.
    with Sandbox(limits=LIMITS, preload=(), backend=Unprotected()) as bare, bare.open() as student:
        assert printed(student.run_cell(UNMAPPED)) == "3\n"
        assert "ENOSYS" not in printed(student.run_cell(KERNEL.replace("0x10000000", "0")))
        assert student.run_cell("import socket; socket.socket(socket.AF_NETLINK, 3).close()") == []
        assert student.run_cell("_ = open('/proc/self/clear_refs', 'w').write('5')") == []


# Attacks on the protocol.


def write_to_all(data):
    """A cell that writes to every open file, the grader's socket among them."""
    return (
        "import os\n"
        "for fd in range(3, 64):\n"
        f"    try: os.write(fd, {data!r})\n"
        "    except OSError: pass\n"
    )


@pytest.mark.parametrize(
    "end", ["import os; os._exit(0)", "import ctypes; ctypes.string_at(0)", "import os; os.abort()"]
)
def test_a_process_that_ends_itself_is_told_apart_from_a_wrong_answer(student, end):
    assert "ended its own process" in lost(student, end)
    assert student.run("peakmem.probes.lab05:largest_micro_batch", {"upper": 1}).lost


def test_an_answer_that_is_too_large_is_not_taken(student):
    answer = probe(student, "def largest_micro_batch(run, upper): return 'x' * (40 << 20)")
    assert answer.raised is not None
    assert "too large" in answer.raised[1]


def test_an_announced_flood_is_refused_before_it_is_read(student):
    assert "couldn't be accepted" in lost(student, write_to_all(b"\xff" * 8))


@pytest.mark.parametrize(
    "message", [{"id": 7, "value": 1}, [], "text", {"value": 3}, {"id": 1, "ask": "anything"}]
)
def test_forged_messages_are_no_answers(student, message):
    data = serialization.encode(message)
    frame = len(data).to_bytes(8, "big") + data
    assert "Your code's process" in lost(student, write_to_all(frame))


def test_a_forged_exception_is_believed_only_in_its_form(student):
    forged = (
        "import sys\n"
        "def largest_micro_batch(run, upper):\n"
        "    frame = sys._getframe()\n"
        "    while '_become_shell' not in frame.f_globals: frame = frame.f_back\n"
        "    frame.f_globals['describe'] = lambda error: (1 << 10**5, [['x']], {'a': 'b'})\n"
        "    raise ValueError"
    )
    assert probe(student, forged).raised == ("", "", "")


def test_what_cannot_be_sent_is_an_exception_of_the_probe(student):
    answer = probe(student, "def largest_micro_batch(run, upper): return object()")
    assert answer.raised is not None
    assert answer.raised[0] == "PlainError"


def test_a_sandbox_that_cannot_start_says_why(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(IsolationError, match=r"nowhere/python|doctor"):
        Sandbox(limits=LIMITS).open()


def test_without_isolation_the_same_code_runs_and_reaches_everything(tmp_path):
    # Shows that the sandbox, and nothing else, makes the attacks above fail.
    reachable = tmp_path / "reachable"
    reachable.write_text("yes")
    with Sandbox(limits=LIMITS, preload=(), backend=Unprotected()) as bare, bare.open() as student:
        assert printed(student.run_cell(f"print(open({str(reachable)!r}).read())")) == "yes\n"


def test_closing_the_sandbox_ends_it(tmp_path):
    prepared = Sandbox(limits=LIMITS, preload=())
    pid = prepared._process.pid
    prepared.close()
    assert not Path(f"/proc/{pid}").exists()
