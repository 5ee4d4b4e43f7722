"""Output of `peakmem estimate --config --trace`: a traced step of transformers' own class."""

from __future__ import annotations

import json
from collections.abc import Iterator

from peakmem.predict.fit import Fit
from peakmem.show.cli.estimate_report import NOT_COUNTED
from peakmem.show.cli.terminal import tell
from peakmem.show.picture import save_ledger
from peakmem.show.step_report import board_line, fit_line, peak_lines
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
        tell(fit_line(fit.margin_bytes, fit.excess_bytes))
    else:
        tell(*_lines(name, config.model_type, fit, by, was_chosen=device is None))
    return 0 if fit.fits else 1


def _lines(name: str, model_type: str, fit: Fit, by: str, *, was_chosen: bool) -> Iterator[str]:
    device = fit.device
    yield f"{name}: one step of a {model_type}, traced on {device.name or 'one device'}"
    yield ""
    yield from peak_lines(fit, by)
    yield fit_line(fit.margin_bytes, fit.excess_bytes)
    if was_chosen:
        yield board_line(device, "this step", fits=fit.fits)
    yield NOT_COUNTED
