"""The engine: items mapped over processes that may die. Real processes, killed for real."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from autograder.base.grading_process import GradingProcess
from autograder.base.pool import Failure, Solo, Work, run_all
from tests.grading import REPOSITORY, command_environment


@contextmanager
def worker(folder, slot):
    """Squares numbers; other items do harm. `folder` shows when it began and ended."""
    try:  # it may be told to leave at any moment
        (folder / f"began-{slot}-{os.getpid()}").touch()
        yield partial(_work, folder)
    finally:
        (folder / f"ended-{slot}-{os.getpid()}").touch()


def _work(folder, item):
    if item == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "kill once" and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "raise":
        raise LookupError("no such thing")
    if item == "compute":
        while True:
            pass
    if item == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if item == "wait":
        (folder / "waiting").touch()
        time.sleep(600)
    return item * item if isinstance(item, int) else f"{item}: done"


@contextmanager
def broken(slot):
    raise RuntimeError("this machine has no sandbox")
    yield


@contextmanager
def telling(slot):
    yield lambda item: (slot, os.getpid(), item in sys.modules)


def run(folder, items, workers=2, **options):
    return dict(run_all(items, Work(partial(worker, folder), **options), workers))


def names(folder, start):
    return sorted(path.name for path in folder.glob(f"{start}-*"))


def test_every_item_comes_back_with_its_outcome(tmp_path):
    assert run(tmp_path, range(20)) == {n: n * n for n in range(20)}
    assert len(names(tmp_path, "began")) == 2, "a worker takes one item after another"
    assert [n[6:] for n in names(tmp_path, "ended")] == [n[6:] for n in names(tmp_path, "began")]


def test_no_items_start_no_process(tmp_path):
    assert run(tmp_path, []) == {}
    assert names(tmp_path, "began") == []


def test_no_more_workers_than_items(tmp_path):
    run(tmp_path, [1], workers=8)
    assert len(names(tmp_path, "began")) == 1


def test_an_item_whose_worker_was_killed_is_done_all_the_same(tmp_path):
    assert run(tmp_path, [1, "kill once", 2]) == {1: 1, "kill once": "kill once: done", 2: 4}


def test_an_item_that_kills_every_worker_is_a_failure_and_the_others_are_done(tmp_path):
    outcomes = run(tmp_path, [*range(5), "kill", *range(5, 10)])
    failure = outcomes.pop("kill")
    assert isinstance(failure, Failure)
    assert "killed by signal 9" in failure.reason
    assert outcomes == {n: n * n for n in range(10)}


def test_an_exception_is_a_failure_with_its_reason(tmp_path):
    outcomes = run(tmp_path, ["raise", 3])
    assert outcomes == {"raise": Failure("LookupError: no such thing"), 3: 9}


def test_a_worker_that_cannot_be_made_says_why():
    outcomes = list(run_all([1, 2, 3], Work(broken), 2))
    assert sorted(item for item, _ in outcomes) == [1, 2, 3]
    assert {outcome.reason for _, outcome in outcomes} == {
        "RuntimeError: this machine has no sandbox"
    }


def test_an_item_that_computes_for_ever_is_ended(tmp_path):
    outcomes = run(tmp_path, ["compute", 4], workers=1, cpu_seconds=0.2)
    assert outcomes[4] == 16
    assert "too much computing time" in outcomes["compute"].reason


def test_an_item_that_takes_for_ever_without_computing_is_ended(tmp_path, monkeypatch):
    """A stopped process sees no signal but the one that cannot be refused."""
    hand = GradingProcess.hand

    def hand_and_be_late(process, item, tries):
        hand(process, item, tries)
        if item == "stop":
            while psutil.Process(process._process.pid).status() != psutil.STATUS_STOPPED:
                os.sched_yield()
            process.deadline = time.monotonic()

    monkeypatch.setattr(GradingProcess, "hand", hand_and_be_late)
    outcomes = run(tmp_path, ["stop", 4], workers=1)
    assert outcomes[4] == 16
    assert "took too long" in outcomes["stop"].reason


def test_one_worker_is_kept_from_item_to_item_and_replaced_when_it_dies(tmp_path):
    solo = Solo(Work(partial(worker, tmp_path)), 3)
    assert [solo.do(n) for n in (1, 2, "kill once", 3)] == [1, 4, "kill once: done", 9]
    assert "killed by signal 9" in solo.do("kill").reason
    assert solo.do("raise") == Failure("LookupError: no such thing")
    assert solo.do(5) == 25
    solo.close()
    assert all(name.startswith("began-3-") for name in names(tmp_path, "began"))
    assert len(names(tmp_path, "began")) == 6, "the first, and one after each death"


def test_slots_tell_workers_apart():
    told = [outcome for _, outcome in run_all(["colorsys"] * 40, Work(telling), 3)]
    pids = {}
    for slot, pid, _ in told:
        pids.setdefault(slot, set()).add(pid)
    assert set(pids) <= {0, 1, 2}
    assert all(len(of_slot) == 1 for of_slot in pids.values())


@pytest.mark.parametrize("preload", [[], ["colorsys"]])
def test_workers_share_the_preloaded_modules(preload):
    source = f"print(next(run_all(['colorsys'], Work(telling, {preload}), 1))[1][2])"
    with _in_a_process_of_its_own(source) as controller:
        assert controller.communicate()[0] == f"{bool(preload)}\n"


def test_closing_the_iterator_ends_the_workers_in_good_order(tmp_path):
    outcomes = run_all([1, "wait", "wait"], Work(partial(worker, tmp_path)), 2)
    assert next(outcomes) == (1, 1)
    _await(tmp_path / "waiting")
    outcomes.close()  # the second worker may only just be starting
    pids = [int(name.rpartition("-")[2]) for name in names(tmp_path, "began")]
    assert not any(map(psutil.pid_exists, pids))
    assert len(names(tmp_path, "ended")) == len(pids) >= 1, "each left its context"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_in_good_order_when_the_controller_dies(tmp_path, number):
    source = f"list(run_all(['wait'], Work(partial(worker, Path({str(tmp_path)!r}))), 1))"
    with _in_a_process_of_its_own(source) as controller:
        _await(tmp_path / "waiting")
        (name,) = names(tmp_path, "began")
        of_worker = psutil.Process(int(name.rpartition("-")[2]))
        controller.send_signal(number)
    assert psutil.wait_procs([of_worker], timeout=600)[1] == []
    assert len(names(tmp_path, "ended")) == 1


def _in_a_process_of_its_own(source):
    """A controller that can be killed, and that no other test has started any process of."""
    names = "Path, Work, partial, run_all, telling, worker"
    return subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import {names}\n{source}"],
        cwd=REPOSITORY,
        env=command_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )


def _await(path: Path):
    deadline = time.monotonic() + 600
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} never came"
        os.sched_yield()
