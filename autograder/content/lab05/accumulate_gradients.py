"""Exercise: a batch's gradient and loss, with one micro-batch in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from autograder.content.lab05.gradients import (
    COMMON_MISTAKES,
    KEEPS_GRAPHS,
    OTHER_MODE,
    close,
    faults_of_use,
    forwards_unseen,
    gradients_in,
    gradients_of,
    is_number,
    is_tensor,
    number_in,
)
from autograder.content.lab05.pieces import Pieces, loss_mutants
from autograder.model.compare import show
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.measure.meter import measure_call
from peakmem.probes.lab05 import LOSSES, large_run

__all__ = ["accumulate_gradients", "largest_rise_bytes", "least_rise_bytes"]

_GRADIENTS, _RAGGED, _KEPT = "gradients", "ragged last micro-batch", "existing gradients and loss"
# So large that torch.func, which takes over twice one micro-batch, clearly exceeds the budget.
_LARGE = {"samples": 12, "length": 2048, "width": 32, "layers": 8}
_LARGE_MICRO_BATCH = 2
_LARGE_CALL = f"With {_LARGE['samples']} samples and micro_batch={_LARGE_MICRO_BATCH}"
_MIB = 2**20
_FLOAT32 = 1e-4  # relative to the largest gradient


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(
        parts: tuple[str, ...],
        samples: int,
        micro_batch: int,
        checks: str,
        *,
        loss: str = "mse",
        before: Sequence[int] = (),
        training: bool = True,
        fixed: bool = False,
    ) -> Case:
        small = {**_small(rng, samples, loss, before), "training": training}
        inputs = {"micro_batch": micro_batch, "small": small}
        return Case(parts, inputs, secret={"checks": checks}, fixed=fixed)

    many, size = int(rng.integers(3, 6)), int(rng.integers(3, 6))
    rest = int(rng.integers(1, size))
    large = {**_LARGE, "seed": int(rng.integers(2**32))}
    return [
        case((_GRADIENTS,), many * size, size, "gradients"),
        case((_GRADIENTS,), many * size, size, "gradients", loss="cross_entropy", training=False),
        case((_GRADIENTS,), 6, 1, "gradients", fixed=True),
        case((_GRADIENTS,), 5, 5, "gradients", fixed=True),
        case((_RAGGED,), many * size + rest, size, "gradients"),
        case((_RAGGED,), many * size + 1, size, "gradients", loss="cross_entropy"),
        case((_RAGGED,), 3, 8, "gradients", fixed=True),
        case((_KEPT,), many * size, size, "both", before=(0, 1)),
        case((_KEPT,), many * size, size, "both", before=(0,)),
        case((_KEPT,), 6, 2, "both", before=(1,), fixed=True),
        case((_KEPT,), many * size + rest, size, "loss", loss="cross_entropy"),
        Case(
            (_GRADIENTS, _KEPT),
            {"micro_batch": _LARGE_MICRO_BATCH, "large": large},
            budget=_budget(),
        ),
    ]


def _budget() -> Budget:
    """A call's allowance, its inputs and targets, and 1 MiB for the earlier run and the rest."""
    given_bytes = 2 * 4 * _LARGE["samples"] * _LARGE["length"] * _LARGE["width"]
    return Budget(given_bytes + largest_rise_bytes() + _MIB)


def _small(
    rng: np.random.Generator, samples: int, loss: str, before: Sequence[int]
) -> dict[str, Any]:
    shapes = [(6, 4), (3, 6)]
    targets = rng.integers(3, size=samples) if loss == "cross_entropy" else None
    # The targets drift, so micro-batches differ as they do in sorted data.
    drift = np.linspace(0, 3, samples)[:, None] + rng.normal(size=(samples, 3))
    return {
        "weights": [rng.normal(size=shape) for shape in shapes],
        "before": [
            rng.normal(size=shape) if number in before else None
            for number, shape in enumerate(shapes)
        ],
        "inputs": rng.normal(size=(samples, 4)),
        "targets": drift if targets is None else targets,
        "loss": loss,
    }


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    fault = faults_of_use(value, case.inputs["micro_batch"])
    if fault is None and "large" in case.inputs:
        found = _large(case.inputs, answer)
        return {_GRADIENTS: found, _KEPT: _returned(case.inputs, value)}
    if fault is None:
        fault = _compared(case, value)
    return dict.fromkeys(case.parts, fault)


def _compared(case: Case, value: Mapping[str, Any]) -> Finding:
    micro_batch, small = case.inputs["micro_batch"], case.inputs["small"]
    pieces = Pieces(small, micro_batch)
    got = gradients_in(value.get("gradients"), pieces.right.gradients)
    if got is None:
        return Finding(False, "The answers came back garbled.")
    call = f"With {len(small['inputs'])} samples, micro_batch={micro_batch}, {small['loss']}"
    if case.secret["checks"] != "loss" and not close(got, pieces.right.gradients):
        said = f"{call}: the gradients differ from the full batch's. {_ratio(got, pieces)}"
        return Finding(False, said.rstrip(), tuple(pieces.mistakes_in(got)))
    if case.secret["checks"] == "gradients" or is_number(value.get("value"), pieces.right.loss):
        return forwards_unseen(value, len(small["inputs"])) or Finding(True)
    if is_tensor(value.get("value")):
        return Finding(False, f"{call}: your function returned a tensor.", ("returns_tensor",))
    mutants = pieces.loss_mutants().items()
    names = [name for name, wrong in mutants if is_number(value.get("value"), wrong)]
    if not close(got, pieces.right.gradients):  # correct gradients don't explain a wrong loss
        names += pieces.mistakes_in(got)
    said = f"{call}: expected the loss {pieces.right.loss:.10g}, got {show(value.get('value'))}."
    return Finding(False, said, tuple(names))


def _ratio(got: list[Any], pieces: Pieces) -> str:
    """A sentence if the added gradient is a multiple of the correct one."""
    right = np.concatenate(
        [(r - b).ravel() for r, b in zip(pieces.right.gradients, pieces.before, strict=True)]
    )
    added = np.concatenate([(g - b).ravel() for g, b in zip(got, pieces.before, strict=True)])
    factor = float(added @ right / (right @ right))
    if not np.allclose(added, factor * right, atol=1e-6 * np.max(np.abs(right))):
        return ""
    return f"They are {factor:.4g} times as large."


def largest_rise_bytes() -> int:
    """Return how far live bytes may rise: twice what a single micro-batch takes."""
    return 2 * _rise_bytes(_LARGE_MICRO_BATCH)


def least_rise_bytes() -> int:
    """Return how far live bytes must rise at least: half of what a single sample takes.

    A loss that is divided before anything else refers to it takes one output less.
    """
    return _rise_bytes(1) // 2


@lru_cache(maxsize=8)
def _rise_bytes(samples: int) -> int:
    run = large_run(**{**_LARGE, "samples": samples}, seed=0)

    def backward() -> None:
        model, inputs, targets = run
        LOSSES["mse"](model(inputs), targets).backward()  # type: ignore[no-untyped-call]

    return measure_call(backward, device="cpu", track=run).rise_bytes


def _large(inputs: Mapping[str, Any], answer: Answer) -> Finding:
    value = answer.value
    model, x, y = large_run(**inputs["large"])
    with torch.no_grad():
        like = [parameter.numpy() for parameter in model.parameters()]
    got = gradients_in(value.get("gradients"), like)
    if got is None:
        return Finding(False, "The answers came back garbled.")
    rise_bytes = answer.metered("rise_bytes")
    if answer.breaks_budget(rise_bytes, largest_rise_bytes()):
        return Finding(False, _TOO_MUCH, (_cause(rise_bytes or 0, value),))
    if not close(got, gradients_of(model, LOSSES["mse"](model(x), y)), _FLOAT32):
        said = f"{_LARGE_CALL} the gradients differ from the full batch's."
        return Finding(False, said, _scaled(got, model, x, y))
    if not answer.memory and not (rise_bytes or 0) >= least_rise_bytes():
        return Finding(False, doubt=_UNMETERED)
    return forwards_unseen(value, len(x)) or Finding(True)


def _cause(rise_bytes: int, value: Mapping[str, Any]) -> str:
    """The mistake behind too high a rise: micro-batches pile up, or one takes too much memory."""
    count = _LARGE["samples"] // _LARGE_MICRO_BATCH
    waits = isinstance(waiting := value.get("waiting"), int) and waiting > 1
    piles_up = waits or rise_bytes > count / 2 * _rise_bytes(_LARGE_MICRO_BATCH)
    return "keeps_graphs" if piles_up else "larger_graphs"


def _returned(inputs: Mapping[str, Any], value: Mapping[str, Any]) -> Finding:
    """The loss that the metered call returned."""
    model, x, y = large_run(**inputs["large"])
    pieces = zip(
        torch.split(x, _LARGE_MICRO_BATCH), torch.split(y, _LARGE_MICRO_BATCH), strict=True
    )
    with torch.no_grad():
        losses = [LOSSES["mse"](model(a), b).item() for a, b in pieces]
    got, right = value.get("value"), sum(losses) / len(losses)
    if _nearly(got, right):
        return Finding(True)
    if is_tensor(got):
        return Finding(False, "A tensor came back.", ("returns_tensor",))
    mutants = loss_mutants([_LARGE_MICRO_BATCH] * len(losses), losses).items()
    names = tuple(name for name, wrong in mutants if _nearly(got, wrong))
    said = f"{_LARGE_CALL}: expected the loss {right:.6g}, got {show(got)}."
    with torch.no_grad():
        gradients = gradients_in(value.get("gradients"), [p.numpy() for p in model.parameters()])
    names += () if gradients is None else _scaled(gradients, model, x, y)
    return Finding(False, said, names + _MISSES_THE_LOSS)


def _nearly(got: Any, expected: float) -> bool:
    """Tell whether a number is this one, up to float32 rounding."""
    number = number_in(got)
    return number is not None and abs(number - expected) <= _FLOAT32 * abs(expected)


# Mistakes in the gradients that also make the loss wrong, so this case can't show them.
_MISSES_THE_LOSS = ("divides_by_samples", "drops_last", "keeps_graphs", "scales_existing")


def _scaled(got: list[Any], model: Any, x: torch.Tensor, y: torch.Tensor) -> tuple[str, ...]:
    """The mistakes that give a multiple of the gradient of equal micro-batches, or a part of it."""
    right = gradients_of(model, LOSSES["mse"](model(x), y))
    last = gradients_of(
        model, LOSSES["mse"](model(x[-_LARGE_MICRO_BATCH:]), y[-_LARGE_MICRO_BATCH:])
    )
    count = len(x) // _LARGE_MICRO_BATCH
    explains = {
        "no_division": [[count * gradient for gradient in right]],
        "divides_by_samples": [[gradient / _LARGE_MICRO_BATCH for gradient in right]],
        "last_only": [last, [gradient / count for gradient in last]],
    }
    return tuple(
        name for name, wrong in explains.items() if any(close(got, w, _FLOAT32) for w in wrong)
    )


_TOO_MUCH = f"{_LARGE_CALL}, live memory rose by more than twice one micro-batch's memory."
_UNMETERED = (
    "The meter saw less memory than a single sample takes, as if the work ran where the meter "
    "can't see it: on another thread, or with torch's dispatch modes switched off. An instructor "
    "will look at this."
)
accumulate_gradients = Task(
    id="lab05-accumulate_gradients",
    parts={_GRADIENTS: 2, _RAGGED: 1, _KEPT: 1},
    defines=("accumulate_gradients",),
    probe="accumulate_gradients",
    cases=_cases,
    judge=_judge,
    mistakes=COMMON_MISTAKES
    | {
        "sums_losses": "Your gradients are right, but you return the sum of the micro-batches' "
        "losses. Weight each by its share of the samples, as its gradient is.",
        "last_loss": "You return the last micro-batch's loss. The batch's mean loss combines all "
        "micro-batches' losses, each weighted by its share of the samples.",
        "last_loss_divided": "You return the last micro-batch's scaled loss. Add up all scaled "
        "losses.",
        "not_divided_by_samples": "You return the sum of the samples' losses. Divide it by the "
        "number of samples.",
        "no_division": "Your gradient is the sum of the micro-batches' mean gradients, so it "
        "grows with their number. Multiply each micro-batch's loss by its share of the samples "
        "before backward.",
        "ragged_as_full": "Your last micro-batch has the same weight as the others, although it "
        "is shorter. Weight each one by len(x) / len(inputs), not by 1 / the number of "
        "micro-batches.",
        "counts_micro_batch": "You count micro_batch samples for the last micro-batch, although "
        "it has fewer. Weight each micro-batch by len(x) / len(inputs).",
        "drops_last": "You skip the last, shorter micro-batch.",
        "divides_by_samples": "You divide the loss, which is already a mean, by the number of all "
        "samples. First multiply it by the micro-batch's own number of samples.",
        "clears_first": "You discard earlier gradients. Don't clear them: add to them.",
        "scales_existing": "You also scale earlier gradients. Scale the losses before backward, "
        "not .grad afterwards.",
        "last_only": "Only the last micro-batch's gradient is left. Clear gradients for a new "
        "batch, not for a new micro-batch.",
        "other_mode": OTHER_MODE,
        "keeps_graphs": KEEPS_GRAPHS,
        "larger_graphs": "Your micro-batches don't pile up, but each takes too much memory. "
        "torch.func.grad and create_graph=True also record backward so that it can be "
        "differentiated again, and a loss that you keep until the next forward holds its graph. "
        "Call loss.backward().",
    },
    trust="measured",
)
