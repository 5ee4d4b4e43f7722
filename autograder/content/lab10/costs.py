"""Exercises: attention's cost, as FlashAttention counts it, and which of two limits binds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.model.compare import by_reference, whole
from autograder.model.task import Case, Task
from peakmem.labs.compare import close
from peakmem.specs.hardware import ACCELERATORS, Accelerator, accelerator

__all__ = ["attention_cost", "roofline"]

Cost = dict[str, int]


def _cost(
    batch: int, heads: int, seq: int, head_dim: int, causal: bool, dtype_bytes: int, block: int
) -> Cost:
    """Two matrix products, and traffic: Q, K, V and O are seq x head_dim, S and P seq x seq."""
    together = batch * heads
    matrix, scores = (together * seq * width * dtype_bytes for width in (head_dim, seq))
    blocks = -(-seq // block)
    return {
        "flops": together * 4 * seq**2 * head_dim // (2 if causal else 1),
        "score_bytes": scores,
        # Reads Q, K and writes S; reads S and writes P; reads P, V and writes O.
        "io_bytes_standard": 4 * scores + 4 * matrix,
        # Reads Q and writes O once; reads K and V once for each block of rows.
        "io_bytes_tiled": 2 * matrix + 2 * blocks * matrix,
    }


def _but(change: Callable[..., Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
    """The reference's dict, updated with the entries that `change(right, *arguments)` returns."""

    def mutant(*arguments: Any) -> Mapping[str, Any]:
        right = _cost(*arguments)
        return {**right, **change(right, *arguments)}

    return mutant


def _matrix(b: int, h: int, s: int, d: int, size: int) -> int:
    return b * h * s * d * size


_COST_MUTANTS: dict[str, Callable[..., Any]] = {
    "causal_not_halved": lambda b, h, s, d, causal, *rest: _cost(b, h, s, d, False, *rest),
    "one_product": _but(lambda right, *a: {"flops": right["flops"] // 2}),
    "bytes_halved_too": _but(
        lambda right, b, h, s, d, causal, *a: (
            {"score_bytes": right["score_bytes"] // 2} if causal else {}
        )
    ),
    "heads_left_out": lambda b, h, *rest: _cost(b, 1, *rest),
    "elements": lambda b, h, s, d, causal, size, block: _cost(b, h, s, d, causal, 1, block),
    "scores_once": _but(
        lambda right, *a: {
            "io_bytes_standard": right["io_bytes_standard"] - 2 * right["score_bytes"]
        }
    ),
    "scores_only": _but(lambda right, *a: {"io_bytes_standard": 4 * right["score_bytes"]}),
    "keys_read_once": _but(
        lambda right, b, h, s, d, causal, size, block: {
            "io_bytes_tiled": 4 * _matrix(b, h, s, d, size)
        }
    ),
    "rest_left_out": _but(
        lambda right, b, h, s, d, causal, size, block: {
            "io_bytes_tiled": (2 + 2 * (s // block)) * _matrix(b, h, s, d, size)
        }
    ),
    "parts_of_blocks": _but(
        lambda right, b, h, s, d, causal, size, block: {
            "io_bytes_tiled": round((2 + 2 * s / block) * _matrix(b, h, s, d, size))
        }
    ),
    "not_whole": lambda *a: {name: float(value) for name, value in _cost(*a).items()},
}


def _cost_cases(rng: np.random.Generator) -> list[Case]:
    def call(causal: bool, rest: tuple[float, float] | None = None) -> list[Any]:
        """The last block is whole, or its length is between these two shares of a block."""
        block = int(rng.integers(2, 9)) * 16
        least, most = (int(share * block) for share in rest or (0, 0))
        seq = block * int(rng.integers(2, 9)) + (int(rng.integers(least, most)) if rest else 0)
        batch, heads = (int(n) for n in rng.integers(2, 9, 2))
        return [
            batch,
            heads,
            seq,
            2 * int(rng.integers(8, 65)),
            causal,
            int(rng.choice([2, 4])),
            block,
        ]

    # Last blocks below and above half a block, which round() counts as none and as a whole one.
    short, long = (0.1, 0.5), (0.6, 1.0)
    drawn = [call(False), call(False, short), call(True), call(True, short), call(True, long)]
    # GPT-3's attention, and a block longer than the sequence.
    fixed = [[1, 96, 2048, 128, True, 2, 128], [1, 1, 100, 64, False, 4, 128]]
    return [
        *(Case(("value",), {"calls": [call]}) for call in drawn),
        Case(("value",), {"calls": drawn}),
        Case(
            ("value",),
            {"calls": fixed},
            fixed=True,
            about="the sizes are GPT-3's, or a block is longer than the sequence.",
        ),
    ]


def _written(*a: Any) -> str:
    *of_attention, block = a
    return f"attention_cost{tuple(of_attention)}, with io_bytes_tiled({block})"


attention_cost = Task(
    id="lab10-attention_cost",
    parts={"value": 2},
    defines=("attention_cost",),
    probe="attention_cost",
    cases=_cost_cases,
    judge=by_reference(_cost, _COST_MUTANTS, equal=whole(), write=_written),
    mistakes={
        "causal_not_halved": "With a causal mask, half of the products aren't needed: halve the "
        "flops.",
        "one_product": "Attention has two matrix products, q times k and probabilities times v, "
        "and each takes a multiplication and an addition: 4 seq^2 head_dim for one head.",
        "bytes_halved_too": "A mask halves only the flops. Standard attention writes all scores, "
        "masked or not.",
        "heads_left_out": "Each head has its own scores: multiply by heads.",
        "elements": "You count values. Multiply the three byte counts by dtype_bytes.",
        "scores_once": "Standard attention moves a matrix of scores four times: it writes scores, "
        "reads them for softmax, writes probabilities and reads those.",
        "scores_only": "Besides the scores, standard attention reads q, k and v and writes the "
        "output.",
        "keys_read_once": "k and v are read again for each block of rows. Only q and the output "
        "are moved once.",
        "rest_left_out": "A short block at the end counts too: there are ceil(seq / block) blocks.",
        "parts_of_blocks": "There are whole blocks only, ceil(seq / block) of them.",
        "not_whole": "Bytes and flops are whole numbers: divide with //.",
    },
)


# The roofline

_FORMAT = "fp16"
# The exercise leaves out boards that have no separate 16-bit rate.
_BOARDS = tuple(name for name, board in ACCELERATORS.items() if _FORMAT in board.tflops)


def _times(flops: float, traffic: float, name: str, fmt: str = _FORMAT) -> tuple[float, float]:
    board: Accelerator = accelerator(name)
    return flops / board.flops_per_s(fmt), traffic / board.bandwidth_bytes_per_s


def _limit(function: str, flops: float, traffic: float, name: str) -> str | float:
    compute, memory = _times(flops, traffic, name)
    if function == "least_seconds":
        return max(compute, memory)
    return "compute" if compute > memory else "memory"


def _limits(
    seconds: Callable[[float, float], float] = max,
    times: Callable[[float, float, str], tuple[float, float]] = _times,
    swapped: bool = False,
) -> Callable[..., str | float]:
    """A limit that combines the wrong times, or names the wrong one."""

    def mutant(function: str, flops: float, traffic: float, name: str) -> str | float:
        compute, memory = times(flops, traffic, name)
        if function == "least_seconds":
            return seconds(compute, memory)
        return "compute" if (compute > memory) != swapped else "memory"

    return mutant


def _roofline_cases(rng: np.random.Generator) -> list[Case]:
    def calls(name: str, factor: float) -> list[list[Any]]:
        """Slightly above or below the board's ridge, in flops per byte."""
        board = accelerator(name)
        traffic = float(rng.uniform(1e6, 1e9))
        ridge = board.flops_per_s(_FORMAT) / board.bandwidth_bytes_per_s
        return [[f, factor * ridge * traffic, traffic, name] for f in ("bound_by", "least_seconds")]

    names = [str(name) for name in rng.choice(_BOARDS, 4, replace=False)]
    factors = (0.999, 1.001, 0.1, 10.0)
    drawn = [call for name in names for factor in factors for call in calls(name, factor)]
    fixed = [call for name in _BOARDS for f in (0.999, 1.001) for call in calls(name, f)]
    return [
        Case(("value",), {"calls": drawn}),
        Case(
            ("value",),
            {"calls": fixed},
            fixed=True,
            about="an accelerator's two times are almost equal.",
        ),
    ]


roofline = Task(
    id="lab10-roofline",
    parts={"value": 1},
    defines=("bound_by", "least_seconds"),
    probe="roofline",
    cases=_roofline_cases,
    judge=by_reference(
        _limit,
        {
            "sum_of_both": _limits(seconds=lambda compute, memory: compute + memory),
            "shorter_one": _limits(seconds=min),
            "names_swapped": _limits(swapped=True),
            "always_compute": _limits(
                times=lambda f, t, n: (_times(f, t, n)[0], 0.0), seconds=lambda c, m: c
            ),
            "always_memory": _limits(
                times=lambda f, t, n: (0.0, _times(f, t, n)[1]), seconds=lambda c, m: m
            ),
            "rate_of_fp32": _limits(times=lambda f, t, n: _times(f, t, n, "fp32")),
        },
        equal=close(1e-6),  # as in the self-check: times may be float32
        write=lambda function, f, t, n: f"{function}({f:.6g}, {t:.6g}, accelerator({n!r}))",
    ),
    mistakes={
        "sum_of_both": "Arithmetic and traffic run at the same time: the least time is the "
        "longer of the two, not their sum.",
        "shorter_one": "Both must finish: the least time is the longer of the two.",
        "names_swapped": 'The longer one is the limit: "compute" if the flops take longer '
        "than the bytes.",
        "always_compute": "You look at the flops only. Bytes take bytes / bandwidth seconds.",
        "always_memory": "You look at the bytes only. Flops take flops / rate seconds.",
        "rate_of_fp32": 'Take the rate of "fp16", not of "fp32".',
    },
)
