"""Exercise: cross-entropy with at most one chunk of logits alive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.content.lab10.draws import ragged
from autograder.content.lab10.forbidden import NO_FUSED_LOSS
from autograder.content.lab10.tiled import are_close
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.labs.compare import close
from peakmem.probes.lab10 import run_loss

__all__ = ["chunked_cross_entropy"]

_MIB = 2**20
_LARGE = {"tokens": 512, "vocab": 8192, "width": 16, "chunk": 32}
_CHUNK_BYTES, _WEIGHT_BYTES, _X_BYTES = 4 * 32 * 8192, 4 * 8192 * 16, 4 * 512 * 16
# As the notebook says: four chunks of logits, and four times x and weight.
_MOST_BYTES = 4 * (_CHUNK_BYTES + _WEIGHT_BYTES + _X_BYTES)
# For the inputs, and for logsumexp's copies, which the kernel counts but the meter can't see.
_SCRATCH_BYTES = 2 * _WEIGHT_BYTES + 4 * _MIB
_close = close(1e-9)


def _plain(x: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
    return F.cross_entropy(x @ weight.T, targets)


def _summed(x: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
    return F.cross_entropy(x @ weight.T, targets, reduction="sum")


def _mean_of_chunks(x: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
    parts = list(zip(torch.split(x, chunk), torch.split(targets, chunk), strict=True))
    losses = [_plain(part, weight, goal, chunk) for part, goal in parts]
    return sum(losses[1:], losses[0]) / len(parts)


def _all_tokens(x: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
    return _summed(x, weight, targets, chunk) / len(targets)


def _last_left_out(x: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
    end = max(len(x) // chunk * chunk, 1)
    return _plain(x[:end], weight, targets[:end], chunk)


def _ignored_as_first(x: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
    return _plain(x, weight, targets.clamp(min=0), chunk)


class _Shared(torch.autograd.Function):
    """A loss whose calls share the gradients kept for backward."""

    last: Any = None

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
        with torch.enable_grad():
            a, b = (leaf.detach().requires_grad_() for leaf in (x, weight))
            loss = _plain(a, b, targets, chunk)
        _Shared.last = torch.autograd.grad(loss, (a, b))
        return loss.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return *(gradients[0] * g for g in _Shared.last), None, None


_MUTANTS: Mapping[str, Callable[..., Tensor]] = {
    "state_shared": _Shared.apply,
    "sum": _summed,
    "mean_of_chunks": _mean_of_chunks,
    "ignored_counted": _all_tokens,
    "rest_left_out": _last_left_out,
    "ignored_as_token_0": _ignored_as_first,
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(tokens: int, chunk: int, **more: Any) -> Case:
        vocab, width = (int(n) for n in rng.integers(5, 30, 2))
        sizes = {"tokens": tokens, "vocab": vocab, "width": width, "chunk": chunk}
        seed = int(rng.integers(2**31))
        return Case(("value",), {**sizes, "seed": seed, "dtype": "float64", **more})

    large = {**_LARGE, "ignored": "some", "seed": int(rng.integers(2**31)), "large": True}
    return [
        case(24, 8),
        case(ragged(rng), 8),
        case(ragged(rng), 8, ignored="some"),
        case(ragged(rng), 8, ignored="first"),  # a chunk without any counted target
        case(24, 8, ignored="first", factor=-3.0),
        case(7, 20),
        case(12, 5, gain=300.0),  # exp of such logits is inf
        Case(("value",), large, budget=Budget(_MOST_BYTES + _SCRATCH_BYTES)),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    finding = _large(case, answer) if case.budget else _small(case.inputs, answer.value)
    return dict.fromkeys(case.parts, finding)


def _small(inputs: Mapping[str, Any], value: Any) -> Finding:
    options: dict[str, Any] = {"large": False, "metered": False, **inputs}
    expected = run_loss(_plain, **options)
    if not isinstance(value, dict) or not expected.keys() <= value.keys():
        return Finding(False, "The answers came back garbled.")
    if value["changed"] is not False:
        return Finding(False, "Your function changes the targets.", ("targets_changed",))
    if _equal(expected, value):
        return Finding(True)
    about = ", ".join(f"{name} {inputs[name]}" for name in ("tokens", "chunk"))
    about += f", {inputs.get('ignored', 'none')} ignored"
    known = [name for name, f in _MUTANTS.items() if _equal(run_loss(f, **options), value)]
    if not _close(expected["loss"], value["loss"]):
        said = (
            f"With {about}: expected a loss of {expected['loss']:.6g}, got {value['loss']!r:.40}."
        )
        return Finding(False, said, (*known, *_overflow(inputs, value)))
    return Finding(
        False, f"With {about}: {_which(expected, value)}", (*known, *_which_way(inputs, value))
    )


def _equal(expected: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    same_loss = _close(expected["loss"], got["loss"])
    return same_loss and are_close(got["gradients"], expected["gradients"], 1e-9)


def _overflow(inputs: Mapping[str, Any], value: Mapping[str, Any]) -> tuple[str, ...]:
    loss = value["loss"]
    bad = isinstance(loss, float) and not np.isfinite(loss)
    if bad and inputs.get("gain"):
        return ("overflows",)
    return ("empty_chunk",) if bad and inputs.get("ignored") == "first" else ()


def _which(expected: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    got = value["gradients"]
    if not isinstance(got, list) or len(got) != 2:
        return "the gradients came back garbled."
    pairs = zip(("x", "weight"), got, expected["gradients"], strict=True)
    names = [name for name, g, e in pairs if g is None or not are_close(g, e, 1e-9)]
    return f"the loss is correct, but the gradient of {' and of '.join(names)} isn't."


def _which_way(inputs: Mapping[str, Any], value: Mapping[str, Any]) -> tuple[str, ...]:
    """The mistake in the gradients if the loss is right."""
    got = value["gradients"]
    if isinstance(got, list) and any(g is None for g in got):
        return ("no_gradient",)
    plain = run_loss(_plain, large=False, metered=False, **{**inputs, "factor": 1.0})
    if inputs.get("factor", 1.0) != 1 and are_close(got, plain["gradients"], 1e-9):
        return ("incoming_gradient",)
    return ()


def _large(case: Case, answer: Answer) -> Finding:
    value = answer.value if isinstance(answer.value, dict) else {}
    rise = answer.metered("rise_bytes")
    about = "512 tokens of 8192 logits, in chunks of 32,"
    if answer.breaks_budget(rise, _MOST_BYTES):
        took = "" if rise is None else f" Your code takes {rise / _MIB:.1f} MiB."
        said = f"{about} may take {_MOST_BYTES / _MIB:.1f} MiB in addition to x and weight.{took}"
        return Finding(False, said, ("all_logits",))
    loss, sums = _right_of_large(case.inputs["seed"])
    if close(1e-4)(loss, value.get("loss")) and are_close(value.get("sums"), sums, 1e-4):
        return Finding(True)
    said = f"{about} give a different loss or gradient."
    return Finding(False, said, (*_MUTANTS, "no_gradient"), follows=True)


@lru_cache(maxsize=16)
def _right_of_large(seed: int) -> tuple[float, Any]:
    options: dict[str, Any] = {**_LARGE, "seed": seed, "ignored": "some"}
    found = run_loss(_plain, large=True, metered=False, **options)
    return found["loss"], found["sums"]


chunked_cross_entropy = Task(
    id="lab10-chunked_cross_entropy",
    parts={"value": 4},
    defines=("chunked_cross_entropy",),
    probe="chunked_cross_entropy",
    cases=_cases,
    judge=_judge,
    mistakes={
        "sum": "Your loss is a sum. Divide by the number of targets that count.",
        "mean_of_chunks": "The mean of the chunks' means isn't the mean over all tokens: add up "
        "sums, and divide once by the number of all targets that count.",
        "ignored_counted": "You divide by all tokens. Those whose target is -100 don't count.",
        "rest_left_out": "Your code skips the final partial chunk.",
        "ignored_as_token_0": "You treat a target of -100 as token 0. It has no loss and no "
        "gradient.",
        "overflows": "exp of a large logit is inf: use logsumexp or log_softmax.",
        "empty_chunk": "A chunk may have no target that counts, so its own mean is 0/0. Divide "
        "once, by the number of all targets that count.",
        "state_shared": "Another call between forward and backward changes your gradients. Keep "
        "backward's inputs in ctx, not on the class.",
        "targets_changed": "targets isn't yours to change. Work on a copy.",
        "no_gradient": "x and weight need a gradient each.",
        "incoming_gradient": "Multiply by the incoming gradient in backward: the loss may be "
        "scaled after your function.",
        "all_logits": "More than a chunk's logits are alive at once. Free them before the next "
        "chunk: gradients can be computed at once, or by a checkpoint in backward.",
    },
    ban=NO_FUSED_LOSS,
    trust="measured",
)
