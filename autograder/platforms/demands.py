"""Defines what a machine needs in order to grade for a controller on another machine."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from autograder.base.files import write_whole
from autograder.sandbox.host.isolation import missing_layers
from autograder.store.fingerprint import environment
from autograder.store.out_folder import OutFolder

__all__ = ["Demands", "demanded"]


@dataclass(frozen=True)
class Demands:
    """The requirements on a machine that grades for this controller."""

    #: Files that it must see, so that the controller sees the files it writes.
    paths: tuple[Path, ...]
    #: Whether it must have a sandbox.
    isolated: bool
    #: Versions and sources that must equal the controller's.
    environment: Mapping[str, str] = field(default_factory=environment)

    def unmet(self) -> list[str]:
        """Return a sentence for each demand that this machine doesn't meet."""
        there = environment()
        different = [
            f"it has {name} {there.get(name)}, but the controller has {wanted}"
            for name, wanted in self.environment.items()
            if there.get(name) != wanted
        ]
        unseen = [f"it doesn't see {path}" for path in self.paths if not path.exists()]
        return different + unseen + (missing_layers() if self.isolated else [])


@contextmanager
def demanded(out: OutFolder, files: Sequence[Path], *, isolated: bool) -> Iterator[Demands]:
    """Yield the demands on machines that grade into `out` and read `files`.

    They recognise this `out` by an empty file, which exists while the context lasts.
    """
    beacon = out.beacon(secrets.token_hex(8))
    write_whole(beacon, b"")
    try:
        yield Demands((beacon, *files), isolated)
    finally:
        beacon.unlink(missing_ok=True)
