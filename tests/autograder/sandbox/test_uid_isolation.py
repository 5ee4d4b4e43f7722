"""A user id for each submission: tests that work without changing to one.

tests/gradescope shows the rest, in a container.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from autograder.base.limits import Limits, ProcessLost
from autograder.sandbox.guest import uid
from autograder.sandbox.guest.uid import processes_of
from autograder.sandbox.host import quota, uid_isolation, user_ids
from autograder.sandbox.host.binds import GUEST
from autograder.sandbox.host.isolation import IsolationError
from tests.autograder.sandbox.test_seccomp import HEADERS
from tests.grading import command_environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="user ids are told by /proc")

ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 38
SOCKETPAIR, PRCTL = (53, 199), (157, 167)
NUMBERS = {**uid.REFUSED, "socketpair": SOCKETPAIR, "prctl": PRCTL}


def run(column: int, number: int, *arguments: int) -> int:
    """The verdict of the kernel's little machine on one call."""
    program, at, register = list(uid.no_way_out(column, 0)), 0, 0
    data = {0: number, **{16 + 8 * place: value for place, value in enumerate(arguments)}}
    while True:
        code, yes, no, operand = program[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            register = data[operand]
        elif code == 0x54:
            register &= operand
        else:
            assert code == 0x15
            at += yes if register == operand else no


@pytest.mark.parametrize("column", [0, 1], ids=["x86-64", "arm"])
def test_numbers_are_those_of_the_kernels_headers(column: int) -> None:
    header = HEADERS[column]
    if not header.exists():
        pytest.skip(f"needs {header}; on Debian: apt-get install linux-libc-dev")
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    for name, own in NUMBERS.items():
        assert int(found[name]) == own[column], name


@pytest.mark.parametrize("column", [0, 1])
def test_the_filter_refuses_its_calls_and_no_others(column: int) -> None:
    refused = {own[column] for own in uid.REFUSED.values()}
    special = {SOCKETPAIR[column], PRCTL[column]}
    for number in set(range(500)) - special:
        assert run(column, number, 1, 1) == (REFUSE if number in refused else ALLOW)


@pytest.mark.parametrize("column", [0, 1])
def test_pairs_of_sockets_lead_nowhere_and_a_process_stays_in_sight(column: int) -> None:
    cloexec, stream, datagrams, packets = 0o2000000, 1, 2, 5
    pair = SOCKETPAIR[column]
    assert run(column, pair, 1, stream) == run(column, pair, 1, stream | cloexec) == ALLOW
    assert run(column, pair, 1, datagrams) == run(column, pair, 1, packets) == REFUSE
    assert run(column, pair, 2, stream) == REFUSE
    for option in range(80):
        refused = option in {4, 36}  # PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER
        assert run(column, PRCTL[column], option, 1) == (REFUSE if refused else ALLOW)


def test_user_ids_are_nobodys_and_those_of_two_graders_differ() -> None:
    drawn = [user_ids.draw_user(slot) for slot in (0, 1, 63) for _ in range(20)]
    assert len(set(drawn)) > 50
    for slot, users in zip((0, 1, 63), (drawn[:20], drawn[20:40], drawn[40:]), strict=True):
        for user in users:
            assert user % 2 == 0  # the next one is the killer's
            assert (user - 1_900_000_000) // 2 % 64 == slot
            assert not processes_of(user)


def test_a_container_with_few_user_ids_has_some_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def few(path: Path, *arguments: object, **more: object) -> str:
        if str(path) == "/proc/self/uid_map":
            return text
        return read(path, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "read_text", few)
    text = "         0     100000      65536\n"
    assert 61_184 <= user_ids.draw_user(5) < 65_500
    text = "         0       1000          1\n"
    with pytest.raises(IsolationError, match="no user ids to spare"):
        user_ids.draw_user(0)


def test_a_users_processes_are_found_and_those_that_ended_are_not() -> None:
    program = [sys.executable, "-c", "input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
        assert process.pid in processes_of(os.getuid())
        assert process.pid not in processes_of(os.getuid() + 1)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process.pid not in processes_of(os.getuid())  # a zombie


def test_without_root_there_is_no_such_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    (sentence,) = uid_isolation.missing_layers()
    assert "root" in sentence
    monkeypatch.setattr(sys, "platform", "darwin")
    (sentence,) = uid_isolation.missing_layers()
    assert "Linux" in sentence


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(uid_isolation.shutil, "which", lambda name: None)
    assert [sentence.split()[0] for sentence in uid_isolation.missing_layers()] == ["find", "rm"]


# The library as students see it


def test_hidden_modules_are_refusals_and_the_rest_is_there(tmp_path: Path) -> None:
    hides = ("peakmem.specs.models", "peakmem.show.widgets", "gfloat")
    uid_isolation._lay_out(tmp_path / "course", hides)
    code = (
        "import peakmem.units, autograder.sandbox.guest.server\n"
        "for name in {names!r}:\n"
        "    try: __import__(name)\n"
        "    except ImportError as error: print(error)\n"
    )
    names = (*hides, "peakmem.show.widgets.anything")
    done = subprocess.run(
        [sys.executable, "-s", "-P", "-c", code.format(names=names)],
        env={"PYTHONPATH": str(tmp_path / "course"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout.splitlines()
    assert said == [
        *(f"{name} holds answers of this lab" for name in hides),
        "peakmem.show.widgets holds answers of this lab",
    ]
    shown = {path.name for path in (tmp_path / "course/autograder").rglob("*.py")}
    assert shown == {path.name for path in GUEST.glob("*.py")}
    text = "".join(path.read_text() for path in (tmp_path / "course").rglob("*.py"))
    assert "def largest_micro_batch_cases" not in text
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "course").rglob("*")}
    assert modes == {0o755, 0o644}


# What a user may hold


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A look at what this test's own user wrote into a folder that is empty yet."""
    monkeypatch.setattr(quota, "PLACES", ())
    limits = Limits(tmp_bytes=2**20, shm_bytes=0, files=20)
    own = quota.Quota(os.getpid(), limits, os.getuid(), tmp_path)
    return own._look_at_files


def test_files_are_bounded_in_bytes_and_number(look: Callable[[], None], tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/half").write_bytes(bytes(2**19))
    look()
    (tmp_path / "a/b/more").write_bytes(bytes(2**20))
    with pytest.raises(ProcessLost, match="1 MiB"):
        look()


def test_empty_files_count_too(look: Callable[[], None], tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).touch()
    look()
    (tmp_path / "21").symlink_to("/")
    with pytest.raises(ProcessLost, match="20 files"):
        look()


def test_files_too_deep_to_be_named_are_not_passed_over(
    look: Callable[[], None], tmp_path: Path
) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(18):
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    try:
        with pytest.raises(ProcessLost, match="nested too deep"):
            look()
    finally:  # it would be in the way of other tests that look through all of /tmp
        shutil.rmtree(tmp_path / ("d" * 250))


def test_a_file_that_is_removed_meanwhile_hides_no_other(
    look: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more").write_bytes(bytes(2**21))
    scandir = os.scandir

    class Fleeting:
        path = "gone"

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            raise FileNotFoundError

    @contextmanager
    def beside_it(folder: str) -> Iterator[Iterator[Any]]:
        with scandir(folder) as entries:
            yield chain([Fleeting()], entries)

    monkeypatch.setattr(quota.os, "scandir", beside_it)
    with pytest.raises(ProcessLost, match="1 MiB"):
        look()


def test_a_folder_linked_from_there_is_nobodys_files(
    look: Callable[[], None], tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/usr")
    look()


# Budgets, as root without the capabilities that containers lack


CAPABILITIES = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap"),
    *("net_bind_service", "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap"),
)  # Docker's
BUDGETS = """
import json
from autograder.sandbox.host import uid_isolation
from autograder.sandbox.host.sandbox import Sandbox
from autograder.model.task import Budget
uid_isolation.readable_by = lambda user, paths: []  # a checkout may be open to everybody
probe = '''
import os, sys, types, torch
module = sys.modules["trial"] = types.ModuleType("trial")
module.probe = lambda student, n, metered=True: len(torch.ones(n // 4)) and 0
'''
with Sandbox(backend=uid_isolation.UserIds()) as sandbox, sandbox.open() as student:
    def run(n, cell=""):
        student.run_cell(cell)
        answer = student.run("trial:probe", {"n": n}, budget=Budget(16 << 20))
        return [answer.memory, answer.doubt]
    print(json.dumps({
        "within": run(14 << 20, probe),
        "beyond": run(20 << 20),
        "held": run(1, "held = bytearray(30 << 20)"),
        "files": run(1, "del held; file = open('file', 'wb'); file.truncate(30 << 20)"),
        "children": run(1, "os.remove('file')\\nos.fork() or os.read(os.pipe()[0], 1)"),
    }))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="takes root")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv, of util-linux")
@pytest.mark.slow
@pytest.mark.parametrize(
    "capabilities", [pytest.param(("all",), id="all"), pytest.param(CAPABILITIES, id="docker")]
)
def test_budgets_hold_for_a_user_id(capabilities: tuple[str, ...]) -> None:
    kept = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    done = subprocess.run(
        ["setpriv", "--bounding-set", kept, "--inh-caps", "-all", sys.executable, "-c", BUDGETS],
        env=command_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["within"] == ["within", ""]
    assert found["beyond"] == ["refused", ""]
    assert "of its own" in found["held"][1]
    assert "of its own" in found["files"][1]
    assert "left processes running" in found["children"][1]
