"""Output of `peakmem trace`: a script's peak, its moment, and its owners."""

from __future__ import annotations

import json
from collections.abc import Sequence

from peakmem.show.cli.terminal import tell
from peakmem.show.picture import save_ledger
from peakmem.show.step_report import layer_lines, owner_lines
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

    try:
        ledger = trace_script(script, arguments, profile)
    except (NotImplementedError, RuntimeError) as error:
        raise ValueError(str(error).partition("\n")[0]) from error
    if plot:
        save_ledger(plot, script, ledger)
    if as_json:
        print(json.dumps(_figures(script, ledger), indent=2))
    else:
        tell(*_lines(script, ledger))
    return 0


def _lines(script: str, ledger: Ledger) -> list[str]:
    event = ledger.events[ledger.peak_event]
    lines = [
        f"{script}: {len(ledger.events):,} operators, traced without memory",
        "",
        f"{'at the peak':<28}{'bytes':>20}",
        *owner_lines(ledger),
        "",
        *layer_lines(ledger),
        f"The peak occurs in the {event.phase} phase, at {event.name}.",
        f"{'largest at the peak':<28}{'bytes':>20}",
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
