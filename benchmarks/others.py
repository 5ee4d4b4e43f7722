"""Our predictions beside those of others, on the same measured steps: the error of each.

The others answer what they were made for: 16 bytes a parameter and DeepSpeed's estimator leave
activations out, accelerate's takes a batch of one, and all of them take Adam for granted. So only
steps with Adam are compared. What each says comes from its own code where it can be installed, and
from its published formula otherwise.

Run as `python -m benchmarks.others`.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.accuracy import Row, measure
from benchmarks.grid import Case, configurations
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Recipe

__all__ = ["Comparison", "compare", "eleuther_bytes", "main", "table"]

_FP32 = "fp32"


@dataclass(frozen=True)
class Comparison:
    """One configuration: its measured peak and what each predicts, in bytes, by who says it."""

    name: str
    measured_bytes: int
    predicted: dict[str, int]

    def errors(self) -> dict[str, float]:
        """Relative errors, by who predicted."""
        return {who: n / self.measured_bytes - 1 for who, n in self.predicted.items()}

    @property
    def ours_is_best(self) -> bool:
        """Whether no other error is smaller than ours."""
        errors = {who: abs(error) for who, error in self.errors().items()}
        return errors["peakmem"] == min(errors.values())


def compare(case: Case, row: Row) -> Comparison:
    """Set what others predict beside what was measured and predicted here."""
    ours = row.traced_bytes if row.predicted_bytes is None else row.predicted_bytes
    assert ours is not None, "every configuration is traced"
    module = case.build(torch.device("cpu")).module
    n_parameters = sum(p.numel() for p in module.parameters())
    predicted = {
        "peakmem": ours,
        "16 N": 16 * n_parameters,
        "accelerate": _accelerate_bytes(module, case.recipe),
        "DeepSpeed": _deepspeed_bytes(n_parameters),
    }
    if case.shape is not None:
        predicted["EleutherAI"] = eleuther_bytes(case.shape, case.recipe)
    return Comparison(case.name, row.measured_bytes, predicted)


def _accelerate_bytes(module: nn.Module, recipe: Recipe) -> int:
    """What `accelerate estimate-memory` prints under "Training using Adam"."""
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    size, _ = calculate_maximum_sizes(module.float())  # as it loads models by default
    precision = "float32" if recipe.precision == _FP32 else "bfloat16"
    return int(max(estimate_training_usage(size, precision).values()))


def _deepspeed_bytes(n_parameters: int) -> int:
    """DeepSpeed's estimate of model states on one GPU under ZeRO-2, without offloading."""
    with contextlib.redirect_stdout(io.StringIO()):  # it names its accelerator there
        from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs
    _, gpu_bytes = estimate_zero2_model_states_mem_needs(n_parameters, cpu_offload=False)
    return int(gpu_bytes)


def eleuther_bytes(shape: ModelShape, recipe: Recipe) -> int:
    """Return what the formulas of EleutherAI's cookbook give for one GPU.

    Parameters with a head of its own beside the embedding; weights, gradients and Adam's state by
    precision; activations of sbh(10 + 24 + 5as/h) bytes a layer, and sbh(10 + 24) with
    checkpointing. ("Transformer Math 101", and the calculator that goes with it.)
    """
    h, layers, s = shape.d_model, shape.n_layers, recipe.sequence
    embeddings = 2 * shape.vocab * h + shape.context * h
    n_parameters = embeddings + layers * (4 * h * h + 2 * h * shape.mlp_width + 8 * h) + 2 * h
    # fp32: weights, gradients, two moments. Mixed: 16-bit weights and gradients, masters, moments.
    states = 16 * n_parameters
    scores = 5 * shape.n_heads * s / h if recipe.checkpointing == "none" else 0
    activations = s * recipe.micro_batch * h * layers * (10 + 24 + scores)
    return states + int(activations)


def table(found: Sequence[Comparison]) -> str:
    """Return a line a configuration: measured bytes and each one's error."""
    who = list(dict.fromkeys(name for one in found for name in one.predicted))
    width = max(len(one.name) for one in found)
    lines = [f"{'configuration':{width}}{'measured bytes':>16}" + "".join(f"{w:>12}" for w in who)]
    for one in found:
        errors = one.errors()
        cells = "".join(f"{f'{errors[w]:+.1%}' if w in errors else '-':>12}" for w in who)
        lines.append(f"{one.name:{width}}{one.measured_bytes:>16,}{cells}")
    best = sum(one.ours_is_best for one in found)
    lines.append(f"peakmem's error is the smallest in {best} of {len(found)} configurations.")
    return "\n".join(lines)


def main(
    arguments: Sequence[str] | None = None,
    cases: Callable[[], list[Case]] = configurations,
) -> int:
    """Print the table; return 1 where somebody else was nearer."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    adam = [case for case in cases() if case.recipe.optimizer in ("adam", "adamw")]
    with warnings.catch_warnings(action="ignore"):
        found = [compare(case, measure(case, torch.device("cpu"))) for case in adam]
    print(table(found))
    return 0 if all(one.ours_is_best for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
