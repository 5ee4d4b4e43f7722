"""Grades on the workers of a Dask cluster that is already running.

Only this module, `cluster_workers` and `dask_worker` name Dask. Results are on disk before a task
returns, in a folder that all machines see at one path, so a scheduler that is lost loses nothing
that was graded. What is sent holds the course's secret: use a cluster that is yours, with TLS (an
address `tls://...`) where its network is not.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from distributed import Client, Future, KilledWorker, wait
from distributed.client import FuturesCancelledError
from distributed.comm.addressing import get_address_host_port

from autograder.base.pool import Failure, Work
from autograder.grading.course_lab import CourseLab
from autograder.platforms.cluster_workers import Known, Workers
from autograder.platforms.dask_worker import Plan, do, release
from autograder.platforms.demands import Demands, demanded
from autograder.runs.classroom import Elsewhere
from autograder.runs.room import Classroom, Handed
from autograder.store.fingerprint import files_of

__all__ = ["on_cluster", "run_all"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
_TICK = 1.0  # seconds between looks at who joined, who left and who is late
_AHEAD = 2  # items in flight for each thread of the cluster
_PATIENCE = 120.0  # seconds until the last items are given to idle workers a second time
_CONNECT = "30s"


def run_all(
    items: Sequence[Item],
    work: Work[Item, Outcome],
    address: str,
    demands: Demands,
    *,
    wants_gpu: bool = False,
    patience_seconds: float = _PATIENCE,
) -> Iterator[tuple[Item, Outcome | Failure]]:
    """Yield each item with its outcome, as they are finished by workers of the cluster.

    Workers may join, leave and be killed meanwhile. A worker gets items once it has shown that its
    machine meets `demands`. With `wants_gpu` they go to workers that have the Dask resource `GPU`
    alone, where the cluster has any. What fails on one worker is tried on another.

    Raises RuntimeError where the scheduler is lost, no worker is left for two minutes, or no
    machine of the cluster is fit. Closing the iterator gives up what is in flight.
    """
    for name in ("distributed", "distributed.client"):  # which has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)  # said below, once and in words
    with _connected(address) as client:
        workers = Workers(client, address, demands, wants_gpu)
        run = _Run(client, workers, work, patience_seconds)
        try:
            yield from run.outcomes(items)
        except (OSError, FuturesCancelledError):  # what asking a scheduler that is gone raises
            raise RuntimeError(
                f"the Dask scheduler at {address} is gone. What was graded is kept; "
                "the same command goes on from here"
            ) from None
        finally:
            run.release()


def on_cluster(address: str) -> Elsewhere:
    """Return what grades a class on the cluster whose scheduler has this address."""

    def spread(
        room: Classroom, lab: CourseLab, handed: Sequence[Handed], work: Work[Handed, str]
    ) -> Iterator[tuple[Handed, Any]]:
        gpu = any(task.needs_gpu for task in lab.tasks)
        with demanded(room.out, files_of(room.lab, room.course), isolated=room.isolated) as demands:
            yield from run_all(handed, work, address, demands, wants_gpu=gpu)

    return spread


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    try:
        get_address_host_port(address)  # one that is misspelt would be tried for as long as others
        client = Client(address, timeout=_CONNECT, name="autograder")  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise RuntimeError(f"no Dask scheduler answers at {address}: {error}") from None
    except Exception as error:  # such as an argument that one side does not know
        raise RuntimeError(
            f"the Dask scheduler at {address} does not understand Dask {version('distributed')}, "
            f"which is here; start it from the same environment ({type(error).__name__}: {error})"
        ) from None
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=5)  # type: ignore[no-untyped-call]


@dataclass
class _Flight(Generic[Item]):
    """One item on its way to one of some workers; a second copy is a flight of its own."""

    item: Item
    begun: float
    allowed: frozenset[str]
    failed_before: bool


class _Run(Generic[Item, Outcome]):
    """One class on its way through a cluster."""

    def __init__(
        self,
        client: Client,
        workers: Workers,
        work: Work[Item, Outcome],
        patience_seconds: float,
    ) -> None:
        self._client = client
        self._workers = workers
        self._plan = Plan(secrets.token_hex(8), work)
        self._patience = patience_seconds
        self._flights: dict[Future[Any], _Flight[Item]] = {}

    def outcomes(self, items: Sequence[Item]) -> Iterator[tuple[Item, Outcome | Failure]]:
        waiting = deque(items)
        while waiting or self._flights:
            fit = self._workers.fit()
            threads = sum(worker["nthreads"] for worker in fit.values())
            while waiting and len(self._flights) < _AHEAD * threads:
                self._launch(waiting.popleft(), fit)
            if not waiting:
                self._repeat_late(fit)
            self._relaunch_stranded(fit)
            for future in self._landed():
                flight = self._flights.pop(future, None)
                if flight is None:
                    continue  # the other copy of its item was first
                outcome = _outcome(future)
                if isinstance(outcome, Failure) and self._has_another_try(flight, future, fit):
                    continue
                self._drop_copies(flight.item)
                yield flight.item, outcome

    def release(self) -> None:
        """Take back what is in flight, and end the processes that workers keep for this run."""
        if self._client.status != "running":
            return
        with suppress(Exception):
            self._client.cancel(list(self._flights), force=True)  # type: ignore[no-untyped-call]
            # A worker that is stuck does not answer; it ends the processes at the next run.
            run = self._client._run
            self._client.sync(  # type: ignore[no-untyped-call]
                run, release, self._plan.id, on_error="ignore", callback_timeout=_TICK
            )

    def _launch(self, item: Item, workers: Known, *, failed_before: bool = False) -> None:
        """Hand out one item to whichever of these workers is free first."""
        future = self._client.submit(
            do,
            self._plan,
            item,
            pure=False,
            workers=sorted(workers),
            resources=self._workers.resources(workers),
        )
        begun, allowed = time.monotonic(), frozenset(workers)
        self._flights[future] = _Flight(item, begun, allowed, failed_before)

    def _repeat_late(self, fit: Known) -> None:
        """Give late last items to idle workers too: the first to end counts."""
        soon = time.monotonic() - self._patience
        late = [(f, flight) for f, flight in self._flights.items() if flight.begun < soon]
        for future, flight in late:
            if self._copies(flight.item) > 1:
                continue
            idle = self._workers.idle(fit, future)
            if idle:
                self._launch(flight.item, idle)

    def _relaunch_stranded(self, fit: Known) -> None:
        """Hand out again what only workers that have left were allowed to take."""
        for future, flight in list(self._flights.items()):
            if fit and not flight.allowed & fit.keys():
                self._cancel(future)
                if not self._copies(flight.item):
                    self._launch(flight.item, fit, failed_before=flight.failed_before)

    def _landed(self) -> list[Future[Any]]:
        """Wait for news, of an item or of a worker that joined; return the items'."""
        expected = [*self._flights, *self._workers.unheard()]
        if not expected:
            threading.Event().wait(_TICK)  # nobody to hand anything to yet
            return []
        try:
            done = wait(expected, timeout=_TICK, return_when="FIRST_COMPLETED").done  # type: ignore[no-untyped-call]
        except TimeoutError:
            return []
        return [future for future in done if future in self._flights]

    def _has_another_try(self, flight: _Flight[Item], future: Future[Any], fit: Known) -> bool:
        """Whether an item that failed is on its way yet, or can be tried by another worker.

        It may have been the machine's fault, and one that fails at once would have the most items.
        """
        if self._copies(flight.item):
            return True
        (tried,) = self._client.who_has([future]).values()  # type: ignore[no-untyped-call]
        others = {name: info for name, info in fit.items() if name not in tried}
        if flight.failed_before or not tried or not others:
            return False
        self._launch(flight.item, others, failed_before=True)
        return True

    def _copies(self, item: Item) -> int:
        return sum(flight.item == item for flight in self._flights.values())

    def _drop_copies(self, item: Item) -> None:
        for future, flight in list(self._flights.items()):
            if flight.item == item:
                self._cancel(future)

    def _cancel(self, future: Future[Any]) -> None:
        del self._flights[future]
        future.cancel()  # type: ignore[no-untyped-call]


def _outcome(future: Future[Any]) -> Any:
    if future.status == "cancelled":
        raise ConnectionError
    try:
        return future.result()
    except KilledWorker as error:
        count, last = error.allowed_failures + 1, error.last_worker.address
        return Failure(f"{count} workers of the Dask cluster died at this; the last was {last}.")
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")
