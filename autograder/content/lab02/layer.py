"""layer_activation_bytes: what training keeps from one transformer layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.content.lab02.answers import by_parts
from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.task import Case, Task

__all__ = ["kept_bytes", "layer_activation_bytes"]

_KINDS = ("standard", "flash")
_PARTS = ("attention", "mlp", "layer_norms")


def kept_bytes(
    seq: int, batch: int, d_model: int, n_heads: int, attention: str = "standard"
) -> dict[str, int]:
    """Return the bytes that one layer keeps, as counted by Korthikanti et al. 2022 (sect. 4.1).

    Raises ValueError if `attention` is neither "standard" nor "flash".
    """
    if attention not in _KINDS:
        raise ValueError(f"no such attention: {attention}")
    sbh = seq * batch * d_model
    scores = 5 * n_heads * seq * seq * batch if attention == "standard" else 0
    return {"attention": 11 * sbh + scores, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


def _but(change: Callable[..., dict[str, int]]) -> Callable[..., dict[str, int]]:
    """The reference with some parts counted differently.

    `change` gets sbh, the elements of one boundary; as2b, those of all heads' scores; and whether
    attention is standard (1) or not (0).
    """

    def mutant(
        seq: int, batch: int, d_model: int, n_heads: int, attention: str = "standard"
    ) -> dict[str, int]:
        right = kept_bytes(seq, batch, d_model, n_heads, attention)
        standard = int(attention == "standard")
        return right | change(seq * batch * d_model, n_heads * seq * seq * batch, standard)

    return mutant


def _in_floats(s: int, b: int, h: int, a: int, attention: str = "standard") -> dict[str, int]:
    right = kept_bytes(s, b, h, a, attention)
    per_element = 11 + (5 * a * s / h if attention == "standard" else 0)
    return right | {"attention": int(s * b * h * per_element)}


_MUTANTS: dict[str, Callable[..., Any]] = {
    "no_masks": _but(
        lambda sbh, as2b, standard: {
            "attention": 10 * sbh + standard * 4 * as2b,
            "mlp": 18 * sbh,
        }
    ),
    "masks_of_2_bytes": _but(
        lambda sbh, as2b, standard: {
            "attention": 12 * sbh + standard * 6 * as2b,
            "mlp": 20 * sbh,
        }
    ),
    "one_norm": _but(lambda sbh, as2b, standard: {"layer_norms": 2 * sbh}),
    "one_head": lambda s, b, h, a, attention="standard": kept_bytes(s, b, h, 1, attention),
    "linear_in_seq": _but(lambda sbh, as2b, standard: {"attention": 11 * sbh + standard * 5 * sbh}),
    "flash_keeps_scores": _but(lambda sbh, as2b, standard: {"attention": 11 * sbh + 5 * as2b}),
    "flash_keeps_nothing": _but(
        lambda sbh, as2b, standard: {"attention": standard * (11 * sbh + 5 * as2b)}
    ),
    "no_scores": _but(lambda sbh, as2b, standard: {"attention": 11 * sbh}),
    "elements_in_fp32": _but(
        lambda sbh, as2b, standard: {
            "attention": 21 * sbh + standard * 9 * as2b,
            "mlp": 37 * sbh,
            "layer_norms": 8 * sbh,
        }
    ),
    "formula_in_floats": _in_floats,
    "without_gelu": _but(lambda sbh, as2b, standard: {"mlp": 11 * sbh}),
    "unknown_attention_taken": lambda s, b, h, a, attention="standard": kept_bytes(
        s, b, h, a, attention if attention in _KINDS else "flash"
    ),
    "unknown_attention_standard": lambda s, b, h, a, attention="standard": kept_bytes(
        s, b, h, a, attention if attention in _KINDS else "standard"
    ),
}


def _layer_cases(rng: np.random.Generator) -> list[Case]:
    def draw() -> list[object]:
        n_heads = int(rng.integers(2, 40))
        sizes = [int(rng.integers(16, 5000)), int(rng.integers(2, 40)), 64 * n_heads, n_heads]
        return [*sizes, *([], ["standard"], ["flash"])[int(rng.integers(3))]]

    both = [[1024, 3, 768, 12], [1024, 3, 768, 12, "flash"]]
    fixed = [[2048, 1, 12288, 96], [1024, 4, 768, 12, "flash"], [1, 1, 1, 1], [7, 3, 20, 5]]
    # GPT-3's 13B row, whose heads don't divide its width; then products that floats would round.
    fixed += [[2048, 1, 5140, 40], [1476, 27, 4066, 17], [289, 14, 3256, 17], [3057, 19, 23, 28]]
    others = {0: 512, 1: 2, 2: 1024, 3: 16, 4: "flash"}
    fixed += one_at_a_time([1024, 3, 768, 12, "standard"], others)
    # Some begin with a known name, end with one, or have a space after it.
    names = ("sdpa", "Flash", "flash2", "standard2", "no-flash", "nonstandard", "flash ", "")
    unknown = [[16, 2, 64, 4, name] for name in names]
    return [
        Case(_PARTS, {"calls": both + [draw() for _ in range(12)]}),
        Case(("attention",), {"calls": unknown}),
        Case(_PARTS, {"calls": fixed}, fixed=True),
    ]


layer_activation_bytes = Task(
    id="lab02-layer_activation_bytes",
    parts=dict.fromkeys(_PARTS, 1),
    defines=("layer_activation_bytes",),
    probe="layer_activation_bytes",
    cases=_layer_cases,
    judge=by_parts(
        kept_bytes,
        {part: (part,) for part in _PARTS},
        _MUTANTS,
        write=lambda *sizes: f"layer_activation_bytes({', '.join(map(repr, sizes))})",
    ),
    mistakes={
        "no_masks": "You leave out the dropout masks, 1 byte per element: one for the attention "
        "probabilities, one after attention, one after the MLP.",
        "masks_of_2_bytes": "You count 2 bytes per element for the dropout masks. This exercise's "
        "convention is 1.",
        "one_norm": "A layer has two norms, and each keeps its input.",
        "one_head": "Each head has its own seq x seq attention probabilities: multiply by n_heads.",
        "linear_in_seq": "Each attention probability belongs to a *pair* of tokens, so each head "
        "has seq x seq of them.",
        "flash_keeps_scores": "Flash attention doesn't store its probabilities: without them, the "
        "term 5as^2b is gone.",
        "flash_keeps_nothing": "Flash attention drops only the probabilities. It keeps its "
        "inputs, its output and the rest, 11sbh.",
        "no_scores": "Standard attention keeps its probabilities, too: 5as^2b bytes.",
        "elements_in_fp32": "You count 4 bytes per element; this exercise's convention is 2 (fp16 "
        "or bf16).",
        "formula_in_floats": "You compute sbh(11 + 5as/h) in floats, which may land just below "
        "the correct integer. Multiply integers: 11sbh + 5as^2b.",
        "without_gelu": "GELU saves its input for backward, 4 d_model numbers per token, which "
        "adds 8sbh bytes.",
        "unknown_attention_taken": "Raise ValueError if attention is neither standard nor flash; "
        "you count it as flash.",
        "unknown_attention_standard": "Raise ValueError if attention is neither standard nor "
        "flash; you count it as standard.",
    },
)
