"""What `peakmem estimate` prints: the lists, the table of a step, and remarks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from peakmem.core.units import both
from peakmem.predict.estimate import Estimate, estimate
from peakmem.show.cli.step import GIVEN
from peakmem.show.step_report import board_line, peak_lines
from peakmem.specs.hardware import ACCELERATORS
from peakmem.specs.models import MODELS, parameter_count

__all__ = ["NOT_COUNTED", "listing", "listing_as_json", "notes_on", "table_lines"]

NOT_COUNTED = "Not counted: other libraries' workspaces, and scratch memory inside an operator."


def listing() -> Iterator[str]:
    """Yield a line for each model and each GPU."""
    yield "models"
    for name, shape in MODELS.items():
        n_parameters = sum(parameter_count(shape).values())
        yield f"  {name:<16}{n_parameters:>16,} parameters"
    yield "GPUs, with the memory available to a program"
    for name, device in ACCELERATORS.items():
        mark = "" if device.memory.reported else "  estimate"
        yield f"  {name:<16}{both(device.memory_bytes):<24}{mark}".rstrip()


def listing_as_json() -> dict[str, Any]:
    """Return the known models and GPUs as plain data, with the sources of the GPUs' figures."""
    return {
        "models": {name: sum(parameter_count(shape).values()) for name, shape in MODELS.items()},
        "gpus": {
            name: {
                "memory_bytes": device.memory_bytes,
                "is_estimate": not device.memory.reported,
                "memory_source": device.memory.source,
                "source": device.source,
            }
            for name, device in ACCELERATORS.items()
        },
    }


def table_lines(found: Estimate, by: str) -> Iterator[str]:
    """Yield the bytes at the peak by owner and by layer or module, and the device's memory."""
    n_parameters = sum(parameter_count(found.model).values())
    devices, device = found.parallelism.devices, found.device
    name = device.name or ("device" if devices > 1 else "one device")
    where = f"{devices} x {name}" if devices > 1 else name
    yield f"{found.model.name}: {n_parameters:,} parameters; one step on {where}"
    yield ""
    yield from peak_lines(found, by)


def notes_on(found: Estimate, *, was_chosen: bool) -> Iterator[str]:
    """Yield remarks on the figures, one sentence each."""
    device, many = found.device, found.parallelism
    yield from _gelu_notes(found)
    if was_chosen:
        yield board_line(device, "this step", fits=found.fits)
    if not device.memory.reported and device.memory.source != GIVEN:
        yield f"The memory of {device.name} is an {device.memory.source}."
    if many.pipeline > 1:
        yield (
            f"Stage {found.stage + 1} of {many.pipeline} needs the most; it has up to "
            f"{min(many.pipeline - found.stage, found.recipe.micro_batches)} micro-batches in "
            "flight (1F1B)."
        )
    if many.context > 1:
        how = {"ring": "ring attention", "ulysses": "Ulysses' exchange of heads"}
        yield (
            f"Each of the {many.context} devices has "
            f"{found.recipe.sequence // many.context} tokens of each sequence, by "
            f"{how[many.context_method]}; ZeRO shards across them too."
        )
    if many.zero and many.shards == 1:
        yield (
            f"ZeRO stage {many.zero} has no effect with one replica; "
            "give --data-parallel 2 or more."
        )
    if device.unified:
        yield f"Predicted with the rules of torch on CUDA; {device.name} may need more."


def _gelu_notes(found: Estimate) -> Iterator[str]:
    """Yield which GELU a known GPT is assumed to have, if another one would change the peak."""
    shape = found.model
    if shape.hugging_face or shape.gated or shape.activation != "gelu":
        return
    other = replace(shape, activation="gelu_new")
    peak_bytes = estimate(other, found.recipe, found.device, found.parallelism).peak_bytes
    if peak_bytes != found.peak_bytes:
        yield (
            "Assumes a GELU of one operator, as in nanoGPT; with Hugging Face's gelu_new, which "
            f"is eight, the peak is {both(peak_bytes)}: see --config."
        )
