"""Ranks in the sandbox: processes that talk only to each other."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from autograder.base import memory
from autograder.base.limits import Limits, ProcessLost
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.unprotected import Unprotected

pytestmark = pytest.mark.sandbox

MIB = 2**20
LIMITS = Limits(cell_seconds=60, submission_seconds=600, memory_bytes=512 * MIB)
PRELUDE = """
import os, socket, threading, time, torch, torch.distributed as dist
from peakmem.ranks import launch
def tried(call, *arguments):
    try:
        return call(*arguments) or "done"
    except OSError as error:
        return os.strerror(error.errno)
def connected(address, port):
    with socket.socket() as end:
        return tried(end.connect, (address, port))
"""


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(limits=LIMITS, ranks=True) as prepared:
        yield prepared


@pytest.fixture
def student(sandbox):
    with sandbox.open() as opened:
        opened.run_cell(PRELUDE)
        yield opened


@pytest.fixture(scope="module")
def outside():
    """A sandbox without isolation: there the attacks below reach their aim."""
    with Sandbox(limits=LIMITS, ranks=True, backend=Unprotected()) as prepared:
        yield prepared


@pytest.fixture
def unprotected(outside):
    with outside.open() as opened:
        opened.run_cell(PRELUDE)
        yield opened


@pytest.fixture
def server():
    """A port of this machine with a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def printed(student, source):
    return "".join(output.get("text", str(output)) for output in student.run_cell(source))


# What honest code needs.

SUM = """
def total(n):
    x = torch.full((n,), dist.get_rank() + 1.0)
    dist.all_reduce(x)
    return x[0].item()
print(launch(total, 4, 1000))
"""
FAILURES = """
def one_raises():
    if dist.get_rank():
        raise ValueError("mine")
    dist.barrier()
def one_skips():
    if dist.get_rank():
        dist.barrier()
def one_dies():
    if dist.get_rank():
        os._exit(3)
    dist.barrier()
for function in one_raises, one_skips, one_dies:
    try: launch(function, 2, timeout=1)
    except Exception as error: print(type(error).__name__, str(error).replace("\\n", " "))
"""


def test_ranks_are_forks_of_the_prepared_process_and_sum_up(student):
    assert printed(student, SUM) == "[10.0, 10.0, 10.0, 10.0]\n"


def test_errors_hangs_and_deaths_are_told_inside_too(student):
    raised, skipped, died = printed(student, FAILURES).splitlines()
    assert raised.startswith("RankError rank 1 raised ValueError: mine")
    assert skipped.startswith("RanksTimeout rank 1 did not return within 1 s:   rank 0 returned")
    assert "barrier, line 7 of one_skips: dist.barrier()" in skipped
    assert died.startswith("RankError rank 1 ended with exit code 3")


def test_only_a_sandbox_for_ranks_has_sockets_that_wait_and_an_interface_that_is_up():
    with Sandbox(limits=LIMITS) as strict, strict.open() as student:
        said = printed(student, PRELUDE + SUM)
        up = printed(student, "print(tried(socket.socket(type=2).sendto, b'x', ('127.0.0.1', 9)))")
    assert "listen: Function not implemented" in said
    assert up == "Network is unreachable\n"


# Reaching out.

REACH = """
def reach(address, port):
    return connected(address, port)
print(launch(reach, 2, {address!r}, {port}))
"""


def test_no_rank_reaches_this_machine_or_another(student, server):
    said = printed(student, REACH.format(address="127.0.0.1", port=server))
    assert said == "['Connection refused', 'Connection refused']\n"
    for address in ("192.0.2.1", "169.254.169.254", "10.0.0.1"):
        said = printed(student, REACH.format(address=address, port=80))
        assert said == "['Network is unreachable', 'Network is unreachable']\n"


def test_outside_a_rank_reaches_this_machine(unprotected, server):
    said = printed(unprotected, REACH.format(address="127.0.0.1", port=server))
    assert said == "['done', 'done']\n"


LISTENS = """
listening = socket.create_server(("127.0.0.1", {port}))
listening.listen()
print(connected("127.0.0.1", {port}))
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def test_no_submission_talks_to_another_one_at_the_same_time(sandbox, student):
    port = free_port()
    assert printed(student, LISTENS.format(port=port)) == "done\n"
    with sandbox.open() as other:
        other.run_cell(PRELUDE)
        said = printed(other, REACH.format(address="127.0.0.1", port=port))
        assert said == "['Connection refused', 'Connection refused']\n"
        assert printed(other, LISTENS.format(port=port)) == "done\n"  # the port is its own


def test_outside_it_does(unprotected, outside):
    port = free_port()
    assert printed(unprotected, LISTENS.format(port=port)) == "done\n"
    with outside.open() as other:
        other.run_cell(PRELUDE)
        said = printed(other, REACH.format(address="127.0.0.1", port=port))
        assert said == "['done', 'done']\n"


OTHER_SOCKETS = """
for arguments in (10, 1, 0), (2, 3, 1), (2, 1, 262), (16, 3, 16), (16, 3, 15), (40, 1, 0):
    print(tried(lambda: socket.socket(*arguments).close()))
with socket.socket() as end:
    for level, option in (0, 1), (6, 23), (1, 60):  # IP_TOS, TCP_FASTOPEN, SO_ZEROCOPY
        print(tried(end.setsockopt, level, option, 0))
"""


def test_no_other_sockets_and_options_come_with_the_interface(student, unprotected):
    refused = "Function not implemented"
    assert printed(student, OTHER_SOCKETS).splitlines() == [refused] * 9
    assert refused not in printed(unprotected, OTHER_SOCKETS)


# Outliving, and forking on.

DAEMON = """
def leaves_a_daemon():
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, b"x")
            while True:
                time.sleep(1)
        os._exit(0)
    return len(os.read(reading, 1))
print(launch(leaves_a_daemon, 2))
"""


def test_what_outlives_its_rank_ends_with_the_submission(sandbox):
    with sandbox.open() as student:
        student.run_cell(PRELUDE)
        assert printed(student, DAEMON) == "[1, 1]\n"
        children = psutil.Process(student._pid).children(recursive=True)
        left = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
        assert len(left) == 2  # they left their ranks' sessions, which launch ends
    gone, alive = psutil.wait_procs(left, timeout=60)
    assert (len(gone), alive) == (2, [])


BOMB = """
def forks_on():
    made = 0
    while True:
        try:
            if os.fork() == 0:
                while True:
                    time.sleep(1)
            made += 1
        except OSError as error:
            return made, error.errno
"""


def test_a_rank_that_forks_on_is_bounded_and_ends(student):
    student.run_cell(BOMB)
    said = printed(student, "print(launch(forks_on, 1))")
    ((made, number),) = eval(said)
    assert number == 11  # EAGAIN
    assert 40 < made < LIMITS.processes


def test_with_a_higher_bound_it_forks_further(sandbox, monkeypatch):
    monkeypatch.setattr(sandbox, "limits", replace(LIMITS, processes=128))
    with sandbox.open() as student:
        student.run_cell(PRELUDE + BOMB)
        ((made, _),) = eval(printed(student, "print(launch(forks_on, 1))"))
    assert made > LIMITS.processes


BACKLOG = """
listening = socket.create_server(("127.0.0.1", 0), backlog=1000)
ends = [socket.socket() for _ in range(30)]
for end in ends:
    end.setblocking(False)
    end.connect_ex(listening.getsockname())
print(sum(tried(end.getpeername) not in {"Transport endpoint is not connected"} for end in ends))
"""


def test_few_connections_of_a_socket_wait_to_be_accepted(student, unprotected):
    if not Path("/proc/sys/net/core/somaxconn").exists():
        pytest.skip("this kernel keeps the bound from namespaces")
    assert int(printed(student, BACKLOG)) < 15
    assert int(printed(unprotected, BACKLOG)) == 30


# The kernel's memory: connections that wait to be accepted, as full as they go.

FILL = """
def fill(count):
    listening = [socket.create_server(("127.0.0.1", 0), backlog=5) for _ in range(count // 5)]
    sent, ends = 0, []
    for number in range(count):
        end = socket.create_connection(listening[number // 5].getsockname())
        end.setblocking(False)
        ends.append(end)
        try:
            while True:
                sent += end.send(bytes(65536))
        except BlockingIOError:
            pass
    return sent, ends, listening
"""


def filled(student, count):
    student.run_cell(FILL)
    return int(printed(student, f"sent, *held = fill({count}); print(sent)"))


def test_what_waits_to_be_accepted_counts_as_memory(sandbox, student):
    before = memory._socket_bytes(student._pid)
    sent = filled(student, 50)
    counted = memory._socket_bytes(student._pid) - before
    assert 0 < sent < counted
    # As many as it takes for the submission's limit, in processes that have 256 files each.
    with pytest.raises(ProcessLost, match=r"more than 0\.5 GiB"):
        student.run_cell(
            "while True:\n    if os.fork() == 0:\n        held = fill(100)\n        time.sleep(999)"
        )


def test_unbounded_they_hold_more_than_is_counted(unprotected):
    each = int(Path("/proc/sys/net/core/wmem_default").read_text())
    assert filled(unprotected, 50) > 50 * 2 * 2 * each  # two sockets a connection, each both ways


@pytest.mark.skipif(os.getuid() != 0, reason="asks as root what any user id may do")
def test_the_submission_has_no_right_to_its_interface(student):
    source = (
        "import fcntl, struct\n"
        "with socket.socket(type=2) as any_socket:\n"
        "    down = struct.pack('16sh14x', b'lo', 0)\n"
        "    print(tried(fcntl.ioctl, any_socket, 0x8914, down))\n"
        "print(tried(open, '/proc/sys/net/ipv4/tcp_wmem', 'w'))"
    )
    down, opened = printed(student, source).splitlines()
    assert down == "Operation not permitted"
    assert opened in {"Permission denied", "Read-only file system"}


# Traffic, as the kernel counts it outside of the processes.

ALL_REDUCES = """
import sys, types
from peakmem.probes.ranks import run_ranks
def by_a_star(n):
    part = torch.ones(n)
    came = torch.empty(n)
    for other in range(1, dist.get_world_size()):
        if dist.get_rank() == 0:
            dist.recv(came, other)
            part += came
            dist.send(part, other)
        elif dist.get_rank() == other:
            dist.send(part, 0)
            dist.recv(part, 0)
def by_torch(n):
    dist.all_reduce(torch.ones(n))
def by_ring(n):
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = list(torch.ones(n).chunk(world))
    for step in range(2 * (world - 1)):
        out, into = parts[(rank - step) % world], parts[(rank - step - 1) % world]
        came = torch.empty_like(into)
        work = [dist.isend(out, (rank + 1) % world), dist.irecv(came, (rank - 1) % world)]
        for one in work: one.wait()
        into.copy_(into + came if step < world - 1 else came)
    assert all((part == world).all() for part in parts)
def by_gathering_all(n):
    every = [torch.empty(n) for _ in range(dist.get_world_size())]
    dist.all_gather(every, torch.ones(n))
def by_nothing(n):
    pass
trial = sys.modules["trial"] = types.ModuleType("trial")
def probe(student, way, world, n, ask):
    return len(run_ranks(globals()[way], world, n, ask=ask))
trial.probe = probe
"""
LARGE = 2**21  # float32: 8 MiB


def measured(student, way, world, n=LARGE):
    answer = student.run("trial:probe", {"way": way, "world": world, "n": n}, ranks=world)
    assert answer.value == world, answer
    return answer


def traffic(student, way, world, n=LARGE):
    return measured(student, way, world, n).traffic_bytes


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("way", ["by_torch", "by_ring"])
def test_the_traffic_of_a_ring_is_the_formulas(student, way, world):
    student.run_cell(ALL_REDUCES)
    each = 2 * (world - 1) / world * 4 * LARGE
    answer = measured(student, way, world)
    assert answer.traffic_bytes == pytest.approx(world * each, rel=0.05)
    assert answer.rank_sent_bytes == (pytest.approx(each, rel=0.001),) * world


def test_another_all_reduce_has_other_traffic(student):
    student.run_cell(ALL_REDUCES)
    gathered = traffic(student, "by_gathering_all", 4)
    assert gathered == pytest.approx(4 * 3 * 4 * LARGE, rel=0.05)
    assert gathered > 1.9 * traffic(student, "by_torch", 4)


def test_a_star_sends_as_much_as_a_ring_but_one_rank_sends_half_of_it(student):
    student.run_cell(ALL_REDUCES)
    star, ring = measured(student, "by_a_star", 4), measured(student, "by_ring", 4)
    assert star.traffic_bytes == pytest.approx(ring.traffic_bytes, rel=0.01)
    assert max(star.rank_sent_bytes) == pytest.approx(2 * max(ring.rank_sent_bytes), rel=0.001)


def test_to_meet_does_not_count_and_each_call_has_its_own(student):
    student.run_cell(ALL_REDUCES)
    assert traffic(student, "by_nothing", 4) < 1024
    assert traffic(student, "by_torch", 2) > 2**20
    assert traffic(student, "by_nothing", 4) < 1024


def test_without_a_network_of_its_own_what_ranks_wrote_is_told_but_no_traffic(unprotected):
    unprotected.run_cell(ALL_REDUCES)
    answer = measured(unprotected, "by_torch", 2)
    assert answer.traffic_bytes is None
    assert answer.rank_sent_bytes == (pytest.approx(4 * LARGE, rel=0.001),) * 2
