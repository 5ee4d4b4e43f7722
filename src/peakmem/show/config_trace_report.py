"""Output of `peakmem estimate --config --trace`: a traced step of transformers' own class."""

from __future__ import annotations

import json
from collections.abc import Iterator

from peakmem.core.units import both
from peakmem.predict.fit import Fit
from peakmem.show.cli.terminal import tell
from peakmem.show.picture import save_ledger
from peakmem.show.step_report import TABLES, fit_line, owner_lines, process_lines
from peakmem.specs.hardware import BOARDS, Accelerator, smallest_board
from peakmem.specs.model_config import read_config
from peakmem.specs.recipes import Recipe

__all__ = ["print_config_trace"]


def print_config_trace(
    name: str,
    recipe: Recipe,
    device: Accelerator | None,
    *,
    by: str,
    plot: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Trace the config's step and print it; return the exit status.

    Raises ValueError if the step can't be traced.
    """
    config = read_config(name)
    from peakmem.measure.traced_config import trace_config  # late, because it loads torch

    ledger = trace_config(config, recipe)
    fit = Fit(device or BOARDS[-1], ledger)
    if device is None:
        fit = Fit(smallest_board(fit.needed_bytes) or BOARDS[-1], ledger)
    if plot:
        save_ledger(plot, name, ledger, fit.device.memory_bytes)
    if as_json:
        figures = {
            "model": name,
            "counted_by": "trace",
            "gpu": fit.device.name or None,
            **fit.as_json(),
        }
        print(json.dumps(figures, indent=2))
    elif quiet:
        tell(fit_line(fit))
    else:
        table = list(TABLES[by](fit.ledger))
        tell(*_lines(name, config.model_type, fit, table, was_chosen=device is None))
    return 0 if fit.fits else 1


def _lines(
    name: str, model_type: str, fit: Fit, table: list[str], *, was_chosen: bool
) -> Iterator[str]:
    device = fit.device
    yield f"{name}: one step of a {model_type}, traced on {device.name or 'one device'}"
    yield ""
    yield f"{'at the peak, on one device':<28}{'bytes':>20}"
    yield from owner_lines(fit.ledger)
    memory = f"memory of {device.name}" if device.name else "memory given"
    yield f"  {memory:<26}{device.memory_bytes:>20,}  {both(device.memory_bytes)}"
    yield ""
    yield from [*table, ""] if table else []
    yield f"The peak occurs in the {fit.ledger.peak_phase} phase."
    yield from process_lines(fit)
    yield fit_line(fit)
    if was_chosen and fit.fits:
        yield f"{device.name} is the smallest listed board that holds this step."
    elif was_chosen:
        yield f"No listed board holds this step; {device.name} is the largest."
    yield "Not counted: other libraries' workspaces, and scratch memory inside an operator."
