"""`peakmem estimate`: predicts one training step's peak memory, and prints or exports it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from peakmem.predict.estimate import Estimate, estimate
from peakmem.predict.suggestions import suggest
from peakmem.show.cli.estimate_report import (
    NOT_COUNTED,
    listing,
    listing_as_json,
    notes_on,
    table_lines,
)
from peakmem.show.cli.inference import run_inference
from peakmem.show.cli.step import Step
from peakmem.show.cli.terminal import BAD, GOOD, tell
from peakmem.show.config_report import ConfigReport
from peakmem.show.config_trace_report import print_config_trace
from peakmem.show.exports import print_export
from peakmem.show.picture import save_ledger
from peakmem.show.step_report import batch_line, verdict_lines
from peakmem.specs.hardware import BOARDS, smallest_board
from peakmem.specs.models import ModelShape, model
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["run_estimate"]


def run_estimate(step: Step) -> int:
    """Print the report, list or file; return 0 if the step fits, 1 if not."""
    if step.show_list:
        return _print_list(step)
    if step.inference:
        return run_inference(step)
    if step.trace:
        return _trace_config(step)
    if step.config is None:
        return _print_step(step, _named_model(step), None)
    report = ConfigReport.of(step.config, step.recipe, step.parallelism)
    if report.shape is None:
        return _print_states(step, report)
    return _print_step(step, report.shape, report)


def _print_list(step: Step) -> int:
    if step.json:
        print(json.dumps(listing_as_json(), indent=2))
    else:
        tell(*listing())
    return 0


def _named_model(step: Step) -> ModelShape:
    if step.model is None:
        raise ValueError(
            "no model given; expected --model, such as gpt2, or --config; "
            "`peakmem estimate --list` shows all models"
        )
    return model(step.model)


def _print_step(step: Step, shape: ModelShape, report: ConfigReport | None) -> int:
    """Predict the step of a model, which may come from a `report`, and print or export it."""
    chosen = step.device
    if chosen is None:
        found = _on_smallest_board(shape, step.recipe, step.parallelism)
    else:
        found = estimate(shape, step.recipe, chosen, step.parallelism)
    if step.export is not None:
        return print_export(step.export, found, judged=chosen is not None)
    notes = list(notes_on(found, was_chosen=chosen is None))
    notes += report.assumptions if report else []
    notes += [batch_line(found)] if step.largest_batch else []
    if step.json:
        print(json.dumps((report.as_json() if report else {}) | _figures(found, notes), indent=2))
    else:
        _print_report(step, found, notes, report)
    if step.plot:
        save_ledger(step.plot, found.model.name, found.ledger, found.device.memory_bytes)
    return 0 if found.fits else 1


def _figures(found: Estimate, notes: list[str]) -> dict[str, Any]:
    others = [
        {"changes": r.changes, "cost": r.cost, "peak_bytes": r.estimate.peak_bytes}
        for r in suggest(found)
    ]
    return found.as_json() | {"suggestions": others, "notes": notes}


def _print_report(
    step: Step, found: Estimate, notes: list[str], report: ConfigReport | None
) -> None:
    verdict, *remedies = verdict_lines(found)
    if report and not step.quiet:
        tell(*report.parameter_lines(), "")
    if not step.quiet:
        tell(*table_lines(found, step.by))
    tell(verdict, style=GOOD if found.fits else BAD)
    if not step.quiet:
        tell(*remedies, *notes, NOT_COUNTED)


def _trace_config(step: Step) -> int:
    """Trace a step of transformers' own class and print it."""
    if step.config is None:
        raise ValueError("--trace needs --config, whose class it runs")
    if step.parallelism != Parallelism():
        raise ValueError(
            f"{step.config}: --trace runs a step on one device; leave out options for many devices"
        )
    return print_config_trace(
        step.config,
        step.recipe,
        step.device,
        by=step.by,
        plot=step.plot,
        as_json=step.json,
        quiet=step.quiet,
    )


def _print_states(step: Step, report: ConfigReport) -> int:
    """Print the parameters and states of a model without predicted activations."""
    if step.export is not None:
        raise ValueError(
            f"--export {step.export} needs a model with a predicted step, such as a Llama, but "
            f"{step.config} is a {report.table.model_type}; leave out --export"
        )
    device = step.device
    memory_bytes = device.memory_bytes if device else None
    if step.json:
        print(json.dumps(report.as_json() | report.states_as_json(memory_bytes), indent=2))
    elif step.quiet:
        tell(*report.notes(memory_bytes))
    else:
        tell(*report.parameter_lines(), "", *report.state_lines(memory_bytes))
    return 1 if report.is_too_large(memory_bytes) else 0


def _on_smallest_board(shape: ModelShape, recipe: Recipe, parallelism: Parallelism) -> Estimate:
    """Return the estimate on the smallest board that holds the step, or on the largest board.

    The peak doesn't depend on the device, so one ledger is enough.
    """
    found = estimate(shape, recipe, BOARDS[-1], parallelism)
    return replace(found, device=smallest_board(found.needed_bytes) or BOARDS[-1])
