"""The time charged to a student's processes, on a machine with made-up seconds."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from autograder.base import limits
from autograder.base.limits import Allowance, Limits, MachineBusy, ProcessLost
from autograder.base.proc import stat_fields
from autograder.sandbox.host import clock
from autograder.sandbox.host.clock import GRACE, Processes, Stopwatch, Turn, look_at
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent

ONE, CHILD = 1, 2


class Machine:
    """The clock, the processes, and the grader's own seconds, all as a test sets them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.processes = Processes({ONE: 5.0}, 3.0, {ONE: 2.0})
        self.computed, self.waited = 7.0, 9.0

    def watch(self) -> Stopwatch:
        return Stopwatch(
            ONE, lambda _: self.processes, lambda: self.now, lambda: (self.computed, self.waited)
        )

    def passes(self, seconds: float, **shown: object) -> None:
        self.now += seconds
        self.processes = replace(self.processes, **shown)


def charged(*steps: dict) -> float:
    machine = Machine()
    watch = machine.watch()
    for step in steps:
        shown = dict(step)
        machine.computed += shown.pop("computed_by_us", 0.0)
        machine.waited += shown.pop("waited_by_us", 0.0)
        machine.passes(**shown)
        watch.read()
    return watch.charged


COMPUTES = {"computed": {ONE: 8.0}, "asleep": False}
RUNNABLE = {"asleep": False}


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ([{"seconds": 3, **COMPUTES}], 3),
        ([{"seconds": 4}], 4),
        ([{"seconds": 10, **COMPUTES, "waited": {ONE: 9.0}}], 3),
        ([{"seconds": 10, "computed": {ONE: 8.0}, "waited": {ONE: 9.0}}], 3),
        ([{"seconds": 10, "computed": {ONE: 8.0}, "waited": {ONE: 4.0}}], 8),
        ([{"seconds": 5, **RUNNABLE}], 0),
        ([{"seconds": 5, **RUNNABLE}, {"seconds": 1, "waited": {ONE: 7.0}, "asleep": True}], 1),
        ([{"seconds": 5, "on_disk": True, **RUNNABLE}], 0),
        ([{"seconds": 5, "on_disk": True}, {"seconds": 5, "on_disk": False}, {"seconds": 2}], 2),
        ([{"seconds": 3, "computed": {ONE: 8.0, CHILD: 3.0}, "asleep": False}], 6),
        ([{"seconds": 9, "waited": {ONE: 2.0, CHILD: 5.0}}], 4),
        ([{"seconds": 2, "waited_by_us": 1.5}], 0.5),
        ([{"seconds": 2, "computed_by_us": 1.5, **RUNNABLE}], 1.5),
        ([{"seconds": 5, "computed": {ONE: 7.0}, "waited": None}, {"seconds": 5}], 2),
        ([{"seconds": 5, "computed": {}, "reaped": 0.0, "waited": {}}], 5),
    ],
    ids=[
        *("computes", "sleeps", "waits and computes", "waited, and sleeps now", "waited and slept"),
        *("may be waiting", "had been waiting", "on disk", "was on disk", "two at once"),
        *("its child waited", "we waited", "we computed", "nobody tells who waited", "is gone"),
    ],
)
def test_computing_and_sleeping_are_charged_and_waiting_is_not(steps, seconds):
    assert charged(*steps) == pytest.approx(seconds)


BUSY_CHILD = {"computed": {ONE: 5.0, CHILD: 4.0}, "asleep": False}


def test_what_a_child_computed_is_charged_once():
    waited_for = {"computed": {ONE: 5.0}, "reaped": 7.5}
    assert charged({"seconds": 4, **BUSY_CHILD}, {"seconds": 0, **waited_for}) == 4.5


def test_what_a_child_computed_stays_charged_where_nobody_waits_for_it():
    ignored = {"computed": {ONE: 6.0}, "asleep": False}
    assert charged({"seconds": 4, **BUSY_CHILD}, {"seconds": 1, **ignored}) == 5


# One request.

LIMITS = Limits(submission_seconds=100.0)


class Told:
    """A process that records its signals."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.signals: list[int] = []
        monkeypatch.setattr(
            signal, "pidfd_send_signal", lambda _handle, number: self.signals.append(number)
        )


@pytest.fixture
def told(monkeypatch):
    return Told(monkeypatch)


def turn_of(machine: Machine, seconds: float, left: Allowance | None = None) -> Turn:
    return Turn(ONE, -1, seconds, left or Allowance(LIMITS), machine.watch())


def test_a_request_is_told_once_that_its_time_is_up_and_then_lost(told):
    machine = Machine()
    turn = turn_of(machine, seconds=3)
    for passed, signals in ((2.9, 0), (0.2, 1), (GRACE - 0.2, 1)):
        machine.passes(passed)
        turn.look()
        assert told.signals == [signal.SIGALRM] * signals
    machine.passes(0.2)
    with pytest.raises(ProcessLost, match="ran for over 3 s") as caught:
        turn.look()
    assert not isinstance(caught.value, MachineBusy)


def test_a_request_that_is_kept_waiting_for_too_long_is_nobodys_fault(told):
    machine = Machine()
    turn = turn_of(machine, seconds=3)
    patience = clock._PATIENCE * (3 + GRACE)
    machine.passes(patience - 1, waited={ONE: patience + 1 - 0.5})
    turn.look()
    machine.passes(1, waited={ONE: patience + 2 - 0.5})
    with pytest.raises(MachineBusy, match=r"in 50 s your code got to run for 0\.5 of its 3 s"):
        turn.look()
    assert told.signals == []


def test_whose_time_is_up_has_no_excuse_that_it_could_not_heed_it(told):
    machine = Machine()
    turn = turn_of(machine, seconds=3)
    machine.passes(3)
    turn.look()
    machine.passes(10**6, waited={ONE: 10.0**6 + 2})
    with pytest.raises(ProcessLost, match="ran for over 3 s"):
        turn.look()
    assert told.signals == [signal.SIGALRM]


def test_a_process_that_has_ended_need_not_be_told():
    machine = Machine()
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    handle = os.pidfd_open(child.pid)
    child.wait()
    turn = Turn(ONE, handle, 1.0, Allowance(LIMITS), machine.watch())
    machine.passes(2)
    turn.look()
    os.close(handle)


def test_requests_are_charged_to_their_submission(told):
    machine, left = Machine(), Allowance(LIMITS)
    for _ in range(11):
        assert left.spent() is None
        turn = turn_of(machine, seconds=60, left=left)
        machine.passes(5)
        turn.look()
        machine.passes(5, waited={ONE: machine.processes.waited[ONE] + 0.5})
        turn.end()
    assert "may take 100 s" in str(left.spent())


def test_short_requests_are_charged_without_a_look_and_never_much(told):
    machine, left = Machine(), Allowance(LIMITS)
    for by_the_clock in (0.01, 10**6):
        turn = turn_of(machine, seconds=1, left=left)
        machine.processes = Processes()
        machine.passes(by_the_clock)
        turn.end()
    left.use(100 - 0.01 - 2 * clock._TICK)
    assert left.spent() is None
    left.use(2 * clock._TICK)
    assert left.spent() is not None


def test_starts_are_counted_not_timed():
    left = Allowance(replace(LIMITS, submission_seconds=2.05))
    for _ in range(20):
        left.use_start()
        assert left.spent() is None
    left.use_start()
    assert "may take 2.05 s" in str(left.spent())


def test_a_submission_that_is_kept_waiting_for_too_long_is_nobodys_fault(monkeypatch):
    now = 50.0
    monkeypatch.setattr(limits.time, "monotonic", lambda: now)
    left = Allowance(LIMITS)
    now += LIMITS.wall_seconds - 1
    assert left.spent() is None
    now += 1
    assert isinstance(left.spent(), MachineBusy)
    left.use(100)
    assert not isinstance(left.spent(), MachineBusy), "its own time was up as well"


# What the kernel tells.

BURNS = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
WITH_CHILD = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BURNS!r}], stdin=subprocess.PIPE)
input()
child.communicate(b"\\n")
print(flush=True)
input()
"""
IN_THREADS = f"""
import threading
threads = [threading.Thread(target=exec, args=({BURNS.removesuffix("input()")!r},))]
for thread in threads: thread.start()
for thread in threads: thread.join()
input()
"""


@pytest.fixture
def program():
    """Starts a Python, which is ended with the test."""
    started = []

    def start(source: str) -> subprocess.Popen:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def total(seen: Processes) -> float:
    return sum(seen.computed.values()) + seen.reaped


@pytest.mark.parametrize("source", [BURNS, WITH_CHILD, IN_THREADS], ids=["own", "child", "thread"])
def test_what_any_process_or_thread_computes_is_seen(program, source):
    process = program(source)
    process.stdout.readline()
    assert total(look_at(process.pid)) >= 0.19  # the kernel tells hundredths


def test_what_a_child_computed_is_seen_after_its_end(program):
    process = program(WITH_CHILD)
    process.stdout.readline()
    seen = look_at(process.pid)
    assert len(seen.computed) == 2
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()
    after = look_at(process.pid)
    assert len(after.computed) == 1
    assert after.reaped >= 0.19
    assert total(after) >= total(seen)


def test_who_runs_is_not_asleep():
    assert not look_at(os.getpid()).asleep


def test_who_waits_for_input_is_asleep_in_the_end(program):
    process = program("print(flush=True)\ninput()")
    process.stdout.readline()
    while not look_at(process.pid).asleep:
        os.sched_yield()


HELD_UP = """
import ctypes
libc = ctypes.CDLL(None)
libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.addressof(stack) + (1 << 16) - 64 & ~63
libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, 0x4111, None)  # VFORK, VM, SIGCHLD
"""


def test_who_waits_for_a_child_is_asleep_and_not_at_the_disk(program):
    process = program(HELD_UP)
    seen = look_at(process.pid)
    while sorted(stat_fields(f"/proc/{pid}")[0] for pid in seen.computed) != ["D", "S"]:
        os.sched_yield()
        seen = look_at(process.pid)
    seen = look_at(process.pid)
    for child in seen.computed.keys() - {process.pid}:
        os.kill(child, signal.SIGKILL)  # it would outlive its parent
    assert (seen.asleep, seen.on_disk) == (True, False)


def test_who_shares_a_processor_waits(program):
    """Each has to wait for as long as the other computes."""
    if not clock._TELLS:
        pytest.skip("this kernel does not tell who waited")
    one = min(os.sched_getaffinity(0))
    turns = f"import os, time\nos.sched_setaffinity(0, {{{one}}})\n"
    spins = program(turns + "print(flush=True)\nwhile True: pass")
    spins.stdout.readline()
    process = program(turns + BURNS)
    process.stdout.readline()
    assert sum(look_at(process.pid).waited.values()) > 0.02


def test_a_process_that_is_no_more_shows_nothing():
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    assert look_at(child.pid) == Processes({}, 0.0, {} if clock._TELLS else None)


def test_the_grader_is_charged_for_one_thread_only():
    before, _ = clock.grader()
    thread = threading.Thread(target=exec, args=(BURNS.partition("print")[0],))
    thread.start()
    thread.join()
    after, _ = clock.grader()
    assert after - before < 0.1


# In the sandbox.

SHORT = 0.3  # seconds that code may be charged in here


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(limits=Limits(cell_seconds=SHORT, memory_bytes=2**30)) as prepared:
        yield prepared


@pytest.fixture
def student(sandbox, monkeypatch):
    monkeypatch.setattr(clock, "_PATIENCE", 10**6)
    with sandbox.open() as opened:
        yield opened


def error_of(student: SandboxStudent, source: str) -> str:
    return next(o["ename"] for o in student.run_cell(source) if o["output_type"] == "error")


FORKS = "import os, time\nif os.fork() == 0:\n    {}\n    os._exit(0)\nos.wait()"
OVER_TIME = {
    "computes": "while True: pass",
    "sleeps": "import time; time.sleep(10**6)",
    "waits for a child that computes": FORKS.format("while True: pass"),
    "waits for a child that sleeps": FORKS.format("time.sleep(10**6)"),
}


@pytest.mark.sandbox
@pytest.mark.parametrize("source", OVER_TIME.values(), ids=OVER_TIME)
def test_whatever_takes_for_ever_is_stopped_and_the_process_lives(student, monkeypatch, source):
    monkeypatch.setattr(clock, "GRACE", 10**6)  # its children may run before it does
    assert error_of(student, source) == "TimeLimit"
    assert student.run_cell("x = 1") == []


ORPHANS = """
import os, signal, time
_ = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0: sum(range(10**6)); os._exit(0)
    except OSError: pass
    time.sleep(0.001)
"""


@pytest.mark.sandbox
def test_children_that_nobody_waits_for_are_charged_too(student, monkeypatch):
    monkeypatch.setattr(clock, "GRACE", SHORT)
    try:
        said = error_of(student, ORPHANS)
    except ProcessLost as error:  # Python has nowhere to raise what comes in the middle of a fork
        said = str(error)
    assert said in {"TimeLimit", "Your code ran for over 0.3 s and was stopped."}


DEAF = "import os, signal, time\n_ = signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "source",
    [
        DEAF + "time.sleep(10**6)",
        DEAF + "while True: pass",
    ],
    ids=["sleeper", "loop"],
)
def test_who_does_not_heed_the_limit_is_lost(student, monkeypatch, source):
    monkeypatch.setattr(clock, "GRACE", SHORT)
    with pytest.raises(ProcessLost, match=r"ran for over 0\.3 s") as caught:
        student.run_cell(source)
    assert not isinstance(caught.value, MachineBusy)


@pytest.mark.sandbox
def test_who_is_stopped_is_lost(student, monkeypatch):
    monkeypatch.setattr(clock, "GRACE", SHORT)
    signal.pidfd_send_signal(student._handle, signal.SIGSTOP)
    with pytest.raises(ProcessLost, match=r"ran for over 0\.3 s"):
        student.run_cell("x = 1")


@pytest.mark.sandbox
def test_deafness_lasts_for_one_cell(student):
    assert student.run_cell(DEAF) == []
    assert error_of(student, "while True: pass") == "TimeLimit"


CROWD = 4  # programs on each processor
CROWDS = "import os\nos.sched_setaffinity(0, {{{}}})\nprint(flush=True)\nwhile True: pass"
COMPUTES_A_WHILE = f"""
import time
end = time.process_time() + {0.8 * SHORT}
while time.process_time() < end: pass
"""


@pytest.mark.sandbox
def test_a_crowded_machine_costs_nobody_anything(student, program):
    """By the clock the cell takes four times as long as it may."""
    for processor in os.sched_getaffinity(0):
        for _ in range(CROWD):
            program(CROWDS.format(processor)).stdout.readline()
    begun = time.monotonic()
    assert student.run_cell(COMPUTES_A_WHILE) == []
    assert time.monotonic() - begun > SHORT, "the machine was crowded"


@pytest.mark.sandbox
def test_a_machine_that_is_too_crowded_to_judge_says_so(student, monkeypatch):
    monkeypatch.setattr(clock, "_PATIENCE", 0)  # no time by the clock is short enough
    with pytest.raises(MachineBusy, match="too busy to judge"):
        student.run_cell("while True: pass")
    answer = student.run("peakmem.probes.lab05:largest_micro_batch", {"upper": 8})
    assert answer.busy
    assert "too busy to judge" in answer.lost
