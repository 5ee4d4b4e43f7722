"""The GPU run: everything that only a GPU can show, in a few minutes, without Jupyter.

Run as `python -m benchmarks.gpu`. Exit status 0: every part ran and every bound held. 1: a bound
was exceeded, or a part failed. 2: no bound was exceeded, but a part didn't run, so this isn't a
success.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks.figures import Figure, NotRun, Outcome
from benchmarks.parts import PARTS, Part

__all__ = ["main", "run_parts", "status", "table"]

_NO_GPU = "this machine has no CUDA GPU"


def run_parts(parts: Sequence[Part], device: torch.device | None, seconds: float) -> list[Outcome]:
    """Run the parts one after another, each if enough time is left."""
    end = time.perf_counter() + seconds
    outcomes = []
    for part in parts:
        left = end - time.perf_counter()
        if device is None:
            outcomes.append(Outcome(part.name, "not run", reason=_NO_GPU))
        elif left < part.seconds:
            reason = f"it is given {part.seconds} s, and {max(left, 0):.0f} s are left"
            outcomes.append(Outcome(part.name, "not run", reason=reason))
        else:
            outcomes.append(_run(part, device))
    return outcomes


def _run(part: Part, device: torch.device) -> Outcome:
    begin = time.perf_counter()
    try:
        figures = tuple(part.run(device))
    except NotRun as why:
        return Outcome(part.name, "not run", reason=str(why))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Outcome(part.name, "failed", reason=reason)
    return Outcome(part.name, "run", figures, seconds=time.perf_counter() - begin)


def status(outcomes: Sequence[Outcome]) -> int:
    """Return the exit status for the outcomes."""
    figures = [figure for outcome in outcomes for figure in outcome.figures]
    if any(outcome.state == "failed" for outcome in outcomes) or not all(f.held for f in figures):
        return 1
    return 2 if any(outcome.state == "not run" for outcome in outcomes) else 0


def table(outcomes: Sequence[Outcome]) -> str:
    """Return one line per figure: part, run or not run, figure, bound, and whether it held."""
    lines = [f"{'part':26}{'state':9}figure"]
    for outcome in outcomes:
        if not outcome.figures:
            lines.append(f"{outcome.part:26}{outcome.state:9}{outcome.reason}")
        for figure in outcome.figures:
            shown = f"{figure.name}: {figure.value:.4g} {figure.unit}".rstrip()
            kept = "" if not figure.bound else "kept" if figure.held else "BROKEN"
            lines.append(f"{outcome.part:26}{outcome.state:9}{shown:54}{figure.bound:12}{kept}")
    return "\n".join(line.rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all parts, write the measurements, and print the table; return the exit status."""
    parser = argparse.ArgumentParser(prog="gpu", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="for all parts (600)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument(
        "--only", nargs="+", metavar="PART", help="take these parts anew, and keep the others"
    )
    parser.add_argument("--dry-run", action="store_true", help="list the parts; run none")
    parser.add_argument("--out", type=Path, default=Path("docs/measurements"), metavar="DIR")
    options = parser.parse_args(arguments)
    if options.dry_run:
        print(*(f"{part.name:26}{part.seconds:4} s" for part in PARTS), sep="\n")
        return 0
    unknown = set(options.only or ()) - {part.name for part in PARTS}
    if unknown:
        parser.error(f"no part is named {', '.join(sorted(unknown))}; --dry-run lists them")
    there = options.device == "cpu" or torch.cuda.is_available()
    device = torch.device(options.device) if there else None
    parts = [part for part in PARTS if not options.only or part.name in options.only]
    outcomes = run_parts(parts, device, options.seconds)
    if device is not None and device.type == "cuda":
        _write(outcomes, options.out, torch.cuda.get_device_name(device))
    elif device is not None:
        print("On the CPU with tiny sizes: this tries the code out and says nothing about a GPU.")
    print(table(outcomes))
    return status(outcomes)


def _write(outcomes: Sequence[Outcome], folder: Path, device_name: str) -> None:
    from benchmarks.pictures import draw_figures

    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", device_name.lower()).strip("-")
    path = folder / f"{name}.json"
    outcomes = _beside(outcomes, path)
    found = {
        "device": device_name,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "parts": [asdict(outcome) for outcome in outcomes],
    }
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw_figures(outcomes, folder / f"{name}.png")


def _beside(outcomes: Sequence[Outcome], path: Path) -> list[Outcome]:
    """Return these outcomes, and those of other parts recorded with the same version of torch."""
    known = {outcome.part: outcome for outcome in outcomes}
    if path.exists():
        record = json.loads(path.read_text("utf-8"))
        for part in record["parts"] if record["torch"] == torch.__version__ else ():
            figures = tuple(
                Figure(**{**figure, "detail": tuple(figure.get("detail", ()))})
                for figure in part.pop("figures")
            )
            known.setdefault(part["part"], Outcome(**part, figures=figures))
    return [known[part.name] for part in PARTS if part.name in known]


if __name__ == "__main__":
    sys.exit(main())
