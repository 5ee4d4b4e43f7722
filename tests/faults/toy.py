"""Quick work that records its worker, and a real Dask cluster on loopback to do it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.grading import command_environment

__all__ = ["Cluster", "toy", "until_true"]


@contextmanager
def toy(folder: Path, slot: int) -> Iterator[Callable[[str], str]]:
    """Answers each item; `folder` shows which worker does what, and its parent processes."""

    def work(item: str) -> str:
        kind = item.partition("-")[0]
        above = [process.pid for process in psutil.Process().parents()]
        (folder / f"{item}.{os.getpid()}").write_text(json.dumps(above))
        if "TOY_BROKEN" in os.environ:
            raise OSError("this machine is broken")
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        while kind == "wait" and not (folder / "go").exists():
            time.sleep(0.01)
        with (folder / "done").open("a") as file:
            file.write(f"{item}\n")
        return f"{item} by slot {slot}"

    yield work


class Cluster:
    """A scheduler and workers, each a process of its own. Leaving the context ends them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Cluster:
        self.start_scheduler()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @property
    def address(self) -> str:
        until_true(self._is_there)
        return str(json.loads(self._file.read_text())["address"])

    @property
    def _file(self) -> Path:
        return self._folder / "scheduler.json"

    def joined(self) -> int:
        """How many workers there are now."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            return len(client.scheduler_info(n_workers=-1)["workers"])

    def start_scheduler(self) -> None:
        """Start one; workers that start meanwhile wait for it."""
        self._file.unlink(missing_ok=True)
        arguments = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._start([*arguments, "--scheduler-file", str(self._file)])

    def worker(self, *more: str, environment: Mapping[str, str] | None = None) -> int:
        """Start one worker process of one thread; return its process id."""
        arguments = ["worker", "--scheduler-file", str(self._file), "--nthreads", "1"]
        local = ["--local-directory", str(self._folder), "--no-dashboard"]
        nanny = [] if "--nanny" in more else ["--no-nanny"]
        return self._start([*arguments, *local, *nanny, *more], environment).pid

    def _is_there(self) -> bool:
        with suppress(FileNotFoundError, ValueError, KeyError):
            return bool(json.loads(self._file.read_text())["address"])
        return False

    def _start(
        self, arguments: list[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with (self._folder / f"{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                cwd=self._folder,  # which Python would search for modules first
                env={**command_environment(), **(environment or {})},
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process


def until_true(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, "the sign never came"
        os.sched_yield()
