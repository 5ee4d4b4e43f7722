"""The engine on a real Dask cluster: workers join, leave, are killed; the scheduler too."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

import autograder
from autograder.base.course import Course
from autograder.base.pool import Failure, Work
from autograder.content import find_lab
from autograder.platforms import cluster_workers, dask_cluster
from autograder.platforms.demands import Demands
from autograder.trials.demo import compare
from autograder.trials.sampled_class import ClassFolder, sample_class
from tests.faults.faulty import (
    assert_as_undisturbed,
    elsewhere,
    entry,
    grading,
    until,
)
from tests.faults.toy import Cluster, toy, until_true
from tests.grading import LAB01, REPOSITORY, Class, course_copy

pytest.importorskip("distributed", reason="needs the extra `cluster`")


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with one worker, for tests that leave both as they find them."""
    with Cluster(tmp_path_factory.mktemp("standing")) as running:
        running.worker()
        until_true(lambda: running.joined() == 1)
        yield running


@pytest.fixture
def visitors(standing: Cluster) -> Iterator[Callable[..., int]]:
    """Starts further workers there, which are gone after the test."""
    pids = []

    def join(*more: str, environment: Mapping[str, str] | None = None) -> int:
        pids.append(standing.worker(*more, environment=environment))
        until_true(lambda: standing.joined() == 1 + len(pids))
        return pids[-1]

    yield join
    for pid in pids:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    until_true(lambda: standing.joined() == 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "shown"
    path.mkdir()
    return path


def run(dask, folder, items, **options):
    demands = Demands((folder,), isolated=False)
    work = Work(partial(toy, folder))
    return dask_cluster.run_all(items, work, dask.address, demands, **options)


def begun(folder: Path, item: str) -> list[int]:
    """Who began this item, by process id."""
    return [int(path.suffix[1:]) for path in folder.glob(f"{item}.*")]


def another_version(tmp_path: Path) -> dict[str, str]:
    """The environment of a worker whose grader is not the controller's."""
    other = tmp_path / "other"
    shutil.copytree(Path(autograder.__file__).parent, other / "autograder")
    with (other / "autograder" / "judge.py").open("a") as file:
        file.write("# another version\n")
    return {"PYTHONPATH": os.pathsep.join(map(str, (other, REPOSITORY, REPOSITORY / "src")))}


def above(pid: int) -> set[int]:
    return {process.pid for process in psutil.Process(pid).parents()}


def test_workers_are_killed_and_join_and_every_item_is_done(dask, folder):
    first = dask.worker()
    items = [f"wait-{n}" for n in range(12)]
    outcomes = run(dask, folder, items)
    with _in_a_thread(outcomes) as done:
        until_true(lambda: begun(folder, "wait-*"))
        os.kill(first, signal.SIGKILL)
        dask.worker("--nanny")  # marks its worker as a daemon, which may have no children
        (folder / "go").touch()
    assert sorted(item for item, _ in done) == sorted(items)
    assert all(outcome.startswith(item) for item, outcome in done)


def test_an_item_that_kills_its_process_kills_no_worker(standing, folder):
    done = dict(run(standing, folder, ["a", "kill-b", "c"]))
    assert isinstance(done.pop("kill-b"), Failure)
    assert sorted(done) == ["a", "c"]
    assert len(begun(folder, "kill-b")) == 2
    assert len(set(begun(folder, "a") + begun(folder, "c"))) <= 2


def test_a_worker_that_leaves_in_good_order_hands_its_item_on(dask, folder):
    first = dask.worker()
    outcomes = run(dask, folder, ["wait-a", "b"])
    with _in_a_thread(outcomes) as done:
        until_true(lambda: begun(folder, "wait-a"))
        dask.worker()
        until_true(lambda: dask.joined() == 2)
        os.kill(first, signal.SIGTERM)
        until_true(lambda: len(begun(folder, "wait-a")) == 2)
        (folder / "go").touch()
    assert sorted(item for item, _ in done) == ["b", "wait-a"]


def test_no_more_is_in_flight_than_twice_the_threads(standing, folder):
    from distributed import Client

    outcomes = run(standing, folder, [f"wait-{n}" for n in range(50)])
    with _in_a_thread(outcomes) as done:
        until_true(lambda: begun(folder, "wait-*"))
        with Client(standing.address, set_as_default=False) as client:

            def known():
                return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

            until_true(lambda: 1 <= known() <= 2)  # the scheduler forgets an earlier run's late
        (folder / "go").touch()
    assert len(done) == 50


def test_what_is_given_up_ends_on_the_workers_too(standing, folder):
    outcomes = run(standing, folder, ["a", "wait-b", "wait-c"])
    assert next(outcomes)[0] == "a"
    until_true(lambda: begun(folder, "wait-*"))
    outcomes.close()  # and nobody says "go"
    until_true(lambda: not any(map(psutil.pid_exists, begun(folder, "wait-*"))))


def test_a_machine_with_another_environment_gets_nothing(dask, folder, tmp_path):
    wrong = dask.worker(environment=another_version(tmp_path))
    items = [str(n) for n in range(8)]
    with pytest.raises(RuntimeError, match="no machine of the cluster may grade") as raised:
        list(run(dask, folder, items))
    assert "it has grader and library" in str(raised.value)
    dask.worker()
    until_true(lambda: dask.joined() == 2)
    assert sorted(item for item, _ in run(dask, folder, items)) == items
    above = [json.loads(path.read_text()) for n in items for path in folder.glob(f"{n}.*")]
    assert len(above) == 8
    assert all(wrong not in pids for pids in above)


def test_a_machine_without_the_grader_ends_at_the_question_and_is_told_of(
    dask, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(cluster_workers, "_NOBODY", 2.0)
    empty = tmp_path / "other" / "autograder"
    empty.mkdir(parents=True)
    (empty / "__init__.py").write_text("raise ImportError('not installed')")
    without = {"PYTHONPATH": os.pathsep.join([str(empty.parent), str(REPOSITORY / "src")])}
    dask.worker(environment=without)
    until_true(lambda: dask.joined() == 1)
    with pytest.raises(
        RuntimeError, match=r"no worker that may grade for 2 s\. 1 joined and ended"
    ):
        list(run(dask, folder, ["a"]))


def test_what_fails_on_one_worker_is_tried_on_another(standing, visitors, folder):
    visitors(environment={"TOY_BROKEN": "1"})
    items = [f"{n}" for n in range(8)]
    done = dict(run(standing, folder, items))
    assert sorted(done) == items
    assert not any(isinstance(outcome, Failure) for outcome in done.values())
    assert sum(len(begun(folder, item)) for item in items) > 8, "the broken one had some"


def test_a_machine_that_does_not_see_the_folder_is_unfit(folder):
    demands = Demands((folder / "not-here",), isolated=False)
    assert demands.unmet() == [f"it doesn't see {folder / 'not-here'}"]
    assert Demands((folder,), isolated=False).unmet() == []


def test_a_straggler_is_overtaken(dask, folder):
    slow, quick = dask.worker(), dask.worker()
    outcomes = run(dask, folder, ["wait-a", "wait-b"], patience_seconds=0.5)
    with _in_a_thread(outcomes) as done:
        until_true(lambda: len(begun(folder, "wait-*")) == 2)
        os.kill(slow, signal.SIGSTOP)
        for child in psutil.Process(slow).children(recursive=True):
            child.suspend()
        (folder / "go").touch()
    assert sorted(item for item, _ in done) == ["wait-a", "wait-b"]
    assert psutil.pid_exists(quick)


def test_gpu_work_goes_to_workers_with_a_gpu(standing, visitors, folder):
    gpu = visitors("--resources", "GPU=1")
    items = [str(n) for n in range(6)]
    outcomes = run(standing, folder, [*items, "wait-x"], wants_gpu=True)
    with _in_a_thread(outcomes) as done:
        until_true(lambda: begun(folder, "wait-x"))
        assert all(gpu in above(pid) for pid in begun(folder, "wait-x"))
        (folder / "go").touch()
    assert len(done) == 7
    assert len({outcome.partition(" by ")[2] for _, outcome in done}) == 1, "one worker did all"


def test_gpu_work_waits_for_another_worker_with_a_gpu(standing, visitors, folder, monkeypatch):
    gpu = visitors("--resources", "GPU=1")
    outcomes = run(standing, folder, ["wait-a", "wait-b"], wants_gpu=True)
    with _in_a_thread(outcomes) as done:
        until_true(lambda: begun(folder, "wait-*"))
        os.kill(gpu, signal.SIGKILL)
        until_true(lambda: standing.joined() == 1)
        another = standing.worker("--resources", "GPU=1")
        (folder / "go").touch()
    assert sorted(item for item, _ in done) == ["wait-a", "wait-b"]
    by = [json.loads(path.read_text()) for path in folder.glob("wait-*.*")]
    assert len(by) >= 3
    assert all(gpu in pids or another in pids for pids in by)
    (folder / "go").unlink()
    doing = _in_a_thread(run(standing, folder, ["wait-c"], wants_gpu=True))
    doing.__enter__()
    until_true(lambda: begun(folder, "wait-c"))
    monkeypatch.setattr(cluster_workers, "_NOBODY", 2.0)
    os.kill(another, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="no worker with the resource GPU for 2 s"):
        doing.end()


def test_work_without_a_gpu_is_done_where_the_cluster_has_none(standing, folder):
    assert [item for item, _ in run(standing, folder, ["a"], wants_gpu=True)] == ["a"]


def test_a_cluster_that_all_workers_leave_is_named(dask, folder, monkeypatch):
    only = dask.worker()
    doing = _in_a_thread(run(dask, folder, ["wait-a"]))
    doing.__enter__()
    until_true(lambda: begun(folder, "wait-a"))
    monkeypatch.setattr(cluster_workers, "_NOBODY", 2.0)
    os.kill(only, signal.SIGTERM)
    with pytest.raises(RuntimeError, match=r"no worker that may grade for 2 s\. Start some"):
        doing.end()


def test_a_scheduler_that_dies_is_named(dask, folder, caplog):
    dask.worker()
    outcomes = run(dask, folder, ["wait-a"])
    doing = _in_a_thread(outcomes)
    doing.__enter__()
    until_true(lambda: begun(folder, "wait-a"))
    dask.scheduler.kill()
    with pytest.raises(RuntimeError, match="is gone"):
        doing.end()
    assert caplog.records == [], "it is said in words, and nothing else"
    (folder / "go").touch()


@pytest.mark.parametrize(
    ("address", "seconds"),
    [("tcp://127.0.0.1:9", "1s"), ("http://127.0.0.1:8786", "1h"), ("a-name-alone", "1h")],
)
def test_an_address_without_a_scheduler_is_named(folder, monkeypatch, address, seconds):
    """An impossible address is not retried for an hour."""
    monkeypatch.setattr(dask_cluster, "_CONNECT", seconds)
    demands = Demands((folder,), isolated=False)
    with pytest.raises(RuntimeError, match=f"no Dask scheduler answers at {address}"):
        list(dask_cluster.run_all(["a"], Work(partial(toy, folder)), address, demands))


def test_a_scheduler_of_another_dask_is_named(folder, monkeypatch):
    def connect(*_, **__):
        raise TypeError("Scheduler.identity() got an unexpected keyword argument 'n_workers'")

    monkeypatch.setattr(dask_cluster, "Client", connect)
    demands = Demands((folder,), isolated=False)
    with pytest.raises(RuntimeError, match=r"doesn't understand Dask 20.*n_workers"):
        list(dask_cluster.run_all(["a"], Work(partial(toy, folder)), "tcp://127.0.0.1:9", demands))


@pytest.mark.slow
def test_a_class_graded_by_a_cluster_that_loses_workers_and_its_scheduler(
    dask: Cluster, undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path)
    first = dask.worker()
    with grading(room, "--scheduler", dask.address) as command:
        until(entry(room, "missing").exists, command)
        os.kill(first, signal.SIGKILL)
        dask.worker()
        until(entry(room, "partly").exists, command)
        assert dask.scheduler is not None
        dask.scheduler.kill()
        _, said = command.communicate()
        assert command.returncode == 2
        assert "run the same command again" in said
        assert "Traceback" not in said
    kept = {path: path.stat().st_mtime_ns for path in room.out.glob("journal/*/*.entry")}
    dask.start_scheduler()
    dask.worker()
    dask.worker()
    done = room.grade("--scheduler", dask.address)
    assert done.returncode == 0, done.stderr
    again = [path.stem for path, at in kept.items() if path.stat().st_mtime_ns != at]
    assert again == [], "nothing is graded twice"
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
@pytest.mark.sandbox
def test_two_hundred_are_graded_while_workers_come_and_go(dask: Cluster, tmp_path: Path) -> None:
    """One worker of another version, one killed, one that leaves, two that join late."""
    course = course_copy(tmp_path / "course")
    Course(course).secret()
    alone = Class(tmp_path / "alone", course, LAB01)
    answers, releases = REPOSITORY / "bank", course / "labs"
    sample_class([find_lab(LAB01)], 200, 1, alone.folder, answers, releases)
    room = elsewhere(alone, tmp_path / "room")
    killed, leaves = dask.worker(), dask.worker()
    dask.worker(environment=another_version(tmp_path))
    until_true(lambda: dask.joined() == 3)

    def done() -> int:
        return len(list(room.out.glob("journal/*/*.entry")))

    with grading(room, "--scheduler", dask.address) as command:
        until(lambda: done() >= 20, command)
        os.kill(killed, signal.SIGKILL)
        dask.worker("--nanny")
        until(lambda: done() >= 80, command)
        dask.worker()
        os.kill(leaves, signal.SIGTERM)
        _, said = command.communicate()
        assert command.returncode == 0, said
    assert compare(ClassFolder(alone.folder).truth, room.out / "grades.csv") == []
    assert alone.grade("--workers", "2").returncode == 0
    assert_as_undisturbed(room, alone)


class _in_a_thread:
    """Runs an iterator to its end beside the test; raises what it raised."""

    def __init__(self, outcomes):
        self.done, self._error = [], None
        self._thread = threading.Thread(target=self._run, args=(outcomes,))

    def _run(self, outcomes):
        try:
            self.done += outcomes
        except Exception as error:
            self._error = error

    def __enter__(self):
        self._thread.start()
        return self.done

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()

    def end(self):
        self._thread.join(timeout=600)
        assert not self._thread.is_alive(), "it never ended"
        if self._error is not None:
            raise self._error
