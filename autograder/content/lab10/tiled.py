"""Exercise: attention by blocks, with extra memory that grows as seq x block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from autograder.content.lab10.draws import ragged
from autograder.content.lab10.forbidden import NO_FUSED_ATTENTION
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab10 import run_attention

__all__ = ["are_close", "attended", "exactly", "tiled_attention"]

_EQUAL, _PEAK = "equal", "peak"
_MIB = 2**20
_LARGE = {  # by causal
    # A mask of all rows and columns exceeds the kernel's budget, and products are small, so that
    # the library's own buffers are small, too.
    True: {"batch": 1, "heads": 1, "seq": 2048, "head_dim": 16, "block": 32},
    False: {"batch": 1, "heads": 1, "seq": 768, "head_dim": 16, "block": 48},
}


def _most_bytes(seq: int, block: int, head_dim: int, **_: int) -> int:
    """As the notebook says: four blocks of columns of scores, and six times the bytes of q."""
    return 4 * seq * (4 * block + 6 * head_dim)


def exactly(q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool) -> Tensor:
    """Attention as torch computes it, in float64; the block has no effect."""
    output = scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
    return output.to(q.dtype)


def attended(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block: int,
    causal: bool,
    *,
    scale: float | None = None,
    masked: Callable[[int], Tensor] | None = None,
    axis: int = -1,
    cut: bool = False,
) -> Tensor:
    """Attention with whole matrices; options are mistakes."""
    seq = q.shape[-2]
    if cut:  # leaves out everything after the last whole block
        block = min(block, seq)
        k, v = (t[..., : seq // block * block, :] for t in (k, v))
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        mask = torch.ones(seq, seq, dtype=torch.bool).triu(1) if masked is None else masked(seq)
        scores = scores.masked_fill(mask[:, : k.shape[-2]], -math.inf)
    return scores.softmax(axis) @ v


def _block_means(q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool) -> Tensor:
    """Each block of columns gets its own softmax, and the results are added."""
    if causal:
        return exactly(q, k, v, block, causal)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    parts = zip(torch.split(scores, block, -1), torch.split(v, block, -2), strict=True)
    return sum((part.softmax(-1) @ values for part, values in parts), torch.zeros_like(q))


def _not_rescaled(
    q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool, *, total: bool
) -> Tensor:
    """When a block raises the maximum, the sum of values isn't rescaled; nor is l if `total`."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    parts = torch.split(scores, block, -1)
    maxima = torch.stack([part.amax(-1) for part in parts], -1).cummax(-1).values
    weights = [torch.exp(part - maxima[..., i : i + 1]) for i, part in enumerate(parts)]
    unscaled = torch.cat(weights, -1)
    right = torch.exp(scores - maxima[..., -1:])
    return unscaled @ v / (unscaled if total else right).sum(-1, keepdim=True)


_MUTANTS: Mapping[str, Callable[..., Tensor]] = {
    "not_scaled": lambda *a: attended(*a, scale=1.0),
    "scaled_by_width": lambda q, *a: attended(q, *a, scale=1 / q.shape[-1]),
    "mask_ignored": lambda q, k, v, block, causal: exactly(q, k, v, block, False),
    "always_masked": lambda q, k, v, block, causal: exactly(q, k, v, block, True),
    "own_token_masked": lambda *a: attended(*a, masked=lambda n: torch.ones(n, n).triu(0).bool()),
    "future_only": lambda *a: attended(*a, masked=lambda n: torch.ones(n, n).tril(-1).bool()),
    "softmax_a_block": _block_means,
    "sum_not_rescaled": lambda *a: _not_rescaled(*a, total=False),
    "nothing_rescaled": lambda *a: _not_rescaled(*a, total=True),
    "rest_left_out": lambda *a: attended(*a, cut=True),
    "output_shared": lambda q, k, v, block, causal: exactly(1 - q, 1 - k, 1 - v, block, causal),
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(causal: bool, seq: int, block: int, **more: Any) -> Case:
        batch, heads, half = (int(n) for n in rng.integers(1, 4, 3))
        sizes = {"batch": batch, "heads": heads, "seq": seq, "head_dim": 2 * half, "block": block}
        seed = int(rng.integers(2**31))
        inputs = {**sizes, "causal": causal, "seed": seed, "dtype": "float64", **more}
        return Case((_EQUAL,), inputs)

    def large(causal: bool) -> Case:
        sizes = _LARGE[causal]
        given_bytes = 3 * 4 * sizes["seq"] * sizes["head_dim"]
        budget = Budget(given_bytes + _most_bytes(**sizes) + _MIB)
        inputs = {**sizes, "causal": causal, "seed": int(rng.integers(2**31)), "large": True}
        # Without a mask the meter is enough. A smaller budget after a larger one would put the
        # call in doubt, because it frees memory that the larger call left.
        return Case((_PEAK,), inputs, budget=budget if causal else None)

    return [
        case(False, 24, 8),
        case(False, 17, 8, by_default=True),
        case(False, ragged(rng), 8),
        case(True, 24, 8),
        case(True, ragged(rng), 8),
        case(False, 5, 16),
        case(True, 6, 1, dtype="float32"),
        case(False, ragged(rng), 8, gain=3000.0),  # exp of such scores is inf
        # Enough heads that in one of them the first row's only score is below a mask of -1e4.
        case(True, ragged(rng), 8, gain=1e8, batch=3, heads=3),
        large(True),
        large(False),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    finding = (
        _large(case, answer) if case.inputs.get("large") else _small(case.inputs, answer.value)
    )
    return dict.fromkeys(case.parts, finding)


def _small(inputs: Mapping[str, Any], value: Any) -> Finding:
    options: dict[str, Any] = {"large": False, "metered": False, **inputs, "by_default": False}
    expected = run_attention(exactly, **options)
    if not isinstance(value, dict) or not expected.keys() <= value.keys():
        return Finding(False, "The answers came back garbled.")
    about = ", ".join(f"{n} {inputs[n]}" for n in ("seq", "block", "causal"))
    if value["changed"] != []:
        return Finding(False, f"With {about}: your function changed its arguments.", ("changed",))
    if value["dtype"] != expected["dtype"] and are_close(value["output"], expected["output"], 1e-4):
        said = f"With {about}: the output is {value['dtype']}, but q is {expected['dtype']}."
        return Finding(False, said, ("another_dtype",))
    tolerance = 1e-4 if inputs["dtype"] == "float32" else 1e-9
    if not are_close(value["output"], expected["output"], tolerance):
        mutants = {name: run_attention(f, **options)["output"] for name, f in _MUTANTS.items()}
        known = [n for n, made in mutants.items() if are_close(value["output"], made, tolerance)]
        nan = isinstance(value["output"], np.ndarray) and not np.isfinite(value["output"]).all()
        overflown = ("overflows",) if nan and inputs.get("gain") else ()
        return Finding(False, f"With {about}: the output differs.", (*known, *overflown))
    return Finding(True)


def _large(case: Case, answer: Answer) -> Finding:
    value = answer.value if isinstance(answer.value, dict) else {}
    rise = answer.metered("rise_bytes")
    causal = case.inputs["causal"]
    sizes, most_bytes = _LARGE[causal], _most_bytes(**_LARGE[causal])
    mask = "with a causal mask" if causal else "without a mask"
    about = f"{sizes['seq']} tokens in blocks of {sizes['block']}, {mask},"
    if answer.breaks_budget(rise, most_bytes):
        took = "" if rise is None else f" Your code takes {rise / _MIB:.1f} MiB."
        said = f"{about} may take {most_bytes / _MIB:.1f} MiB in addition to q, k and v.{took}"
        whole = (rise or 0) >= 4 * sizes["seq"] ** 2
        return Finding(False, said, ("whole_matrix", *["whole_mask"] * (not whole)))
    if are_close(value.get("sums"), _right_of_large(causal, case.inputs["seed"]), 1e-4):
        return Finding(True)
    return Finding(False, f"{about} give a different output.", tuple(_MUTANTS), follows=True)


@lru_cache(maxsize=16)
def _right_of_large(causal: bool, seed: int) -> Any:
    sizes: dict[str, Any] = {**_LARGE[causal], "causal": causal, "seed": seed}
    return run_attention(exactly, large=True, metered=False, **sizes)["sums"]


def are_close(got: Any, expected: Any, tolerance: float, least: float = 0.0) -> bool:
    """Tell whether arrays, or lists of them, agree up to a share of their largest value.

    If `least` is larger, it is a share of that, because a sum that nearly cancels keeps its terms'
    rounding errors.
    """
    if isinstance(expected, list):
        return (
            isinstance(got, list)
            and len(got) == len(expected)
            and all(are_close(g, e, tolerance, least) for g, e in zip(got, expected, strict=True))
        )
    if not isinstance(got, np.ndarray) or got.shape != expected.shape or got.dtype.kind != "f":
        return False
    size = max(least, _largest(expected))
    with np.errstate(invalid="ignore"):  # inf minus inf
        return bool(np.allclose(got, expected, 0, tolerance * size, equal_nan=True))


def _largest(array: Any) -> float:
    """The largest finite absolute value; some mistakes give NaN or inf."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


tiled_attention = Task(
    id="lab10-tiled_attention",
    parts={_EQUAL: 2, _PEAK: 2},
    defines=("tiled_attention",),
    probe="tiled_attention",
    cases=_cases,
    judge=_judge,
    mistakes={
        "not_scaled": "Divide scores by the square root of head_dim.",
        "scaled_by_width": "Divide scores by the square root of head_dim, not by head_dim.",
        "mask_ignored": "With causal=True a row sees no later column: set later columns' scores "
        "to -inf.",
        "always_masked": "You mask with causal=False, too.",
        "own_token_masked": "A row sees its own column: mask only where column > row.",
        "future_only": "Your mask hides the past. A row sees columns up to its own.",
        "softmax_a_block": "Your result applies a separate softmax to each block of columns. Keep "
        "a maximum and a sum for each row, and divide once, at the end.",
        "sum_not_rescaled": "You rescale l, but not the sum of values. When a block raises a row's "
        "maximum, multiply both by exp(old maximum - new maximum).",
        "nothing_rescaled": "When a block raises a row's maximum, multiply l and the sum of values "
        "so far by exp(old maximum - new maximum).",
        "rest_left_out": "Your code skips the final partial block.",
        "output_shared": "A second call changes the first call's output. Make a new tensor in "
        "each call.",
        "overflows": "For large scores exp overflows, or is 0 in a whole row: subtract each row's "
        "maximum so far, which starts at -inf.",
        "changed": "Your function changes q, k or v. Work on new tensors.",
        "another_dtype": "The output's dtype differs from q's. Give your buffers q's dtype: "
        "torch.empty_like, or dtype=q.dtype.",
        "whole_mask": "Something of size seq x seq is alive: perhaps the mask, or blocks in a "
        "list. Make the mask for one block at a time, from its row and column numbers, and keep "
        "no block.",
        "whole_matrix": "A whole matrix of scores, seq x seq, is alive. Cut rows or columns into "
        "blocks, and keep no block.",
    },
    ban=NO_FUSED_ATTENTION,
    trust="measured",
)
