"""Exercise: how far outputs move when batch norm sees micro-batches instead of the batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autograder.content.lab05.gradients import is_tensor, number_in
from autograder.model.compare import show
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab05 import normed_perceptron

__all__ = ["batch_norm_gap"]

_TOLERANCE = 1e-9


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(
        norm: str,
        samples: int,
        micro_batch: int,
        *,
        training: str = "on",
        apart: float = 0.0,
        fixed: bool = False,
    ) -> Case:
        # The batch drifts, as sorted data does: each micro-batch has a different mean.
        drift = np.linspace(-1, 1, samples)[:, None]
        drift[samples // micro_batch * micro_batch :] += apart  # for a short last micro-batch
        inputs = {
            "weights": [rng.normal(size=shape) for shape in ((5, 4), (3, 5))],
            "norm": norm,
            "training": training,
            "x": rng.normal(size=(samples, 4)) + drift,
            "micro_batch": micro_batch,
        }
        return Case(("right",), inputs, fixed=fixed)

    def telling(mistakes: Collection[str], draw: Callable[[], Case]) -> Case:
        """Draw until the mistakes' answers differ from the right one, whatever its sign."""
        while True:
            drawn = draw()
            gaps = _gaps(drawn.inputs)
            others = (gaps["right"], gaps["signed"], gaps["signed_other_way"])
            if not any(_is_number(gaps[m], other) for m in mistakes for other in others):
                return drawn

    size = int(rng.integers(3, 6))
    one_only = ("first_micro_batch_only", "last_micro_batch_only")
    first = telling(one_only, lambda: case("batch", 4 * size, size))
    hidden, last = first.inputs["weights"]
    # The same outputs negated: the largest difference is positive in one of the two cases.
    mirrored = Case(("right",), {**first.inputs, "weights": [hidden, -last]})
    return [
        first,
        mirrored,
        case("batch", 3 * size + 2, size, training="off"),
        case("batch", 4 * size, size, training="mixed"),
        case("channels", 3 * size + 2, size, training="off"),
        case("layer", 3 * size, size),
        case("none", 3 * size + 1, size, training="off"),
        case("batch", 5 * size, size),
        telling(["drops_last"], lambda: case("batch", 2 * size + 2, size, apart=5.0)),
        case("batch", 6, 6, fixed=True),
        case("batch", 6, 4, fixed=True),  # equal pieces would be 3 and 3
        case("batch", 5, 9, fixed=True),
        case("batch", 16, 2, fixed=True),
    ]


def _outputs(inputs: Mapping[str, Any], micro_batch: int, *, training: bool = True) -> Tensor:
    model = normed_perceptron(inputs["weights"], inputs["norm"]).train(training)
    with torch.no_grad():
        return torch.cat([model(x) for x in torch.split(torch.tensor(inputs["x"]), micro_batch)])


def _gaps(inputs: Mapping[str, Any]) -> dict[str, float]:
    """The right answer, and the mistakes' answers."""
    size, count = inputs["micro_batch"], len(inputs["x"])
    gap = _outputs(inputs, count) - _outputs(inputs, size)
    last = (count - 1) // size * size
    return {
        "right": gap.abs().max().item(),
        "no_gap_in_evaluation": 0.0,
        "mean_instead_of_largest": gap.abs().mean().item(),
        "first_micro_batch_only": gap[:size].abs().max().item(),
        "last_micro_batch_only": gap[last:].abs().max().item(),
        "drops_last": gap[: last if count % size else count].abs().max().item() if last else 0.0,
        "signed": gap.max().item(),
        "signed_other_way": (-gap).max().item(),
        "norm_of_difference": gap.norm().item(),
        "sum_of_differences": gap.abs().sum().item(),
    }


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    gaps = _gaps(case.inputs)
    changed = value.get("changed")
    if not isinstance(changed, list):
        return {"right": Finding(False, "The answers came back garbled.")}
    got, right = value.get("value"), gaps.pop("right")
    call = f"With norm {case.inputs['norm']!r} and micro_batch={case.inputs['micro_batch']}"
    if is_tensor(got):
        return {
            "right": Finding(
                False, f"{call}: your function returned a tensor.", ("returns_tensor",)
            )
        }
    if not _is_number(got, right):
        names = tuple(name for name, wrong in gaps.items() if _is_number(got, wrong))
        said = f"{call}: expected {right:.6g}, got {show(got)}."
        return {"right": Finding(False, said, names)}
    if changed:
        said = f"{call}: afterwards these had changed: {', '.join(map(str, changed))}."
        return {"right": Finding(False, said, ("model_changed",))}
    return {"right": Finding(True)}


def _is_number(value: Any, expected: float) -> bool:
    number = number_in(value)
    if number is None:
        return False
    return bool(np.isclose(number, expected, rtol=_TOLERANCE, atol=_TOLERANCE))


batch_norm_gap = Task(
    id="lab05-batch_norm_gap",
    parts={"right": 2},
    defines=("batch_norm_gap",),
    probe="batch_norm_gap",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "returns_tensor": "Your function returns a tensor. Return a plain number, with .item().",
        "model_changed": "Your function changed the model. In training mode a forward updates "
        "batch norm's running statistics: work on copy.deepcopy(model), and leave the model's "
        "modes, gradients, and settings such as requires_grad alone.",
        "no_gap_in_evaluation": "You see no difference because the model ran in evaluation mode. "
        "Put a copy of it in training mode, where batch norm uses the current batch's statistics.",
        "mean_instead_of_largest": "You return the mean difference. Return the largest.",
        "drops_last": "You skip the last, shorter micro-batch.",
        "first_micro_batch_only": "You look only at the first micro-batch.",
        "last_micro_batch_only": "You return the last micro-batch's difference. Return the largest "
        "of all.",
        "signed": "You take the largest difference with its sign; a large negative one is lost. "
        "Take absolute values first.",
        "signed_other_way": "You take the largest difference with its sign; a large negative one "
        "is lost. Take absolute values first.",
        "norm_of_difference": "You return the norm of the difference. Return the largest absolute "
        "value.",
        "sum_of_differences": "You return the sum of the differences. Return the largest.",
    },
)
