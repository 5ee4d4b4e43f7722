"""Raises resource limits that are too low for grading, or reports them."""

from __future__ import annotations

import contextlib
import resource
from dataclasses import dataclass

__all__ = ["raise_limits", "too_low"]

_MIB = 2**20


@dataclass(frozen=True)
class _Limit:
    """A resource limit and its bounds, in bytes for memory and files."""

    #: The limit's number in `resource`.
    kind: int
    #: Its letter in `ulimit -<letter>`.
    letter: str
    #: Its name in messages.
    name: str
    #: What the grader raises it to.
    wanted: int
    #: The least that the sandbox needs.
    needed: int
    #: The unit that `ulimit` counts in.
    unit: int = 1


_LIMITS = (
    _Limit(resource.RLIMIT_NOFILE, "n", "open files", 1024, 256),
    _Limit(
        resource.RLIMIT_AS, "v", "address space in KiB", resource.RLIM_INFINITY, 2**32, unit=1024
    ),
    _Limit(resource.RLIMIT_DATA, "d", "data in KiB", resource.RLIM_INFINITY, 2**32, unit=1024),
    _Limit(resource.RLIMIT_FSIZE, "f", "file size in KiB", resource.RLIM_INFINITY, 2**30, 1024),
    _Limit(resource.RLIMIT_NPROC, "u", "processes", 1024, 256),
    _Limit(resource.RLIMIT_SIGPENDING, "i", "waiting signals", 1024, 256),
)


def raise_limits() -> None:
    """Raise this process's limits to what grading wants, as far as the system allows."""
    for limit in _LIMITS:
        soft, hard = resource.getrlimit(limit.kind)
        if _enough(soft, limit.wanted):
            continue
        most = hard if _enough(hard, limit.wanted) else limit.wanted
        for pair in ((limit.wanted, most), (hard, hard)):
            with contextlib.suppress(ValueError, OSError):  # only root may raise the hard one
                resource.setrlimit(limit.kind, pair)
                break


def too_low() -> list[str]:
    """Return a sentence for each limit of this process that is too low for the sandbox."""
    return [
        f"The limit of {limit.name} is {soft // limit.unit}, but the sandbox needs "
        f"{limit.needed // limit.unit}: run `ulimit -{limit.letter} {_remedy(limit)}` before the "
        "command, or if that is refused, have it raised in /etc/security/limits.conf."
        for limit in _LIMITS
        if not _enough(soft := resource.getrlimit(limit.kind)[0], limit.needed)
    ]


def _remedy(limit: _Limit) -> str:
    endless = limit.wanted == resource.RLIM_INFINITY
    return "unlimited" if endless else str(limit.wanted // limit.unit)


def _enough(limit: int, needed: int) -> bool:
    if limit == resource.RLIM_INFINITY or needed == resource.RLIM_INFINITY:
        return limit == resource.RLIM_INFINITY
    return limit >= needed
