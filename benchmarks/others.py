"""Our predictions' errors compared with those of other tools, on the same measured steps.

The steps come from families that none of the library's tests and rules name (`held_out`), or with
`--grid` from the configurations of `grid` that train with Adam. The other tools answer the
questions they were made for: 16 bytes per parameter and DeepSpeed's estimator leave activations
out, accelerate's assumes a batch of one, and all assume Adam. The figures for accelerate and
DeepSpeed come from their own code. EleutherAI has a script but no package, and llm-analysis needs
an older transformers, so for these two we use their published formulas.

Run as `python -m benchmarks.others`; it writes `others.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch
from torch import nn

from benchmarks.accuracy import measure
from benchmarks.grid import Case, configurations
from benchmarks.held_out import FAMILIES, HeldOut
from benchmarks.held_out import measure as measure_held_out
from benchmarks.peaks import Row
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Recipe

__all__ = [
    "Comparison",
    "compare",
    "compare_held_out",
    "eleuther_bytes",
    "llm_analysis_bytes",
    "main",
    "table",
]

_FP32 = "fp32"
BOUND = 0.01  # relative to the measured peak, for every held-out family


@dataclass(frozen=True)
class Comparison:
    """One configuration: its measured peak and each prediction, in bytes, by predictor."""

    name: str
    measured_bytes: int
    predicted: dict[str, int]

    def errors(self) -> dict[str, float]:
        """Relative errors, by predictor."""
        return {who: n / self.measured_bytes - 1 for who, n in self.predicted.items()}

    @property
    def ours_is_best(self) -> bool:
        """Whether no other error is smaller than ours."""
        errors = {who: abs(error) for who, error in self.errors().items()}
        return errors["peakmem"] == min(errors.values())


def compare(case: Case, row: Row) -> Comparison:
    """Compare others' predictions with our measurements and predictions."""
    ours = row.traced_bytes if row.predicted_bytes is None else row.predicted_bytes
    assert ours is not None, "every configuration is traced"
    module = case.build(torch.device("cpu")).module
    predicted = {"peakmem": ours} | _others(module, case.recipe, case.shape)
    return Comparison(case.name, row.measured_bytes, predicted)


def compare_held_out(family: HeldOut) -> Comparison:
    """Measure a family's step, and compare its config's trace and others' predictions with it."""
    found = measure_held_out(family)
    predicted = {"peakmem": found.traced_bytes}
    predicted |= _others(family.module(), family.recipe, family.sizes)
    return Comparison(found.name, found.measured_bytes, predicted)


def _others(module: nn.Module, recipe: Recipe, shape: ModelShape | None) -> dict[str, int]:
    """Return others' predictions; formulas for transformers need the sizes of one."""
    n_parameters = sum(p.numel() for p in module.parameters())
    found = {
        "16 N": 16 * n_parameters,
        "accelerate": _accelerate_bytes(module, recipe),
        "DeepSpeed": _deepspeed_bytes(n_parameters),
    }
    if shape is not None:
        found["EleutherAI"] = eleuther_bytes(shape, recipe)
        found["llm-analysis"] = llm_analysis_bytes(shape, recipe)
    return found


def _accelerate_bytes(module: nn.Module, recipe: Recipe) -> int:
    """The figure that `accelerate estimate-memory` prints under "Training using Adam"."""
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    size, _ = calculate_maximum_sizes(module.float())  # its default dtype for loading models
    precision = "float32" if recipe.precision == _FP32 else "bfloat16"
    return int(max(estimate_training_usage(size, precision).values()))


def _deepspeed_bytes(n_parameters: int) -> int:
    """DeepSpeed's estimate of model states on one GPU under ZeRO-2, without offloading."""
    with contextlib.redirect_stdout(io.StringIO()):  # importing it prints the accelerator
        from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs
    _, gpu_bytes = estimate_zero2_model_states_mem_needs(n_parameters, cpu_offload=False)
    return int(gpu_bytes)


def eleuther_bytes(shape: ModelShape, recipe: Recipe) -> int:
    """Return the result of the formulas of EleutherAI's cookbook for one GPU.

    They count parameters with a head separate from the embedding; weights, gradients and Adam's
    state by precision; and activations of sbh(10 + 24 + 5as/h) bytes per layer, or sbh(10 + 24)
    with checkpointing. (From "Transformer Math 101" and its calculator.)
    """
    h, layers, s = shape.d_model, shape.n_layers, recipe.sequence
    embeddings = 2 * shape.vocab * h + shape.context * h
    n_parameters = embeddings + layers * (4 * h * h + 2 * h * shape.mlp_width + 8 * h) + 2 * h
    # fp32: weights, gradients, two moments. Mixed: 16-bit weights and gradients, masters, moments.
    states = 16 * n_parameters
    scores = 5 * shape.n_heads * s / h if recipe.checkpointing == "none" else 0
    activations = s * recipe.micro_batch * h * layers * (10 + 24 + scores)
    return states + int(activations)


def llm_analysis_bytes(shape: ModelShape, recipe: Recipe) -> int:
    """Return the result of llm-analysis' training formulas for one GPU.

    They count weights in the activations' format, 12 bytes per parameter for masters and Adam's
    state, and 4 for gradients. A layer keeps 7 sbh + 4 asb in attention and a byte per mask
    element, sbh(1 + 2r) in an MLP of inner width rh, and 2 sbh in fp32 in its norms; with
    checkpointing only its input. Logits and one more norm are added. Embeddings count once, heads
    don't count, and an MLP has two matrices. (Version 0.2.2, from `LLMAnalysis`'s docstrings;
    checked against its code.)
    """
    h, layers, width = shape.d_model, shape.n_layers, 4 if recipe.precision == _FP32 else 2
    shared = 2 * h * h * shape.key_value_heads // shape.n_heads
    n_layer = 2 * h * h + shared + 2 * h * shape.mlp_width + 2 * h
    n_parameters = layers * n_layer + shape.vocab * h + h
    tokens = recipe.micro_batch * recipe.sequence
    norm = 4 * tokens * h
    layer = width * tokens * h
    if recipe.checkpointing == "none":
        attention = width * tokens * (7 * h + 4 * shape.n_heads) + tokens * h
        layer = attention + width * tokens * (h + 2 * shape.mlp_width) + 2 * norm
    logits = width * tokens * shape.vocab
    last_norm = norm if recipe.checkpointing == "none" else 0
    return n_parameters * (width + 12 + 4) + layers * layer + logits + last_norm


def table(found: Sequence[Comparison]) -> str:
    """Return one line per configuration: measured bytes and each prediction's error."""
    who = list(dict.fromkeys(name for one in found for name in one.predicted))
    width = max(len(one.name) for one in found)
    lines = [f"{'configuration':{width}}{'measured bytes':>16}" + "".join(f"{w:>14}" for w in who)]
    for one in found:
        errors = one.errors()
        cells = "".join(f"{f'{errors[w]:+.1%}' if w in errors else '-':>14}" for w in who)
        lines.append(f"{one.name:{width}}{one.measured_bytes:>16,}{cells}")
    worst = [_worst(found, w) for w in who]
    lines.append(f"{'largest error':{width + 16}}" + "".join(f"{w:>14.1%}" for w in worst))
    best = sum(one.ours_is_best for one in found)
    lines.append(f"peakmem's error is the smallest in {best} of {len(found)} configurations.")
    return "\n".join(lines)


def _worst(found: Sequence[Comparison], who: str) -> float:
    """Return one predictor's largest absolute error."""
    return max(abs(errors[who]) for one in found if who in (errors := one.errors()))


def _write(found: Sequence[Comparison], path: Path) -> None:
    """Write the measurements and predictions, in bytes, with all versions."""
    names = ("torch", "transformers", "accelerate", "deepspeed")
    recorded = {
        "device": f"CPU, {platform.machine()}",
        "versions": {name: metadata.version(name) for name in names},
        "command": "python3 course.py bench others",
        "families": [
            {"name": one.name, "measured_bytes": one.measured_bytes, "predicted": one.predicted}
            for one in found
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


def main(
    arguments: Sequence[str] | None = None,
    families: Sequence[HeldOut] = FAMILIES,
    cases: Callable[[], list[Case]] = configurations,
) -> int:
    """Print the table; return 1 if another predictor was closer, or a held-out family is off."""
    parser = argparse.ArgumentParser(prog="others", description=__doc__)
    parser.add_argument("--grid", action="store_true", help="the grid's steps; no file")
    parser.add_argument("--out", type=Path, default=Path("docs/measurements"), metavar="DIR")
    options = parser.parse_args(arguments)
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    with warnings.catch_warnings(action="ignore"):
        if options.grid:
            adam = [case for case in cases() if case.recipe.optimizer in ("adam", "adamw")]
            found = [compare(case, measure(case, torch.device("cpu"))) for case in adam]
        else:
            found = [compare_held_out(family) for family in families]
    print(table(found))
    if not options.grid:
        _write(found, options.out / "others.json")
        print(f"Written to {options.out}/others.json.")
    held = options.grid or _worst(found, "peakmem") <= BOUND
    return 0 if held and all(one.ours_is_best for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
