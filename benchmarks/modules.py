"""Trace's figures for every torch module and operator, compared with the meter and allocator.

Run as `python -m benchmarks.modules`. For each module and operator it takes training steps on the
CPU and compares peak bytes from three sources: `trace` on fake tensors, the meter on real ones, and
torch's own allocator in the same step without a meter, including scratch memory within operators.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.module_cases import NO_STEP, Sample, own_samples, torch_samples
from peakmem.measure.meter import BuildStep, measure
from peakmem.measure.trace import trace
from peakmem.specs.ledger import Ledger

__all__ = ["Row", "allocated_bytes", "compare", "held", "main", "summary"]

EXACT = 0.001


@dataclass(frozen=True)
class Row:
    """A module or an operator, and trace's results on its samples.

    Attributes:
        kind, name: "module" or "operator", and torch's name.
        samples: the number of steps that ran on real tensors.
        lowest, highest: ratio of trace to meter, for the peak and for the bytes that forward
            leaves; None if nothing was traced.
        refused: trace's message about samples that it refused to trace.
        failed: any other error in trace.
        not_run: why a sample wasn't measured.
        allocated: the highest ratio of torch's allocator to the meter; above 1 because of scratch
            within operators, below 1 because of what the meter itself adds.
    """

    kind: str
    name: str
    samples: int = 0
    lowest: float | None = None
    highest: float | None = None
    refused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    allocated: float | None = None

    @property
    def exact(self) -> bool:
        """Whether everything traced matches the measurement."""
        ratios = [ratio for ratio in (self.lowest, self.highest) if ratio is not None]
        return all(abs(ratio - 1) <= EXACT for ratio in ratios)


@dataclass(frozen=True)
class _Found:
    """The outcome of one sample."""

    ratios: tuple[float, ...] = ()
    refused: str = ""
    failed: str = ""
    not_run: str = ""
    allocated: float | None = None


def compare(samples: Iterable[Sample]) -> list[Row]:
    """Return a row for each module and operator that has samples."""
    found: dict[tuple[str, str], list[_Found]] = {}
    for sample in samples:
        before = found.setdefault((sample.kind, sample.name), [])
        before.append(_one(sample.build, allocator=sample.kind == "module" and len(before) < 2))
    return [_row(kind, name, each) for (kind, name), each in found.items()]


def _one(build: BuildStep, *, allocator: bool) -> _Found:
    torch.manual_seed(0)
    try:
        real = measure(build, "cpu")
        allocated = allocated_bytes(build) / real.peak_bytes if allocator else None
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        return _Found(not_run=_first_line(error))
    try:
        traced = trace(build, "torch-cpu")
    except NotImplementedError as error:
        return _Found(refused=_first_line(error), allocated=allocated)
    except Exception as error:
        return _Found(failed=_first_line(error), allocated=allocated)
    pairs = [(traced.peak_bytes, real.peak_bytes), (_kept(traced), _kept(real))]
    return _Found(tuple(a / b for a, b in pairs if b), allocated=allocated)


def _kept(ledger: Ledger) -> int:
    """The bytes live when forward ends."""
    return ledger.live_bytes[ledger.last_event("forward")]


def _row(kind: str, name: str, found: list[_Found]) -> Row:
    ratios = [ratio for one in found for ratio in one.ratios]
    allocated = [one.allocated for one in found if one.allocated is not None]
    return Row(
        kind,
        name,
        samples=sum(not one.not_run for one in found),
        lowest=round(min(ratios), 4) if ratios else None,
        highest=round(max(ratios), 4) if ratios else None,
        refused=tuple(dict.fromkeys(one.refused for one in found if one.refused)),
        failed=tuple(dict.fromkeys(one.failed for one in found if one.failed)),
        not_run=tuple(dict.fromkeys(one.not_run for one in found if one.not_run)),
        allocated=round(max(allocated), 3) if allocated else None,
    )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def allocated_bytes(build: BuildStep) -> int:
    """Return the peak of a third step by torch's CPU allocator, without a meter."""
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        step = build(torch.device("cpu"))
        for _ in range(2):
            step()
        with torch.autograd.profiler.record_function("the third step"):
            result = step()
        del result
    results: object = profile.kineto_results
    events = list(results.events())  # type: ignore[attr-defined]
    begins = next(event.start_ns() for event in events if event.name() == "the third step")
    changes = [(event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"]
    live = peak = 0
    for at, n_bytes in sorted(changes, key=lambda change: change[0]):
        live += n_bytes
        peak = max(peak, live) if at >= begins else live
    return peak


def summary(rows: Sequence[Row]) -> list[str]:
    """Return a sentence on how many are exact, refused or off."""
    lines = []
    for kind in ("module", "operator"):
        there = [row for row in rows if row.kind == kind]
        traced = [row for row in there if row.highest is not None]
        off = [row.name for row in traced if not row.exact]
        lines.append(
            f"{kind}s: {len(there)}; traced {len(traced)}, of them exact {len(traced) - len(off)}; "
            f"refused by name {sum(bool(row.refused) for row in there)}; other errors "
            f"{sum(bool(row.failed) for row in there)}; off by over 0.1 %: {', '.join(off) or 0}"
        )
    return lines


def held(rows: Iterable[Row]) -> bool:
    """Whether trace is exact whenever it doesn't refuse."""
    return all(row.exact for row in rows)


def write(rows: Sequence[Row], folder: Path) -> None:
    """Write the rows as `trace_modules.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {
        "device": f"CPU, {platform.machine()}",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "summary": summary(rows),
        "no_step": dict(NO_STEP),
        "rows": [{k: v for k, v in asdict(row).items() if v not in ((), None)} for row in rows],
    }
    path = folder / "trace_modules.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the summary and the inexact rows; return 1 if trace is off anywhere."""
    parser = argparse.ArgumentParser(prog="modules", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/measurements"), metavar="DIR")
    options = parser.parse_args(arguments)
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    begin = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        rows = compare(sample for source in (own_samples, torch_samples) for sample in source())
    for row in rows:
        if not row.exact or row.refused or row.failed or not row.samples:
            print(row)
    print(*summary(rows), sep="\n")
    write(rows, options.out)
    print(
        f"{len(rows)} rows in {time.perf_counter() - begin:.0f} s; {options.out}/trace_modules.json"
    )
    return 0 if held(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
