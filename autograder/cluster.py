"""Cluster: the engine's work done by the workers of a Dask cluster that is already there.

The only module that names Dask. A task on a Dask worker hands its item to a process of that
worker's own, made and guarded as `engine` makes it: what kills a grading process kills no Dask
worker. Results are on disk before a task returns, in a folder that all machines see at one path,
so a scheduler that is lost loses nothing that was graded. What is sent holds the course's secret:
use a cluster that is yours, with TLS (an address `tls://...`) where its network is not.
"""

from __future__ import annotations

import fcntl
import logging
import multiprocessing
import os
import secrets
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from distributed import Client, Future, KilledWorker, wait
from distributed.client import FuturesCancelledError

from autograder.engine import Failure, Solo, Work
from autograder.isolation import missing_layers
from autograder.terms import environment

__all__ = ["Demands", "run_all"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_TICK = 1.0  # seconds between looks at who joined, who left and who is late
_AHEAD = 2  # items in flight for each thread of the cluster
_PATIENCE = 120.0  # seconds until the last items are given to idle workers a second time
_NOBODY = 120.0  # seconds that the cluster may be without any worker
_CONNECT = "30s"


@dataclass(frozen=True)
class Demands:
    """What a machine must have to grade for this controller.

    `environment` are versions and sources equal to the controller's; `paths` are files that it
    must see, so that what it writes lands where the controller reads it.
    """

    paths: tuple[Path, ...]
    isolated: bool
    environment: Mapping[str, str] = field(default_factory=environment)

    def unmet(self) -> list[str]:
        """Return a sentence for each demand that this machine does not meet."""
        there = environment()
        different = [
            f"it has {name} {there.get(name)}, and the controller has {wanted}"
            for name, wanted in self.environment.items()
            if there.get(name) != wanted
        ]
        unseen = [f"it does not see {path}" for path in self.paths if not path.exists()]
        return different + unseen + (missing_layers() if self.isolated else [])


@dataclass(frozen=True)
class _Unfit:
    """A task's outcome on a machine that must not grade."""

    worker: str
    reasons: tuple[str, ...]


@dataclass
class _Flight(Generic[Item]):
    """One item on its way; a second copy of a late one is a flight of its own."""

    item: Item
    begun: float
    allowed: frozenset[str] | None  # None: any worker


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

    Workers may join, leave and be killed meanwhile. With `wants_gpu` the items go to workers that
    have the Dask resource `GPU`, where the cluster has any. A machine that does not meet `demands`
    gets no more items, and its own go to others.

    Raises RuntimeError where the scheduler is lost, no worker is left for two minutes, or no
    machine of the cluster is fit. Closing the iterator gives up what is in flight.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # said below, once and in words
    with _connected(address) as client:
        run = _Run(client, address, work, demands, wants_gpu, patience_seconds)
        try:
            yield from run.outcomes(items)
        finally:
            run.release()


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    try:
        client = Client(address, timeout=_CONNECT, name="autograder")  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise RuntimeError(f"there is no Dask scheduler at {address}: {error}") from None
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=5)  # type: ignore[no-untyped-call]


class _Run(Generic[Item, Outcome]):
    """One class on its way through a cluster."""

    def __init__(
        self,
        client: Client,
        address: str,
        work: Work[Item, Outcome],
        demands: Demands,
        wants_gpu: bool,
        patience_seconds: float,
    ) -> None:
        self._client = client
        self._address = address
        self._plan = _Plan(secrets.token_hex(8), work, demands)
        self._wants_gpu = wants_gpu
        self._patience = patience_seconds
        self._flights: dict[Future[Any], _Flight[Item]] = {}
        self._unfit: dict[str, tuple[str, ...]] = {}
        self._alone_since: float | None = None

    def outcomes(self, items: Sequence[Item]) -> Iterator[tuple[Item, Outcome | Failure]]:
        waiting = deque(items)
        while waiting or self._flights:
            workers = self._fit_workers()
            threads = sum(worker["nthreads"] for worker in workers.values())
            while waiting and len(self._flights) < _AHEAD * threads:
                self._launch(waiting.popleft(), workers)
            if not waiting:
                self._repeat_late(workers)
            self._relaunch_stranded(workers)
            for future in self._landed():
                flight = self._flights.pop(future, None)
                if flight is None:
                    continue  # the other copy of its item was first
                outcome = self._outcome(future)
                if isinstance(outcome, _Unfit):
                    self._unfit[outcome.worker] = outcome.reasons
                    if not self._is_flying(flight.item):
                        waiting.appendleft(flight.item)
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
                run, _release, self._plan.id, on_error="ignore", callback_timeout=_TICK
            )

    def _fit_workers(self) -> dict[str, Any]:
        """The workers that may grade, by address; RuntimeError where there can be none."""
        if self._client.status != "running":
            raise self._lost()
        workers = dict(self._client.scheduler_info(n_workers=-1)["workers"])
        fit = {name: info for name, info in workers.items() if name not in self._unfit}
        if workers and not fit:
            said = "\n".join(f"{name}: {'; '.join(self._unfit[name])}" for name in workers)
            raise RuntimeError(f"no machine of the cluster may grade for this one:\n{said}")
        if self._wants_gpu:
            with_gpu = {n: info for n, info in fit.items() if info["resources"].get("GPU")}
            fit = with_gpu or fit
        now = time.monotonic()
        self._alone_since = None if fit else self._alone_since or now
        if self._alone_since is not None and now - self._alone_since > _NOBODY:
            raise RuntimeError(
                f"the Dask cluster at {self._address} has had no worker for {_NOBODY:g} s; "
                "start some and give the same command again"
            )
        return fit

    def _launch(self, item: Item, workers: Mapping[str, Any]) -> None:
        """Hand out one item; to these workers only, where the cluster has others too."""
        resources = {"GPU": 1} if all(w["resources"].get("GPU") for w in workers.values()) else None
        narrowed = bool(self._unfit) or not self._is_all(workers)
        allowed = frozenset(workers) if narrowed else None
        future = self._client.submit(
            _do,
            self._plan,
            item,
            pure=False,
            workers=sorted(allowed) if allowed else None,
            resources=resources if self._wants_gpu else None,
        )
        self._flights[future] = _Flight(item, time.monotonic(), allowed)

    def _is_all(self, workers: Mapping[str, Any]) -> bool:
        return self._wants_gpu or not set(self._known()) - set(workers)

    def _known(self) -> Sequence[str]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"])

    def _repeat_late(self, workers: Mapping[str, Any]) -> None:
        """Give late last items to other workers too: the first to end counts."""
        threads = sum(worker["nthreads"] for worker in workers.values())
        now = time.monotonic()
        for future, flight in list(self._flights.items()):
            late = now - flight.begun > self._patience
            if len(self._flights) >= threads or not late or self._copies(flight.item) > 1:
                continue
            processing = self._client.processing()  # type: ignore[no-untyped-call]
            others = {n: i for n, i in workers.items() if future.key not in processing.get(n, ())}
            if others:
                self._launch(flight.item, others)

    def _relaunch_stranded(self, workers: Mapping[str, Any]) -> None:
        """Hand out again what only workers that have left were allowed to take."""
        for future, flight in list(self._flights.items()):
            if workers and flight.allowed is not None and not flight.allowed & workers.keys():
                self._cancel(future)
                if not self._is_flying(flight.item):
                    self._launch(flight.item, workers)

    def _landed(self) -> list[Future[Any]]:
        if not self._flights:
            threading.Event().wait(_TICK)  # nobody to hand anything to yet
            return []
        try:
            done = wait(  # type: ignore[no-untyped-call]
                list(self._flights), timeout=_TICK, return_when="FIRST_COMPLETED"
            )
            return list(done.done)
        except TimeoutError:
            return []
        except FuturesCancelledError:
            raise self._lost() from None

    def _outcome(self, future: Future[Any]) -> Outcome | Failure | _Unfit:
        if future.status == "cancelled":
            raise self._lost()
        try:
            outcome: Outcome | Failure | _Unfit = future.result()
        except KilledWorker as error:
            return Failure(f"Too many workers of the cluster died at this submission: {error}")
        except Exception as error:
            return Failure(f"{type(error).__name__}: {error}")
        return outcome

    def _lost(self) -> RuntimeError:
        return RuntimeError(
            f"the Dask scheduler at {self._address} is gone. What was graded is kept; "
            "the same command goes on from here"
        )

    def _copies(self, item: Item) -> int:
        return sum(flight.item == item for flight in self._flights.values())

    def _is_flying(self, item: Item) -> bool:
        return self._copies(item) > 0

    def _drop_copies(self, item: Item) -> None:
        for future, flight in list(self._flights.items()):
            if flight.item == item:
                self._cancel(future)

    def _cancel(self, future: Future[Any]) -> None:
        del self._flights[future]
        future.cancel()  # type: ignore[no-untyped-call]


# In a Dask worker


@dataclass(frozen=True)
class _Plan:
    """What all tasks of one run share."""

    id: str
    work: Work[Any, Any]
    demands: Demands


_solos: dict[tuple[str, int], Solo[Any, Any]] = {}  # by plan and thread
_lock = threading.Lock()
_unmet: dict[str, tuple[str, ...]] = {}


def _do(plan: _Plan, item: Any) -> Any:
    """Do one item in a process of this thread's own, kept for the next item of the run."""
    from distributed import get_worker

    with _lock:
        if plan.id not in _unmet:
            _unmet[plan.id] = tuple(plan.demands.unmet())
    if _unmet[plan.id]:
        return _Unfit(get_worker().address, _unmet[plan.id])
    return _solo(plan).do(item)


def _solo(plan: _Plan) -> Solo[Any, Any]:
    thread = threading.get_ident()
    with _lock:
        # A controller that was killed could not say that its run is over; the next one does.
        for other in [key for key in _solos if key[1] == thread and key[0] != plan.id]:
            _solos.pop(other).close()
        if (plan.id, thread) not in _solos:
            # Dask's nanny marks its workers as daemons, to which multiprocessing denies children.
            # Ours end by themselves when their worker dies.
            multiprocessing.process.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
            _solos[plan.id, thread] = Solo(plan.work, _slot(thread))
        return _solos[plan.id, thread]


def _release(plan: str) -> None:
    with _lock:
        ended = [_solos.pop(key) for key in list(_solos) if key[0] == plan]
    for solo in ended:
        solo.close()


@cache
def _slot(_thread: int) -> int:
    """A slot that no other Dask worker of this machine has, held until this process ends."""
    folder = Path(tempfile.gettempdir(), f"autograder-slots-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    slot = 0
    while True:
        held = os.open(folder / str(slot), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            slot += 1
        else:
            return slot
