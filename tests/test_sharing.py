"""Fixtures shared among test processes are made once, and removed by the last."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from tests.sharing import shared


def _make(folder: Path) -> Path:
    with (folder / "makers").open("a") as file:
        file.write(f"{os.getpid()}\n")
    return folder


def _use(barrier) -> None:
    with shared("tests-of-sharing", _make) as folder:
        barrier.wait()  # all of them are inside
        assert len((folder / "makers").read_text().splitlines()) == 1
        barrier.wait()


@pytest.fixture
def run(monkeypatch, tmp_path) -> Path:
    """A run of its own, whose shared things lie in `tmp_path`."""
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "ours")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_three_processes_share_what_the_first_made(run):
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(3, timeout=60)
    processes = [fork.Process(target=_use, args=(barrier,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert not any(path.is_dir() for path in run.iterdir())


def test_what_could_not_be_made_is_made_anew(run):
    def broken(folder: Path) -> None:
        _make(folder)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"), shared("tests-of-sharing", broken):
        pass
    with shared("tests-of-sharing", _make) as folder:
        assert len((folder / "makers").read_text().splitlines()) == 1


def test_what_is_asked_for_again_after_the_last_left_is_made_anew(run):
    for _ in range(2):
        with shared("tests-of-sharing", _make) as folder:
            assert len((folder / "makers").read_text().splitlines()) == 1
