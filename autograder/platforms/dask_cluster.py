"""Grades on the workers of a Dask cluster that is already running.

Only this module, `cluster_workers` and `dask_worker` use Dask. Results are on disk before a task
returns, in a folder that all machines see at the same path, so losing the scheduler loses no
grades. The messages contain the course's secret, so use your own cluster, and TLS (an address
`tls://...`) on a network that isn't yours.
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
from autograder.platforms.dask_worker import SharedWork, do, release
from autograder.platforms.demands import Demands, demanded
from autograder.runs.classroom import Elsewhere
from autograder.runs.room import Classroom, Handed
from autograder.store.fingerprint import files_of

__all__ = ["on_cluster", "run_all"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
_TICK = 1.0  # seconds between checks for workers that joined or left and for late items
_AHEAD = 2  # items in flight for each thread of the cluster
_PATIENCE = 120.0  # seconds until idle workers get the last items too
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
    """Yield each item with its outcome, as workers of the cluster finish them.

    Workers may join, leave and be killed meanwhile. A worker gets items once it has shown that its
    machine meets `demands`. With `wants_gpu`, items go only to workers with the Dask resource `GPU`
    if the cluster has any. An item that fails on one worker is tried on another.

    Raises RuntimeError if the scheduler is lost, if there is no worker for two minutes, or if no
    machine of the cluster is fit. Closing the iterator gives up what is in flight.
    """
    for name in ("distributed", "distributed.client"):  # each has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are reported once, below
    with _connected(address) as client:
        workers = Workers(client, address, demands, wants_gpu)
        run = _Run(client, workers, work, patience_seconds)
        try:
            yield from run.outcomes(items)
        except (OSError, FuturesCancelledError):  # raised once the scheduler is gone
            raise RuntimeError(
                f"the Dask scheduler at {address} is gone. Grades so far are kept; "
                "run the same command again to continue"
            ) from None
        finally:
            run.release()


def on_cluster(address: str) -> Elsewhere:
    """Return a function that grades a class on the cluster whose scheduler has this address."""

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
        get_address_host_port(
            address
        )  # otherwise a misspelt address would be tried until the timeout
        client = Client(address, timeout=_CONNECT, name="autograder")  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise RuntimeError(f"no Dask scheduler answers at {address}: {error}") from None
    except Exception as error:  # such as an argument unknown to one side
        raise RuntimeError(
            f"the Dask scheduler at {address} doesn't understand Dask {version('distributed')}, "
            f"which runs here; start it from the same environment ({type(error).__name__}: {error})"
        ) from None
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=5)  # type: ignore[no-untyped-call]


@dataclass
class _Flight(Generic[Item]):
    """One item on its way to one of several workers; a second copy is a separate flight."""

    #: The item.
    item: Item
    #: When it was launched, by the monotonic clock.
    begun: float
    #: The workers that may take it.
    allowed: frozenset[str]
    #: Whether another worker has failed at it.
    failed_before: bool


class _Run(Generic[Item, Outcome]):
    """One class being graded on a cluster."""

    def __init__(
        self,
        client: Client,
        workers: Workers,
        work: Work[Item, Outcome],
        patience_seconds: float,
    ) -> None:
        self._client = client
        self._workers = workers
        self._shared = SharedWork(secrets.token_hex(8), work)
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
                    continue  # another copy of its item was faster
                outcome = _outcome(future)
                if isinstance(outcome, Failure) and self._has_another_try(flight, future, fit):
                    continue
                self._drop_copies(flight.item)
                yield flight.item, outcome

    def release(self) -> None:
        """Cancel what is in flight, and end the processes that workers keep for this run."""
        if self._client.status != "running":
            return
        with suppress(Exception):
            self._client.cancel(list(self._flights), force=True)  # type: ignore[no-untyped-call]
            # A stuck worker doesn't answer; it ends the processes at the next run.
            run = self._client._run
            self._client.sync(  # type: ignore[no-untyped-call]
                run, release, self._shared.id, on_error="ignore", callback_timeout=_TICK
            )

    def _launch(self, item: Item, workers: Known, *, failed_before: bool = False) -> None:
        """Submit one item for the first of these workers that is free."""
        future = self._client.submit(
            do,
            self._shared,
            item,
            pure=False,
            workers=sorted(workers),
            resources=self._workers.resources(workers),
        )
        begun, allowed = time.monotonic(), frozenset(workers)
        self._flights[future] = _Flight(
            item=item, begun=begun, allowed=allowed, failed_before=failed_before
        )

    def _repeat_late(self, fit: Known) -> None:
        """Give the last items to idle workers too if they are late; the first outcome counts."""
        soon = time.monotonic() - self._patience
        late = [(f, flight) for f, flight in self._flights.items() if flight.begun < soon]
        for future, flight in late:
            if self._copies(flight.item) > 1:
                continue
            idle = self._workers.idle(fit, future)
            if idle:
                self._launch(flight.item, idle)

    def _relaunch_stranded(self, fit: Known) -> None:
        """Submit items again if all workers that could take them have left."""
        for future, flight in list(self._flights.items()):
            if fit and not flight.allowed & fit.keys():
                self._cancel(future)
                if not self._copies(flight.item):
                    self._launch(flight.item, fit, failed_before=flight.failed_before)

    def _landed(self) -> list[Future[Any]]:
        """Wait for an item's outcome or a worker's answer; return the finished items."""
        expected = [*self._flights, *self._workers.unheard()]
        if not expected:
            threading.Event().wait(_TICK)  # there is no worker yet
            return []
        try:
            done = wait(expected, timeout=_TICK, return_when="FIRST_COMPLETED").done  # type: ignore[no-untyped-call]
        except TimeoutError:
            return []
        return [future for future in done if future in self._flights]

    def _has_another_try(self, flight: _Flight[Item], future: Future[Any], fit: Known) -> bool:
        """Whether a failed item is still in flight, or is now tried by another worker.

        The failure may be the machine's fault, and a machine that fails fast would get most items.
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
        return Failure(f"{count} workers of the Dask cluster died on this; the last was {last}.")
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")
