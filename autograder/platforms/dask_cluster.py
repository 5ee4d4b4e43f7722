"""Grades on the workers of a Dask cluster that is already running.

The only module that names Dask. Results are on disk before a task returns, in a folder that all
machines see at one path, so a scheduler that is lost loses nothing that was graded. What is sent
holds the course's secret: use a cluster that is yours, with TLS (an address `tls://...`) where its
network is not.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from distributed import Client, Future, KilledWorker, wait
from distributed.client import FuturesCancelledError
from distributed.comm.addressing import get_address_host_port

from autograder.base.pool import Failure, Work
from autograder.grading.registry import CourseLab
from autograder.platforms.dask_worker import Plan, do, release
from autograder.platforms.demands import Demands, demanded
from autograder.runs.classroom import Classroom, Elsewhere, Handed
from autograder.store.fingerprint import files_of

__all__ = ["on_cluster", "run_all"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Known = Mapping[str, Any]  # workers: what the scheduler says of each, by address

_TICK = 1.0  # seconds between looks at who joined, who left and who is late
_AHEAD = 2  # items in flight for each thread of the cluster
_PATIENCE = 120.0  # seconds until the last items are given to idle workers a second time
_NOBODY = 120.0  # seconds that the cluster may be without any worker
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
        workers = _Workers(client, address, demands, wants_gpu)
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


class _Workers:
    """The workers of the cluster, and which of them may grade for this run."""

    def __init__(self, client: Client, address: str, demands: Demands, wants_gpu: bool) -> None:
        self._client = client
        self._address = address
        self._demands = demands
        self._wants_gpu = wants_gpu
        self._asked: dict[str, Future[Any]] = {}  # by address, until the worker answers
        self._lacks: dict[str, list[str]] = {}  # by address; nothing where it may grade
        self._silent = 0  # workers that left before they had answered
        self._had_gpu = False
        self._alone_since: float | None = None

    def fit(self) -> dict[str, Any]:
        """The workers that may grade now; RuntimeError where there can be none."""
        if self._client.status != "running":
            raise ConnectionError
        known = dict(self._client.scheduler_info(n_workers=-1)["workers"])
        self._ask(known)
        if known and all(self._lacks.get(name) for name in known):
            said = "\n".join(f"{name}: {'; '.join(self._lacks[name])}" for name in known)
            raise RuntimeError(f"no machine of the cluster may grade for this one:\n{said}")
        fit = {name: known[name] for name, lacking in self._lacks.items() if not lacking}
        if self._wants_gpu:
            promising = {name: info for name, info in known.items() if not self._lacks.get(name)}
            self._had_gpu = self._had_gpu or bool(_with_gpu(fit))
            if self._had_gpu or _with_gpu(promising):
                fit = _with_gpu(fit)
        self._give_up_if_nobody_comes(fit)
        return fit

    def unheard(self) -> list[Future[Any]]:
        """What is still to be heard from workers that joined."""
        return list(self._asked.values())

    def idle(self, fit: Known, late: Future[Any]) -> dict[str, Any]:
        """Those of the fit that have fewer tasks than threads, and this one not among them."""
        has = self._client.processing()  # type: ignore[no-untyped-call]
        return {
            name: info
            for name, info in fit.items()
            if len(has.get(name, ())) < info["nthreads"] and late.key not in has.get(name, ())
        }

    def resources(self, workers: Known) -> dict[str, int] | None:
        """What a task has to ask for that goes to these: of a GPU's worker, one at a time."""
        on_gpus = self._wants_gpu and len(_with_gpu(workers)) == len(workers)
        return {"GPU": 1} if on_gpus else None

    def _ask(self, known: Known) -> None:
        """Have each new worker look at its machine: before it gets an item, not at its first one.

        One whose environment lacks the grader ends at the question: Dask cannot read it there.
        """
        for gone in self._lacks.keys() - known.keys():
            del self._lacks[gone]
        for gone in self._asked.keys() - known.keys():
            self._asked.pop(gone).cancel()  # type: ignore[no-untyped-call]
            self._silent += 1
        for new in known.keys() - self._lacks.keys() - self._asked.keys():
            self._asked[new] = self._client.submit(
                self._demands.unmet, workers=[new], pure=False, priority=1
            )
        for name, future in list(self._asked.items()):
            if future.done():  # type: ignore[no-untyped-call]
                self._lacks[name] = _answer(self._asked.pop(name))

    def _give_up_if_nobody_comes(self, fit: Known) -> None:
        now = time.monotonic()
        self._alone_since = None if fit else self._alone_since or now
        if self._alone_since is not None and now - self._alone_since > _NOBODY:
            kind = "worker with the resource GPU" if self._had_gpu else "worker that may grade"
            left = f"{self._silent} joined and ended at once: their logs say why. " * bool(
                self._silent
            )
            raise RuntimeError(
                f"the Dask cluster at {self._address} has had no {kind} for {_NOBODY:g} s. {left}"
                "Start some and give the same command again"
            )


def _with_gpu(workers: Known) -> dict[str, Any]:
    return {name: info for name, info in workers.items() if info["resources"].get("GPU")}


def _answer(future: Future[Any]) -> list[str]:
    """What a worker's machine lacks, in its own words or in ours."""
    if future.status == "cancelled":
        raise ConnectionError
    try:
        lacking: list[str] = future.result()
    except Exception as error:
        return [f"it cannot be asked ({type(error).__name__}: {' '.join(str(error).split())})"]
    return lacking


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
        workers: _Workers,
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
            *(do, self._plan, item),
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
