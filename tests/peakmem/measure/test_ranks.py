"""Real processes: their results, their errors, their deaths, and their remains."""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace

import cloudpickle
import nbformat
import psutil
import pytest
import torch
import torch.distributed as dist
from nbclient import NotebookClient

from autograder.base import memory
from peakmem.measure import rank_process, ranks, stillness
from peakmem.measure.meter import MemoryMeter
from peakmem.measure.rank_handle import Rank
from peakmem.measure.rank_process import Failed
from peakmem.measure.rank_stacks import Place, place_in
from peakmem.measure.stillness import Stillness
from peakmem.ranks import RankError, RanksTimeout, launch

MIB = 2**20
END = 60  # seconds that the system may take for ending a process


@pytest.fixture(scope="module", autouse=True)
def prepared() -> Iterator[None]:
    """Functions go by their code, as a notebook's do; no prepared process stays behind."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]


def summed(x):
    dist.all_reduce(x)
    return x


def one_raises():
    if dist.get_rank() == 1:
        raise KeyError("lost it")
    dist.barrier()


def one_dies(how):
    if dist.get_rank() == 1:
        how()
    dist.barrier()


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def leave_quietly():
    os._exit(7)


def one_skips(x):
    if dist.get_rank() != 1:
        dist.all_reduce(x)  # nobody else comes


def one_spins(x):
    if dist.get_rank() == 1:
        while True:
            pass
    dist.recv(x, 1)


def spins_together(x):
    while True:
        dist.all_reduce(x)


def pid():
    return os.getpid()


def leaves_a_child():
    return subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid


def is_gone(pid):
    try:
        psutil.Process(pid).wait(END)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


def test_results_come_by_rank_and_each_rank_is_a_process_of_its_own():
    assert launch(dist.get_rank, 3) == [0, 1, 2]
    pids = launch(pid, 2)
    assert len({os.getpid(), *pids}) == 3
    assert all(map(is_gone, pids))


def test_ranks_share_values_by_collectives_and_no_memory():
    x = torch.tensor([1.0, 2.0])
    first, second = launch(summed, 2, x)
    assert first.tolist() == second.tolist() == [2.0, 4.0]
    assert x.tolist() == [1.0, 2.0]


def test_one_rank_alone():
    assert launch(summed, 1, torch.ones(1)) == [torch.ones(1)]


@pytest.mark.parametrize("size", [0, 65, 10**9])
def test_a_world_that_no_machine_holds_is_refused(size):
    with pytest.raises(ValueError, match=f"world_size .* but got {size}$"):
        launch(pid, size)


def test_what_cannot_be_called_starts_nothing():
    with pytest.raises(ValueError, match="a function that each rank calls, but got 1000"):
        launch(1000, 8)


def test_an_error_has_its_rank_its_type_and_its_line():
    with pytest.raises(RankError, match="rank 1 raised KeyError: 'lost it'") as raised:
        launch(one_raises, 3)
    assert (raised.value.rank, raised.value.kind) == (1, "KeyError")
    assert 'raise KeyError("lost it")' in str(raised.value)


@torch.no_grad()
def adds_other_sizes():
    return torch.ones(2) + torch.ones(3)


def test_an_error_leaves_out_the_lines_of_torch():
    with pytest.raises(RankError) as raised:
        launch(adds_other_sizes, 1)
    assert str(raised.value).count("  File ") == 1
    assert raised.value.function == "adds_other_sizes"


def test_what_cannot_be_pickled_is_an_error_of_its_rank():
    with pytest.raises(RankError, match="rank 0 raised TypeError"):
        launch(lambda: (x for x in ()), 1)


@pytest.mark.parametrize(
    ("how", "said"),
    [(kill_itself, "was killed by SIGKILL"), (leave_quietly, "ended with exit code 7")],
)
def test_the_death_of_a_rank_is_told_and_not_the_error_of_its_neighbours(how, said):
    with pytest.raises(RankError, match=f"rank 1 {said}") as raised:
        launch(one_dies, 3, how)
    assert (raised.value.rank, raised.value.kind) == (1, "")


class _Dying:
    """A process that the system says is dead at the second look only."""

    pid = 1

    def __init__(self, sentinel):
        self.sentinel = sentinel
        self._exitcodes = iter([None])

    @property
    def exitcode(self):
        return next(self._exitcodes, -signal.SIGKILL)


def hear_of_a_death_late(pipe):
    """The error of a launcher that hears of a lost connection before it can see which rank died."""
    (first, at_first), (second, _at_second) = pipe(), pipe()
    living = SimpleNamespace(pid=1, sentinel=pipe()[0], exitcode=None)
    at_first.send(Failed("RuntimeError", "connection closed", [], may_follow=True))
    team = object.__new__(ranks._Team)
    team._ranks = [Rank(0, living, first), Rank(1, _Dying(pipe()[0]), second)]
    with pytest.raises(RankError) as raised:
        team._listen(0)
    return str(raised.value)


@pytest.fixture
def pipe():
    """A function that makes pipes, which are closed at the end."""
    with ExitStack() as stack:
        yield lambda: [stack.enter_context(end) for end in multiprocessing.Pipe()]


def test_a_death_that_shows_late_is_blamed_and_not_who_noticed_it_first(pipe):
    assert hear_of_a_death_late(pipe).startswith("rank 1 was killed by SIGKILL")


def test_without_a_look_for_the_dead_a_neighbour_would_be_blamed(pipe, monkeypatch):
    monkeypatch.setattr(ranks._Team, "_look_for_the_dead", lambda self: None)
    assert hear_of_a_death_late(pipe) == "rank 0 raised RuntimeError: connection closed"


def test_a_skipped_collective_is_a_timeout_that_says_who_waits_where():
    with pytest.raises(RanksTimeout) as raised:
        launch(one_skips, 3, torch.ones(2), timeout=1)
    assert raised.value.where.keys() == {0, 2}
    for said in raised.value.where.values():
        assert said.startswith("all_reduce, line ")
        assert said.endswith("of one_skips: dist.all_reduce(x)  # nobody else comes")
    assert "rank 1 returned" in str(raised.value)


def test_an_endless_loop_is_a_timeout_that_says_where_it_is():
    with pytest.raises(RanksTimeout) as raised:
        launch(one_spins, 2, torch.ones(2), timeout=1)
    assert raised.value.where[0].startswith("recv, line ")
    assert "of one_spins: " in raised.value.where[1]
    assert "recv" not in raised.value.where[1]


def test_a_rank_that_does_not_join_in_time_is_named(monkeypatch):
    monkeypatch.setattr(ranks, "_JOIN", 0)
    with pytest.raises(RanksTimeout, match="ranks 0, 1 did not join"):
        launch(pid, 2)


def test_what_a_rank_leaves_running_ends_with_it():
    (child,) = launch(leaves_a_child, 1)
    assert is_gone(child)


def test_without_the_end_of_its_group_it_would_stay(monkeypatch):
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    (child,) = launch(leaves_a_child, 1)
    process = psutil.Process(child)
    assert process.is_running()
    process.kill()


def test_a_watcher_looks_before_any_rank_begins_and_when_all_are_done(tmp_path):
    seen = []

    def write():
        (tmp_path / str(dist.get_rank())).touch()

    def look():
        seen.append(sorted(file.name for file in tmp_path.iterdir()))

    ranks.launch_watched(write, 3, before=look, after=look)
    assert seen == [[], ["0", "1", "2"]]


def test_an_interrupt_ends_all_ranks(monkeypatch):
    pids = []

    def interrupted(team):
        pids.extend(rank.process.pid for rank in team._ranks)
        raise KeyboardInterrupt

    monkeypatch.setattr(ranks._Team, "results", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(one_spins, 2, torch.ones(1))
    assert len(pids) == 2
    assert all(map(is_gone, pids))


LAUNCHER = """
import os, torch.distributed as dist
from peakmem.measure import ranks
def spin():
    os.write(1, b"%d\\n" % os.getpid())  # in one piece, for all ranks write at once
    while True:
        pass
{prepare}
ranks.launch(spin, 2)
"""


@pytest.mark.parametrize("prepare", ["pass", "ranks.fork_from_here()"])
def test_ranks_end_with_a_launcher_that_is_killed(tmp_path, prepare):
    script = tmp_path / "script.py"
    script.write_text(LAUNCHER.format(prepare=prepare))
    # Nobody is left to remove its folder: pytest does, with the test's own.
    there = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=there) as launcher:
        assert launcher.stdout is not None
        pids = [int(launcher.stdout.readline()) for _ in range(2)]
        launcher.kill()
    assert all(map(is_gone, pids))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_the_other_ways_to_start_give_the_same(start, tmp_path):
    """`spawn` is how Windows and macOS start processes, `fork` the grader's prepared one."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        import torch, torch.distributed as dist
        from peakmem.measure import ranks
        class Typed:
            def __init__(self, x):
                dist.all_reduce(x)
                self.x = x
        def step(x):
            return Typed(x)
        def bad():
            raise ValueError(f"of {{dist.get_rank()}}")
        ranks._start = {start!r}
        print([typed.x.item() for typed in ranks.launch(step, 2, torch.ones(1))])
        try:
            ranks.launch(bad, 1)
        except ranks.RankError as error:
            print(error)
        """)
    )
    said = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=300
    )
    assert said.stdout.startswith("[2.0, 2.0]\nrank 0 raised ValueError: of 0\n")
    assert 'raise ValueError(f"of {dist.get_rank()}")' in said.stdout


def test_functions_and_classes_typed_in_a_notebook():
    cells = [
        "import torch, torch.distributed as dist\nfrom peakmem.ranks import launch, RanksTimeout",
        """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return 2 * x
            @staticmethod
            def backward(ctx, gradient):
                dist.all_reduce(gradient)
                return 2 * gradient
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(1))
            def forward(self):
                return Double.apply(self.weight)
        def step():
            model = Model()
            model().sum().backward()
            return model, model.weight.grad
        torch.ones(300, 300).requires_grad_().mm(torch.ones(300, 300)).sum().backward()
        _, (model, gradient) = launch(step, 2)
        print(isinstance(model, Model), gradient.item())
        """,
        """
        def skips():
            if dist.get_rank():
                dist.barrier()
        try:
            launch(skips, 2, timeout=1)
        except RanksTimeout as late:
            print(late.where)
        """,
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in cells]
    )
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    _, model, skipped = ("".join(o.text for o in cell.outputs) for cell in notebook.cells)
    assert model == "True 4.0\n"
    assert "barrier, line 3 of skips: dist.barrier()" in skipped


# Memory: a meter in each rank, beside the peak that the system keeps of each process.

linux = pytest.mark.skipif(sys.platform != "linux", reason="takes /proc")


def metered(size_bytes, gathers=False):
    """The meter's peak of a step; the second rank's is twice as high."""
    count = size_bytes // 4
    with MemoryMeter("cpu") as meter:
        x = torch.ones(count * (1 + dist.get_rank()))
        y = x + x
        del x
        dist.all_reduce(y[:count])
        if gathers:
            dist.all_gather([torch.ones(count), torch.ones(count)], y[:count])
    return meter.peak_bytes


def peaks(monkeypatch, function, *args):
    """Two ranks' results, and the peak of each, read from outside before they end."""
    seen = []
    end_all = ranks._Team._end_all

    def look_and_end(team):
        seen.extend(memory.status_bytes(rank.process.pid, "VmHWM") for rank in team._ranks)
        end_all(team)

    with monkeypatch.context() as patched:
        patched.setattr(ranks._Team, "_end_all", look_and_end)
        returned = launch(function, 2, *args)
    return returned, seen


@linux
def test_the_meters_of_all_ranks_agree_with_the_peaks_of_their_processes(monkeypatch):
    """gloo's all-reduce works in pieces of a few MiB."""
    _, before = peaks(monkeypatch, metered, 2**12)
    told, after = peaks(monkeypatch, metered, 64 * MIB)
    assert told == [2 * 64 * MIB, 4 * 64 * MIB]
    assert sum(after) - sum(before) == pytest.approx(sum(told), rel=0.1)


@linux
def test_the_meter_does_not_see_the_copy_in_which_gloo_gathers(monkeypatch):
    _, before = peaks(monkeypatch, metered, 2**12, True)
    (told, _), after = peaks(monkeypatch, metered, 64 * MIB, True)
    assert told == 3 * 64 * MIB
    assert after[0] - before[0] == pytest.approx(told + 2 * 64 * MIB, rel=0.05)


# Where a rank is, and that it does nothing.


def test_a_stack_names_the_call_below_the_last_line_of_ones_own():
    folder = os.path.dirname(torch.__file__)  # noqa: PTH120
    stack = [
        Place(f"{folder}/distributed/distributed_c10d.py", 10, "all_reduce"),
        Place(f"{folder}/distributed/c10d_logger.py", 20, "wrapper"),
        Place("/home/me/train.py", 30, "step"),
        Place(rank_process.__file__, 40, "run_rank"),
    ]
    assert place_in(stack) == "all_reduce, line 30 of step"
    assert place_in(stack[:2]) == "a place it didn't report"
    assert place_in([]) == "a place it didn't report"


def waits_after_work(x):
    torch.ones(300, 300) @ torch.ones(300, 300)
    dist.recv(x, 1 - dist.get_rank())


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what processes do")


@linux
def test_ranks_that_wait_for_each_other_are_told_long_before_the_timeout():
    with pytest.raises(RanksTimeout) as raised:
        launch(waits_after_work, 2, torch.ones(2), timeout=3600)
    assert str(raised.value).startswith("ranks 0, 1 wait forever:\n  rank 0 is at")
    assert all("recv, line" in said for said in raised.value.where.values())


@linux
@pytest.mark.parametrize("function", [one_spins, spins_together])
def test_while_one_runs_none_is_taken_for_stuck(monkeypatch, function):
    monkeypatch.setattr(ranks, "_STILL", 0.5)
    with pytest.raises(RanksTimeout, match="did not return within 2 s"):
        launch(function, 2, torch.ones(2), timeout=2)


@linux
def test_a_process_is_still_while_it_sleeps_and_until_it_runs(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(stillness.time, "monotonic", lambda: clock[0])
    with subprocess.Popen([sys.executable, "-c", ECHO], stdin=-1, stdout=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        until_asleep(process.pid)
        still = Stillness()
        assert still.seconds([process.pid]) == 0
        clock[0] = 7.0
        assert still.seconds([process.pid]) == 7.0
        assert still.seconds([process.pid, os.getpid()]) == 0  # this one is awake
        assert still.seconds([process.pid]) == 0
        process.stdin.write(b"x\n")
        process.stdin.flush()
        process.stdout.readline()
        until_asleep(process.pid)
        clock[0] = 9.0
        assert still.seconds([process.pid]) == 0
        process.stdin.close()
    clock[0] = 20.0
    assert still.seconds([process.pid]) == 0


ECHO = """
import sys
print(flush=True)
for line in sys.stdin:
    print(line, flush=True)
"""


def until_asleep(pid):
    while psutil.Process(pid).status() != psutil.STATUS_SLEEPING:
        os.sched_yield()


def threads():
    return torch.get_num_threads()


def test_a_rank_has_its_share_of_processors_and_no_more_threads_than_its_launcher(monkeypatch):
    """The grader's has one, and under a budget of memory none can be started."""
    monkeypatch.setattr(ranks, "_start", "fork")
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    before = torch.get_num_threads()
    try:
        for own, share in ((1, 1), (3, 3), (8, 6)):
            torch.set_num_threads(own)
            assert launch(threads, 2) == [share, share]
    finally:
        torch.set_num_threads(before)
