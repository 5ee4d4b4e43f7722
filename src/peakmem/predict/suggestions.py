"""Suggestions of changes to a recipe that make a step fit, the cheapest first.

The cheapest change takes the least device time per sequence. This time is computed from operations
and bytes:

- arithmetic: 6 operations for each parameter and token, plus 2 if its forward is recomputed, at
  45 % of the device's dense rate in the recipe's format;
- links: ZeRO's messages between devices, and offloading's copies to the host and back, at the
  link's rate and without overlap.

It ranks changes, and doesn't forecast times. Tensor parallelism's messages are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import chain, combinations, product
from math import prod
from typing import Any

from peakmem.predict.estimate import Estimate, estimate
from peakmem.scale.parallelism import offload_link_bytes, zero_communicated_bytes
from peakmem.specs.models import ModelShape, parameter_count
from peakmem.specs.recipes import (
    MOST_MICRO_BATCHES,
    Parallelism,
    Recipe,
    state_shapes,
    storage_bytes,
)

__all__ = ["Suggestion", "largest_batch", "suggest"]

_UTILISATION = 0.45  # Narayanan et al. 2021: 140 of 312 TFLOP/s for GPT-3
_MOST_DEVICES = 4096
_MOST_CHANGES = 4  # settings that a suggestion changes at once
_LOSS_CHUNKS = (8, 64)
_LOGITS_SHARE = 0.05  # of the peak; below it, a loss in parts isn't tried

Settings = dict[str, Any]  # field of Recipe or Parallelism -> new value


@dataclass(frozen=True)
class Suggestion:
    """A way of training that fits."""

    #: A phrase for each change.
    changes: tuple[str, ...]
    #: The changed fields of Recipe and Parallelism.
    changed: frozenset[str]
    #: Device time per sequence, relative to the original step: 2.0 takes twice the hours.
    cost: float
    #: The prediction of a step with these changes.
    estimate: Estimate


def suggest(asked: Estimate, most: int = 3) -> list[Suggestion]:
    """Return up to `most` ways to make a step fit, the cheapest first.

    They change as few settings as possible: two at once only if no single one is enough, and so on.
    Empty if the step fits already, or if no combination makes it fit.

    >>> from peakmem.specs.hardware import accelerator
    >>> from peakmem.specs.models import model
    >>> step = Recipe(precision="amp_bf16", batch=16, sequence=1024)
    >>> tight = estimate(model("gpt2"), step, accelerator("rtx3080-10gb"))
    >>> suggest(tight, most=1)[0].changes
    ('4 micro-batches of 4 instead of 16 at once',)
    """
    if asked.fits:
        return []
    choices = _choices(asked)
    for size in range(1, _MOST_CHANGES + 1):
        tried = (_cheapest(asked, list(some)) for some in combinations(choices, size))
        found = [suggestion for suggestion in tried if suggestion is not None]
        if found:
            return sorted(found, key=lambda suggestion: suggestion.cost)[:most]
    return []


def largest_batch(asked: Estimate) -> int:
    """Return the most sequences that fit at once with this recipe; 0 if not even one does.

    >>> from peakmem.specs.hardware import accelerator
    >>> from peakmem.specs.models import model
    >>> step = Recipe(precision="amp_bf16", sequence=1024)
    >>> largest_batch(estimate(model("gpt2"), step, accelerator("rtx3080-10gb")))
    7
    """

    def fits(batch: int) -> bool:
        recipe = replace(asked.recipe, batch=batch, micro_batches=1)
        return estimate(asked.model, recipe, asked.device, asked.parallelism).fits

    high = 1
    while fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _cheapest(asked: Estimate, choices: list[list[Settings]]) -> Suggestion | None:
    """Return the cheapest way that takes one setting of each choice; None if none fits.

    The settings of a choice are in ascending order of their savings. If the last ones together
    don't fit, nothing does, and a single ledger shows it.
    """
    if not _may_fit(asked, [settings[-1] for settings in choices]):
        return None
    ways = []
    for settings in product(*choices):
        recipe, parallelism = _with(asked, dict(chain(*(s.items() for s in settings))))
        if _states_floor(asked.model, recipe, parallelism) <= asked.device.memory_bytes:
            ways.append((_seconds_per_sequence(asked, recipe, parallelism), recipe, parallelism))
    now = _seconds_per_sequence(asked, asked.recipe, asked.parallelism)
    for seconds, recipe, parallelism in sorted(ways, key=lambda way: way[0]):
        tried = _try(asked, recipe, parallelism)
        if tried is not None and tried.fits:
            changed = frozenset(_changed(asked, tried))
            return Suggestion(tuple(_phrases(asked, tried)), changed, seconds / now, tried)
    return None


def _may_fit(asked: Estimate, settings: list[Settings]) -> bool:
    recipe, parallelism = _with(asked, dict(chain(*(s.items() for s in settings))))
    tried = _try(asked, recipe, parallelism)
    return tried is None or tried.fits


def _try(asked: Estimate, recipe: Recipe, parallelism: Parallelism) -> Estimate | None:
    try:
        return estimate(asked.model, recipe, asked.device, parallelism)
    except ValueError:  # a combination without rules
        return None


def _choices(asked: Estimate) -> list[list[Settings]]:
    """Return the possible changes: for each, the settings to try."""
    now, many = asked.recipe, asked.parallelism
    most = min(now.batch, MOST_MICRO_BATCHES)
    parts = [n for n in range(now.micro_batches + 1, most + 1) if now.batch % n == 0]
    choices: list[list[Settings]] = [
        [{"micro_batches": n} for n in parts],
        [{"tensor": t} for t in _tensor_degrees(asked.model, many)],
        list(_replicas(many)),
    ]
    if now.attention == "standard":
        choices.append([{"attention": "flash"}])
    if now.checkpointing in ("none", "selective"):
        more = ["selective", "full"] if now.checkpointing == "none" else ["full"]
        choices.append([{"checkpointing": how} for how in more])
    at_peak = asked.ledger.by_owner()
    if now.loss_chunks == 1 and at_peak.get("logits", 0) > _LOGITS_SHARE * asked.peak_bytes:
        choices.append([{"loss_chunks": n} for n in _LOSS_CHUNKS if now.sequence % n == 0])
    if now.precision == "fp32":
        low = "amp_bf16" if "bf16" in asked.device.tflops else "amp_fp16"
        choices.append([{"precision": low}])
    if now.optimizer in ("adam", "adamw"):
        choices.append([{"optimizer": "adam8bit", "implementation": None}])
        if now.implementation != "fused":
            choices.append([{"implementation": "fused"}])
        if not now.offload:
            choices.append([{"offload": True}])
    return [settings for settings in choices if settings]


def _tensor_degrees(model: ModelShape, now: Parallelism) -> list[int]:
    return [now.tensor << n for n in (1, 2, 3) if model.n_heads % (now.tensor << n) == 0]


def _replicas(now: Parallelism) -> Iterator[Settings]:
    """Yield higher stages of ZeRO, over as many replicas as now or more."""
    data = now.data
    while data * now.context * now.tensor * now.pipeline <= _MOST_DEVICES:
        for stage in range(max(now.zero, 1), 4):
            if data > 1 and (data, stage) != (now.data, now.zero):
                yield {"data": data, "zero": stage}
        data *= 2


def _with(asked: Estimate, settings: Settings) -> tuple[Recipe, Parallelism]:
    own = {f.name for f in fields(Recipe)}
    recipe = {name: value for name, value in settings.items() if name in own}
    shared = {name: value for name, value in settings.items() if name not in own}
    return replace(asked.recipe, **recipe), replace(asked.parallelism, **shared)


def _seconds_per_sequence(asked: Estimate, recipe: Recipe, parallelism: Parallelism) -> float:
    """Return device seconds per sequence, as the module's docstring explains."""
    n_parameters = sum(parameter_count(asked.model).values())
    tokens = recipe.batch * recipe.sequence
    rates = asked.device.tflops
    rate = rates.get(recipe.formats.compute, rates["fp32"]) * 1e12 * _UTILISATION
    shared_by = parallelism.tensor * parallelism.pipeline * parallelism.context
    operations = (6 + 2 * _recomputed(asked.model, recipe)) * n_parameters * tokens / shared_by
    held = -(-n_parameters // (parallelism.tensor * parallelism.pipeline))
    sent = zero_communicated_bytes(held, parallelism.shards, parallelism.zero)
    seconds = operations / rate + sent / asked.device.peer_link_bytes_per_s
    if recipe.offload:
        link = offload_link_bytes(n_parameters, parallelism.devices)
        seconds += link / asked.device.host_link_bytes_per_s
    return seconds * parallelism.devices / (recipe.batch * parallelism.data)


def _recomputed(model: ModelShape, recipe: Recipe) -> float:
    """Return the share of the forward pass that runs a second time."""
    if recipe.segment:
        return 1.0
    share = 0.0
    if recipe.checkpointing == "selective":
        # Scores and their product with the values: 4 s h of 24 h^2 + 4 s h operations per token.
        share += recipe.sequence / (6 * model.d_model + recipe.sequence)
    if recipe.loss_chunks > 1:
        share += model.vocab * model.d_model / sum(parameter_count(model).values())
    return min(share, 1.0)


def _states_floor(model: ModelShape, recipe: Recipe, parallelism: Parallelism) -> int:
    """Return a lower bound on the bytes live at the optimizer's step, by one multiplication.

    It rules out hopeless combinations without playing their ledgers.
    """
    if recipe.lora_rank:
        return 0  # few parameters are trained, and the base may be quantized
    n_parameters = sum(parameter_count(model).values())
    n_parameters //= parallelism.tensor * parallelism.pipeline
    formats, data = recipe.formats, parallelism.shards
    weights = storage_bytes(n_parameters, formats.weights)
    floor = weights // (data if parallelism.zero == 3 else 1)
    if not recipe.keeps_gradients:
        return floor
    floor += storage_bytes(n_parameters, formats.gradients) // (
        data if parallelism.zero >= 2 else 1
    )
    states = storage_bytes(n_parameters, formats.master) if formats.master else 0
    if recipe.optimizer != "adafactor":  # whose state is smaller for matrices than for vectors
        flat = state_shapes(recipe.optimizer, (n_parameters, 1), formats.states).values()
        states += sum(storage_bytes(prod(shape), dtype) for shape, dtype in flat)
    return floor + states // (data if parallelism.zero >= 1 else 1)


def _phrases(asked: Estimate, tried: Estimate) -> Iterator[str]:
    """Yield a phrase for each change."""
    recipe, many = tried.recipe, tried.parallelism
    changed = _changed(asked, tried)
    if "micro_batches" in changed:
        yield (
            f"{recipe.micro_batches} micro-batches of {recipe.micro_batch} instead of "
            f"{asked.recipe.micro_batch} at once"
        )
    if "attention" in changed:
        yield "flash attention"
    if "loss_chunks" in changed:
        yield f"loss in {recipe.loss_chunks} parts"
    if "checkpointing" in changed:
        yield f"{recipe.checkpointing} checkpointing"
    if "precision" in changed:
        yield f"precision {recipe.precision}"
    if "optimizer" in changed:
        yield f"optimizer {recipe.optimizer}"
    elif "implementation" in changed:
        yield f"{recipe.implementation} {recipe.optimizer}"
    if "offload" in changed:
        yield "optimizer offloaded to the host"
    if changed & {"zero", "data"}:
        yield f"ZeRO stage {many.zero} over {many.data} replicas"
    if "tensor" in changed:
        yield f"tensor parallelism over {many.tensor} devices"


def _changed(asked: Estimate, tried: Estimate) -> set[str]:
    many = _difference(asked.parallelism, tried.parallelism)
    return _difference(asked.recipe, tried.recipe) | many


def _difference(now: Any, then: Any) -> set[str]:
    return {f.name for f in fields(now) if getattr(now, f.name) != getattr(then, f.name)}
