"""Traces your own training: a block of code or a script, run on tensors without data.

Tensors made in the block have shapes but no memory, so make model and batch inside it. Values are
stand-ins (see `peakmem.measure.trace`), so the block must not branch on them.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from peakmem.measure.cuda_defaults import without_counters
from peakmem.measure.trace import fake_tensors
from peakmem.specs.ledger import Ledger

__all__ = ["Traced", "trace", "trace_script"]


class Traced:
    """The result of a traced block; its ledger exists once the block has ended."""

    def __init__(self) -> None:
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        """The block's ledger. Raises RuntimeError before the block has ended."""
        if self._ledger is None:
            raise RuntimeError("the block is still running, or failed; read the ledger after it")
        return self._ledger

    def __str__(self) -> str:
        return self.ledger.explain()


@contextmanager
def trace(device_profile: str = "torch-cuda") -> Iterator[Traced]:
    """Trace a block: `with peakmem.trace() as found: ...`, then read `found.ledger`.

    Put everything on the CPU under either profile, "torch-cuda" or "torch-cpu". Raises Untraceable
    if an operator's memory is unknown, ValueError if the profile is unknown, and RuntimeError if
    the block makes no tensors.

    >>> import torch
    >>> with trace() as found:
    ...     layer = torch.nn.Linear(100_000, 100_000, bias=False)  # 40 GB
    ...     layer(torch.ones(1, 100_000)).sum().backward()
    >>> found.ledger.by_owner()["parameter"]
    40000000000
    """
    found = Traced()
    with fake_tensors(device_profile) as meter:
        yield found
        ledger = meter.ledger()
    on_cuda = device_profile == "torch-cuda"
    found._ledger = without_counters(ledger) if on_cuda else ledger


def trace_script(
    path: str, arguments: Sequence[str] = (), device_profile: str = "torch-cuda"
) -> Ledger:
    """Run a script under a trace, and return the ledger.

    The script runs as `__main__` with `arguments` in `sys.argv`. Raises ValueError if there is no
    such file or it exits with an error; errors of `trace` and of the script pass through.
    """
    script = Path(path)
    if not script.is_file():
        raise ValueError(f"no such script: {path}; give the path of a Python file")
    folder = str(script.resolve().parent)
    with (
        mock.patch.object(sys, "argv", [path, *arguments]),
        mock.patch.object(sys, "path", [folder, *sys.path]),
        trace(device_profile) as found,
    ):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise ValueError(
                    f"{path} exited with {end.code!r}; make it run without a trace first"
                ) from None
    return found.ledger
