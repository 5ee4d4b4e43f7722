"""Exercise: an autograd.Function that recomputes the probabilities block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autograder.content.lab10.draws import ragged
from autograder.content.lab10.forbidden import NO_FUSED_ATTENTION
from autograder.content.lab10.tiled import are_close, attended, exactly
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab10 import CALLS, run_backward

__all__ = ["tiled_backward"]

_GRADIENTS, _SAVED, _PEAK = "gradients", "saved bytes", "peak"
_MIB = 2**20
_KEPT = {"batch": 2, "heads": 2, "seq": 512, "head_dim": 16, "block": 128}
_ROW_BYTES = 4 * 2 * 2 * 512  # one float32 per row
_SLACK_BYTES = 6 * 1024
_MANY = {"batch": 1, "heads": 2, "seq": 256, "head_dim": 16, "block": 64}
_ONE = {  # by causal
    True: {"batch": 1, "heads": 1, "seq": 1280, "head_dim": 16, "block": 128},
    False: {"batch": 1, "heads": 1, "seq": 640, "head_dim": 16, "block": 64},
}


def _q_bytes(sizes: Mapping[str, int]) -> int:
    return 4 * math.prod(sizes[name] for name in ("batch", "heads", "seq", "head_dim"))


def _block_bytes(sizes: Mapping[str, int]) -> int:
    return 4 * math.prod(sizes[name] for name in ("batch", "heads", "seq", "block"))


def _most_bytes(kind: str, causal: bool) -> int:
    """For one call, as the notebook says: 7 blocks of columns of scores and 10 times q.

    For many, three more q per call; another part judges whole matrices in backward.
    """
    if kind == "one":
        return 7 * _block_bytes(_ONE[causal]) + 10 * _q_bytes(_ONE[causal])
    matrix = _block_bytes(_MANY) * _MANY["seq"] // _MANY["block"]
    return 6 * matrix + (10 + 3 * CALLS) * _q_bytes(_MANY)


def _masked(scores: Tensor, causal: bool) -> Tensor:
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -math.inf) if causal else scores


class _Wrong(torch.autograd.Function):
    """Attention whose gradients have one of the common mistakes."""

    mistake = ""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.causal = causal
        return exactly(q, k, v, block, causal)

    @classmethod
    def gradients(cls, ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        q, k, v = ctx.saved_tensors
        scale = 1 / math.sqrt(q.shape[-1])
        scores = q @ k.mT * scale
        forward = _masked(scores, getattr(ctx, "kept_causal", ctx.causal))
        again = _masked(scores, ctx.causal and cls.mistake != "mask_forgotten")
        p = torch.exp(again - forward.logsumexp(-1, keepdim=True))
        dp = gradient @ v.mT
        output = forward.softmax(-1) @ v
        delta = 0.0 if cls.mistake == "no_row_sum" else (gradient * output).sum(-1, keepdim=True)
        ds = p * (dp - delta)
        ds = ds if cls.mistake == "scale_forgotten" else ds * scale
        dq, dk, dv = ds @ k, ds.mT @ q, p.mT @ gradient
        if cls.mistake == "keys_and_values_swapped":
            dk, dv = dv, dk
        return dq, dk, dv, None, None

    @classmethod
    def backward(cls, ctx: Any, *gradients: Any) -> Any:
        return cls.gradients(ctx, *gradients)


class _Shared(torch.autograd.Function):
    """Attention whose calls share the tensors kept for backward."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool) -> Tensor:
        _Shared.last = (q, k, v), causal
        ctx.causal = causal
        return exactly(q, k, v, block, causal)

    last: Any = None

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved, kept_causal = _Shared.last
        last = SimpleNamespace(saved_tensors=saved, causal=ctx.causal, kept_causal=kept_causal)
        return _Wrong.gradients(last, *gradients)


def _mutant(name: str) -> Callable[..., Tensor]:
    made = type(name, (_Wrong,), {"mistake": name})
    apply: Callable[..., Tensor] = made.apply  # type: ignore[attr-defined]
    return apply


_NAMES = ("no_row_sum", "scale_forgotten", "mask_forgotten", "keys_and_values_swapped")
_OF_VALUES = (*_NAMES, "state_shared", "another_output", "no_gradient")
_MUTANTS = {**{name: _mutant(name) for name in _NAMES}, "state_shared": _Shared.apply}


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(part: str, kind: str, sizes: Mapping[str, Any], budget: Budget | None = None) -> Case:
        inputs = {"kind": kind, **sizes, "seed": int(rng.integers(2**31))}
        return Case((part,), inputs, budget=budget)

    def small(causal: bool, seq: int, block: int, gain: float = 1.0, **more: Any) -> Case:
        batch, heads, half = (int(n) for n in rng.integers(1, 4, 3))
        sizes = {"batch": batch, "heads": heads, "seq": seq, "head_dim": 2 * half, "block": block}
        options = {"causal": causal, "dtype": "float64", "gain": gain, **more}
        return case(_GRADIENTS, "small", {**sizes, **options})

    def large(part: str, kind: str, sizes: Mapping[str, int], causal: bool = True) -> Case:
        # Without a mask the meter is enough. A smaller budget after a larger one would put the
        # call in doubt, because it frees memory that the larger call left.
        budget = Budget(4 * _q_bytes(sizes) + _most_bytes(kind, causal) + _MIB) if causal else None
        return case(part, kind, {**sizes, "causal": causal}, budget)

    return [
        small(False, 24, 8),
        small(False, ragged(rng), 8),
        small(True, ragged(rng), 8),
        small(True, 5, 16),
        small(False, ragged(rng), 8, gain=300.0),
        # Enough heads that in one of them the first row's only score is below a mask of -100.
        small(True, 6, 4, gain=300.0, batch=4, heads=4),
        *(case(_SAVED, "kept", {**_KEPT, "causal": causal}) for causal in (False, True)),
        large(_SAVED, "many", _MANY),
        *(large(_PEAK, "one", sizes, causal) for causal, sizes in _ONE.items()),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    kind = case.inputs["kind"]
    if kind == "small":
        finding = _small(case.inputs, answer.value)
    elif kind == "kept":
        finding = _kept(case.inputs, answer.value)
    else:
        finding = _large(case.inputs, answer)
    return dict.fromkeys(case.parts, finding)


def _small(inputs: Mapping[str, Any], value: Any) -> Finding:
    options: dict[str, Any] = {**inputs, "metered": False}
    expected = run_backward(exactly, **options)
    if not isinstance(value, dict) or not expected.keys() <= value.keys():
        return Finding(False, "The answers came back garbled.")
    about = ", ".join(f"{n} {inputs[n]}" for n in ("seq", "block", "causal"))
    if not are_close(value["output"], expected["output"], 1e-9):
        return Finding(
            False, f"With {about}: the output differs from attention's.", ("another_output",)
        )
    got = value["gradients"]
    if isinstance(got, list) and len(got) == 3 and any(g is None for g in got):
        missing = ", ".join(n for n, g in zip("qkv", got, strict=True) if g is None)
        return Finding(False, f"With {about}: no gradient arrives at {missing}.", ("no_gradient",))
    # If softmax picks one key per row, the gradients cancel, and only rounding errors remain.
    least = inputs["gain"]
    if are_close(got, expected["gradients"], 1e-9, least):
        return Finding(True)
    overflows = _overflows(got)  # the order of sums then decides which values are inf or NaN

    def explains(mutant: Callable[..., Tensor]) -> bool:
        gradients = run_backward(mutant, **options)["gradients"]
        return are_close(got, gradients, 1e-9, least) or (overflows and _overflows(gradients))

    known = tuple(name for name, mutant in _MUTANTS.items() if explains(mutant))
    pairs = zip("qkv", got, expected["gradients"], strict=True) if _are_three(got) else ()
    wrong = [name for name, g, e in pairs if not are_close(g, e, 1e-9, least)]
    said = f"With {about}: the gradients of {', '.join(wrong) or 'q, k and v'} differ."
    return Finding(False, said, known, follows=overflows)


def _overflows(gradients: Any) -> bool:
    """Tell whether three float arrays hold an inf or a NaN."""
    return (
        _are_three(gradients)
        and all(isinstance(g, np.ndarray) and g.dtype.kind == "f" for g in gradients)
        and not all(np.isfinite(g).all() for g in gradients)
    )


def _are_three(got: Any) -> bool:
    return isinstance(got, list) and len(got) == 3


def _kept(inputs: Mapping[str, Any], value: Any) -> Finding:
    if not isinstance(value, dict) or type(value.get("kept_bytes")) is not int:
        return Finding(False, "The answers came back garbled.")
    if not are_close(value.get("sums"), _sums("kept", inputs["causal"], inputs["seed"]), 1e-3):
        said = "In the memory measurement, the output or a gradient differs."
        return Finding(False, said, _OF_VALUES, follows=True)
    kept = value["kept_bytes"]
    if kept > _ROW_BYTES + _SLACK_BYTES:
        said = (
            f"After forward {kept:,} bytes are saved in addition to q, k, v and the output; one "
            "float32 "
        )
        return Finding(False, f"{said}per row is {_ROW_BYTES:,}.", _keeps(kept))
    if kept < 0:
        return Finding(False, doubt="The meter saw fewer bytes than there were at the start.")
    return Finding(True)


def _keeps(kept: int) -> tuple[str, ...]:
    if kept >= _block_bytes(_KEPT) * _KEPT["seq"] // _KEPT["block"]:
        return ("keeps_probabilities",)
    if kept <= 4 * _ROW_BYTES:
        return ("several_numbers_a_row",)
    return ("keeps_copies",)


def _large(inputs: Mapping[str, Any], answer: Answer) -> Finding:
    kind, causal = inputs["kind"], inputs["causal"]
    most_bytes = _most_bytes(kind, causal)
    sizes, calls = (_MANY, CALLS) if kind == "many" else (_ONE[causal], 1)
    value = answer.value if isinstance(answer.value, dict) else {}
    rise = answer.metered("rise_bytes")
    about = f"{calls} calls of {sizes['seq']} tokens in blocks of {sizes['block']}, and backward"
    if answer.breaks_budget(rise, most_bytes):
        took = "" if rise is None else f" Your code takes {rise / _MIB:.1f} MiB."
        said = f"{about}, may take {most_bytes / _MIB:.1f} MiB in addition to q, k and v.{took}"
        return Finding(False, said, ("keeps_probabilities", *["whole_matrix"] * (kind == "one")))
    if are_close(value.get("sums"), _sums(kind, causal, inputs["seed"]), 1e-3):
        return Finding(True)
    # Sums don't tell which mistake it is: the small cases do, if they fail too.
    said = f"{about}: the output or a gradient differs."
    return Finding(False, said, _OF_VALUES, follows=True)


@lru_cache(maxsize=32)
def _sums(kind: str, causal: bool, seed: int) -> Any:
    sizes: dict[str, Any] = {"kept": _KEPT, "many": _MANY, "one": _ONE[causal]}[kind]
    attention = attended if kind == "kept" else exactly
    return run_backward(attention, kind, False, **sizes, causal=causal, seed=seed)["sums"]


tiled_backward = Task(
    id="lab10-tiled_backward",
    parts={_GRADIENTS: 3, _SAVED: 1, _PEAK: 1},
    defines=("TiledAttention",),
    probe="tiled_backward",
    cases=_cases,
    judge=_judge,
    mistakes={
        "no_row_sum": "Softmax's derivative has a second term: subtract each row's sum of "
        "gradient times output from dP before you multiply by P.",
        "scale_forgotten": "Scores were divided by the square root of head_dim, so divide their "
        "gradient by it too, on its way to q and k.",
        "mask_forgotten": "Your backward computes probabilities without the mask. Apply the mask "
        "there too.",
        "keys_and_values_swapped": "Return gradients in the order of forward's arguments: q, k, v, "
        "and None for block and causal.",
        "state_shared": "Another call between forward and backward changes your gradients. Keep "
        "backward's inputs in ctx, not on the class.",
        "another_output": "The output differs from attention's. Start from your tiled_attention's "
        "forward.",
        "no_gradient": "Some of q, k and v get no gradient: backward returns one for each, and "
        "None for block and causal.",
        "whole_matrix": "In backward a seq x seq matrix is alive. Work block by block, and add "
        "each block's share to the three gradients.",
        "keeps_probabilities": "You save the probabilities from forward to backward. Compute each "
        "block again as exp(scores - L), where L is the log of the row's sum.",
        "several_numbers_a_row": "You keep more than one float32 per row. Maximum and sum together "
        "are one number: L = maximum + log(sum).",
        "keeps_copies": "You save more than q, k, v, the output and one number per row: copies or "
        "a mask. Save the original tensors, and make each block's mask again.",
    },
    ban=NO_FUSED_ATTENTION,
    trust="measured",
)
