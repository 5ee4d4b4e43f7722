"""Output of `peakmem trace`: a script's peak, its moment, and its owners."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence

from peakmem.core.errors import PeakmemError
from peakmem.show.cli.terminal import tell
from peakmem.show.picture import require_picture, save_ledger
from peakmem.show.step_report import head, layer_lines, owner_lines
from peakmem.specs.ledger import Ledger

__all__ = ["print_trace"]

_LARGEST = 5


def print_trace(
    script: str, arguments: Sequence[str], profile: str, plot: str | None, *, as_json: bool
) -> int:
    """Trace a script, print its peak by owner, and return 0.

    Raises ValueError if the script is missing, fails, or can't be traced.
    """
    from peakmem.measure.tracing import trace_script  # late, because it loads torch

    if plot:
        require_picture(plot)
    try:
        ledger = trace_script(script, arguments, profile)
    except Exception as error:  # a script may raise anything
        raise ValueError(_told(error, script)) from error
    if plot:
        save_ledger(plot, script, ledger)
    if as_json:
        print(json.dumps(_figures(script, ledger), indent=2))
    else:
        tell(*_lines(script, ledger))
    return 0


def _told(error: Exception, script: str) -> str:
    """Say in one sentence what stopped a script, and at which of its lines."""
    said = str(error).partition("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == script]
    if not lines:
        return said
    where = f"{script}, line {lines[-1]}"
    if isinstance(error, PeakmemError):
        return f"{where}: {said}"
    said = f"{where}: {type(error).__name__}: {said.rstrip('.')}"
    if "cuda" in said.casefold():
        return f"{said}. Keep everything on the CPU: a trace predicts CUDA's memory there"
    return f"{said}. Make it run without a trace first"


def _lines(script: str, ledger: Ledger) -> list[str]:
    event = ledger.events[ledger.peak_event]
    lines = [
        f"{script}: {len(ledger.events):,} operators, traced without memory",
        "",
        head("at the peak"),
        *owner_lines(ledger),
        "",
        *layer_lines(ledger),
        f"The peak occurs in the {event.phase} phase, at {event.name}.",
        head("largest at the peak"),
    ]
    for tensor in ledger.live()[:_LARGEST]:
        size = " x ".join(map(str, tensor.shape)) or "one number"
        lines.append(f"  {tensor.owner:<26}{tensor.bytes:>20,}  {size}, {tensor.dtype}")
    return lines


def _figures(script: str, ledger: Ledger) -> dict[str, object]:
    event = ledger.events[ledger.peak_event]
    return {
        "script": script,
        "peak_bytes": ledger.peak_bytes,
        "peak_phase": event.phase,
        "peak_event": event.name,
        "by_owner": ledger.by_owner(),
        "by_layer": ledger.by_layer(),
        "by_module": ledger.by_module(),
        "events": len(ledger.events),
    }
