"""Exercise: the mean over a batch's counted tokens, accumulated over micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from autograder.content.lab05.gradients import (
    COMMON_MISTAKES,
    KEEPS_GRAPHS,
    OTHER_MODE,
    Array,
    Outcome,
    as_before,
    close,
    faults_of_use,
    forwards_unseen,
    gradients_in,
    gradients_of,
    graphs_kept,
    is_number,
    is_tensor,
    sizes_of,
    weighted,
)
from autograder.model.compare import show
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab05 import token_model

__all__ = ["accumulate_token_mean"]

_VOCAB, _WIDTH, _LENGTH = 7, 4, 6
_DEFAULT = -100


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(
        counted: list[int],
        micro_batch: int,
        *,
        ignore_index: int | None = None,
        before: Sequence[int] = (),
        training: bool = True,
        fixed: bool = False,
    ) -> Case:
        shapes = [(_VOCAB, _WIDTH), (_VOCAB, _WIDTH)]
        ignored = _DEFAULT if ignore_index is None else ignore_index
        inputs = {
            "embedding": rng.normal(size=shapes[0]),
            "head": rng.normal(size=shapes[1]),
            "before": [
                rng.normal(size=shape) if number in before else None
                for number, shape in enumerate(shapes)
            ],
            "tokens": rng.integers(_VOCAB, size=(len(counted), _LENGTH)),
            "labels": _labels(rng, counted, ignored),
            "micro_batch": micro_batch,
            "ignore_index": ignore_index,
            "training": training,
        }
        return Case(("right",), inputs, fixed=fixed)

    unequal = [int(n) for n in rng.permutation([6, 1, 5, 2, 4, 3, 6])]
    return [
        case([6, 5, 1, 2, 6, 6], 2),
        case(unequal, 3, training=False),
        case([4, 0, 0, 0, 1, 3], 2),
        case([5, 2, 3, 6], 2, before=(0, 1)),
        case([2, 6, 1, 4, 5], 2, before=(0,), ignore_index=0),
        case([2, 6, 1, 4], 1, before=(1,), ignore_index=_VOCAB - 1, fixed=True),
        case([3, 1, 6], 8, fixed=True),
        case([0, 0, 0], 2, fixed=True),
        case([0, 0, 0, 0], 2, before=(0, 1), ignore_index=0, fixed=True),
        case([0, 1], 2),
    ]


def _labels(rng: np.random.Generator, counted: list[int], ignored: int) -> Array:
    """Labels with a given number of counted tokens per row, in random places, and padding."""
    labels = rng.integers(int(ignored == 0), _VOCAB, size=(len(counted), _LENGTH))
    for row, count in zip(labels, counted, strict=True):
        row[rng.permutation(_LENGTH)[count:]] = ignored
    return labels


class _Tokens:
    """For each micro-batch: the sum of its counted tokens' losses, the gradient, and the count."""

    def __init__(
        self,
        inputs: Mapping[str, Any],
        ignored: int,
        *,
        only: int | None = None,
        shift: int = 0,
        other_mode: bool = False,
    ) -> None:
        model = token_model(inputs["embedding"], inputs["head"])
        model.train(inputs["training"] != other_mode)
        tokens, labels = torch.tensor(inputs["tokens"]), torch.tensor(inputs["labels"])
        if only is not None:  # the losses ignore a different index from the count
            ignored, self._counts = only, ignored
        else:
            self._counts = ignored
        micro_batch = inputs["micro_batch"]
        self.sizes = sizes_of(len(tokens), micro_batch)
        self.length = tokens.shape[1]
        self.before = as_before(inputs["before"], [p.shape for p in model.parameters()])
        self.losses, self.gradients, self.counts = [], [], []
        for x, y in zip(
            torch.split(tokens, micro_batch), torch.split(labels, micro_batch), strict=True
        ):
            logits, wanted = model(x)[:, : self.length - shift], y[:, shift:]
            loss = F.cross_entropy(
                logits.flatten(0, 1), wanted.flatten(), ignore_index=ignored, reduction="sum"
            )
            self.losses.append(loss.item())
            self.gradients.append(gradients_of(model, loss))
            self.counts.append(int((wanted != self._counts).sum()))

    def by(self, weights: list[float], keep: float = 1.0) -> Outcome:
        """The result if each micro-batch's sum is weighted like this."""
        loss = sum(w * part for w, part in zip(weights, self.losses, strict=True))
        return Outcome(loss, weighted(self.gradients, weights, self.before, keep))

    def right(self, keep: float = 1.0) -> Outcome:
        return self.by([1 / max(sum(self.counts), 1)] * len(self.counts), keep)


def _mutants(inputs: Mapping[str, Any]) -> dict[str, list[Outcome]]:
    ignored = _DEFAULT if inputs["ignore_index"] is None else inputs["ignore_index"]
    t = _Tokens(inputs, ignored)
    means = [1 / c if c else np.nan for c in t.counts]
    safe = [1 / c if c else 0.0 for c in t.counts]
    samples, count = sum(t.sizes), len(t.sizes)
    some = max(sum(c > 0 for c in t.counts), 1)
    shares = [size / samples for size in t.sizes]
    nothing = [np.full_like(start, np.nan) for start in t.before]
    nans = [Outcome(np.nan, g) for g in (nothing, t.before, t.right().gradients)]
    mutants = {
        "nan_where_none": [] if sum(t.counts) else nans,
        "nan_in_a_micro_batch": [] if all(t.counts) else nans,
        "mean_of_means": [t.by([m / n for m in ms]) for ms in (means, safe) for n in (count, some)],
        "no_division": [t.by(means), t.by(safe)],
        "weighted_by_samples": [
            t.by([s * m for s, m in zip(shares, ms, strict=True)]) for ms in (means, safe)
        ],
        "counts_ignored_tokens": [t.by([1 / (samples * t.length)] * count)],
        "clears_first": [t.right(keep=0.0)],
        "sum_of_tokens": [t.by([1.0] * count)],
    }
    if ignored != _DEFAULT and ignored >= 0:
        default = _Tokens(inputs, _DEFAULT)
        mutants["default_ignore_index"] = [default.right()]
        mutants["counts_by_default_index"] = [_Tokens(inputs, _DEFAULT, only=ignored).right()]
    mutants["other_mode"] = [_Tokens(inputs, ignored, other_mode=True).right()]
    mutants["shifts_again"] = [_Tokens(inputs, ignored, shift=1).right()]
    if not sum(t.counts):
        mutants["mean_of_means"] += nans
        mutants["no_division"] += nans
        mutants["weighted_by_samples"] += nans
    return mutants


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    fault = faults_of_use(value, case.inputs["micro_batch"])
    return {"right": fault or graphs_kept(value) or _compared(case.inputs, value)}


def _compared(inputs: Mapping[str, Any], value: Mapping[str, Any]) -> Finding:
    ignored = _DEFAULT if inputs["ignore_index"] is None else inputs["ignore_index"]
    right = _Tokens(inputs, ignored).right()
    got = gradients_in(value.get("gradients"), right.gradients)
    if got is None:
        return Finding(False, "The answers came back garbled.")
    loss = value.get("value")
    if close(got, right.gradients):
        if is_number(loss, right.loss):
            # Micro-batches without a counted token may be left out.
            rows = int((inputs["labels"] != ignored).any(axis=1).sum())
            return forwards_unseen(value, rows) or Finding(True)
        if is_tensor(loss):
            return Finding(False, "A tensor came back.", ("returns_tensor",))
    names = [
        name
        for name, outcomes in _mutants(inputs).items()
        if any(close(got, o.gradients) and is_number(loss, o.loss) for o in outcomes)
    ]
    if not names and not close(got, right.gradients):
        names = [
            name
            for name, outcomes in _mutants(inputs).items()
            if any(close(got, o.gradients) for o in outcomes)
        ]
    counted = [int(n) for n in (inputs["labels"] != ignored).sum(axis=1)]
    what = "the loss is not" if close(got, right.gradients) else "the gradients are not those of"
    said = (
        f"With {counted} counted tokens per sample, micro_batch={inputs['micro_batch']} and "
        f"ignore_index={ignored}: {what} the mean over all counted tokens"
    )
    if is_number(loss, right.loss):
        said += "; the loss is right."
    else:
        said += f"; expected the loss {right.loss:.10g}, got {show(loss)}."
    return Finding(False, said, tuple(names))


accumulate_token_mean = Task(
    id="lab05-accumulate_token_mean",
    parts={"right": 3},
    defines=("accumulate_token_mean",),
    probe="accumulate_token_mean",
    cases=_cases,
    judge=_judge,
    mistakes=COMMON_MISTAKES
    | {
        "keeps_graphs": KEEPS_GRAPHS,
        "other_mode": OTHER_MODE,
        "nan_where_none": "If no token in the batch counts, return 0.0 without a gradient. Your "
        "division by 0 gives NaN.",
        "nan_in_a_micro_batch": "A micro-batch without a counted token makes your result NaN: its "
        "mean is 0 / 0. Use its sum instead (reduction='sum'), which is 0, or skip it.",
        "mean_of_means": "You average the means of the micro-batches. One with few counted tokens "
        "then weighs as much as a full one. Divide sums by the number of counted tokens of the "
        "whole batch.",
        "weighted_by_samples": "You weight micro-batches by their samples. The mean is over "
        "tokens, so weight micro-batches by the tokens that count.",
        "no_division": "You add up the micro-batches' means. Sum each micro-batch's token losses "
        "(reduction='sum'), and divide by the number of counted tokens in the whole batch.",
        "sum_of_tokens": "You add up the tokens' losses without dividing by their number. Divide "
        "each micro-batch's sum before backward(): dividing only the result doesn't change .grad.",
        "counts_by_default_index": "Your count treats -100 as the ignored label, whatever "
        "ignore_index says.",
        "counts_ignored_tokens": "You divide by the number of all tokens, including ignored ones. "
        "Count only labels that differ from ignore_index.",
        "clears_first": "You discard earlier gradients. Don't clear them: add to them.",
        "default_ignore_index": "Your function ignores -100, whatever ignore_index says. Pass "
        "ignore_index to the loss.",
        "shifts_again": "You shift the labels by one token. They are already shifted.",
    },
)
