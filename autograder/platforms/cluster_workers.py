"""Tracks the workers of a Dask cluster, and which of them may grade for a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from distributed import Client, Future

from autograder.platforms.demands import Demands

__all__ = ["Known", "Workers"]

Known = Mapping[str, Any]  # the scheduler's information on workers, by address
_NOBODY = 120.0  # seconds that the cluster may have no workers


class Workers:
    """The workers of the cluster, and which of them may grade for this run."""

    def __init__(self, client: Client, address: str, demands: Demands, wants_gpu: bool) -> None:
        self._client = client
        self._address = address
        self._demands = demands
        self._wants_gpu = wants_gpu
        self._asked: dict[str, Future[Any]] = {}  # by address, until the worker answers
        self._lacks: dict[str, list[str]] = {}  # by address; empty if the worker may grade
        self._silent = 0  # workers that left before answering
        self._had_gpu = False
        self._alone_since: float | None = None

    def fit(self) -> dict[str, Any]:
        """Return the workers that may grade now. Raises RuntimeError if there can be none."""
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
        """Return the pending answers of workers that joined."""
        return list(self._asked.values())

    def idle(self, fit: Known, late: Future[Any]) -> dict[str, Any]:
        """Return the workers with free threads that aren't already doing this task."""
        has = self._client.processing()  # type: ignore[no-untyped-call]
        return {
            name: info
            for name, info in fit.items()
            if len(has.get(name, ())) < info["nthreads"] and late.key not in has.get(name, ())
        }

    def resources(self, workers: Known) -> dict[str, int] | None:
        """Return the Dask resources for a task on these workers: one task at a time per GPU."""
        on_gpus = self._wants_gpu and len(_with_gpu(workers)) == len(workers)
        return {"GPU": 1} if on_gpus else None

    def _ask(self, known: Known) -> None:
        """Make each new worker check its machine before it gets its first item.

        A worker whose environment lacks the grader ends at this point, because Dask can't load it.
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
            left = (
                f"{self._silent} joined and ended immediately; see their logs for the reason. "
            ) * bool(self._silent)
            raise RuntimeError(
                f"the Dask cluster at {self._address} has had no {kind} for {_NOBODY:g} s. {left}"
                "Start some and run the same command again"
            )


def _with_gpu(workers: Known) -> dict[str, Any]:
    return {name: info for name, info in workers.items() if info["resources"].get("GPU")}


def _answer(future: Future[Any]) -> list[str]:
    """What a worker's machine lacks, in its own words or the grader's."""
    if future.status == "cancelled":
        raise ConnectionError
    try:
        lacking: list[str] = future.result()
    except Exception as error:
        return [f"it can't be asked ({type(error).__name__}: {' '.join(str(error).split())})"]
    return lacking
