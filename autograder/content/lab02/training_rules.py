"""The notebook's rules for a training step, and the common mistakes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autograder.content.lab02.layer import kept_bytes
from autograder.content.lab02.parameters import total_parameters

__all__ = ["EXACT", "MUTANTS", "Shape", "Sizes", "rule_of_the_lab"]

Shape = Mapping[str, int]
Sizes = dict[str, int]

EXACT = ("parameters", "gradients", "optimizer", "logits")


def rule_of_the_lab(shape: Shape, batch: int, seq: int, **change: int) -> Sizes:
    """Return what the notebook's rules give, or a mistake in them.

    `change` overrides numbers that the rules use, by the names below.
    """
    n, d, vocab = shape["n_layers"], shape["d_model"], shape["vocab"]
    tokens = batch * seq
    number = {
        "count": total_parameters(n, d, vocab, shape["context"]),
        "weight": 4,  # bytes of one weight, and of its gradient
        "moments": 2,
        "counters": 12 * n + 4,
        "saved": 4 * tokens * (n * (16 * d + 4 + shape["n_heads"]) + 2 * d + 2) + 16 * tokens,
        "logits": 4 * tokens * vocab,
        "largest": 4 * d * max(vocab, shape["context"], 4 * d),
        "copies of logits": 3,
        "copies of the largest": 2,
    } | {name.replace("_", " "): value for name, value in change.items()}
    weights = number["weight"] * number["count"]
    optimizer = 4 * (number["moments"] * number["count"] + number["counters"])
    saved, logits = number["saved"], number["logits"]
    at_logits = weights + optimizer + saved + number["copies of logits"] * logits
    at_step = 2 * weights + optimizer + number["copies of the largest"] * number["largest"]
    return {
        "parameters": weights,
        "gradients": weights,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, at_step),
    }


def _with(change: Callable[[Shape, int, int, Sizes], Mapping[str, int]]) -> Callable[..., Sizes]:
    """The rules with some of their numbers changed; `change` also gets the right answer."""

    def mutant(shape: Shape, batch: int, seq: int) -> Sizes:
        right = rule_of_the_lab(shape, batch, seq)
        return rule_of_the_lab(shape, batch, seq, **change(shape, batch, seq, right))

    return mutant


def _but(change: Callable[[Shape, int, int, Sizes], Mapping[str, int]]) -> Callable[..., Sizes]:
    """The right answer with some of its items changed."""

    def mutant(shape: Shape, batch: int, seq: int) -> Sizes:
        right = rule_of_the_lab(shape, batch, seq)
        return {**right, **change(shape, batch, seq, right)}

    return mutant


def _count(shape: Shape) -> int:
    return total_parameters(shape["n_layers"], shape["d_model"], shape["vocab"], shape["context"])


def _at_logits(right: Sizes, copies: int = 3) -> int:
    state = right["parameters"] + right["optimizer"]
    return state + right["saved_activations"] + copies * right["logits"]


def _in_step(shape: Shape, right: Sizes, copies: int = 2) -> int:
    d = shape["d_model"]
    largest = 4 * d * max(shape["vocab"], shape["context"], 4 * d)
    return right["parameters"] + right["gradients"] + right["optimizer"] + copies * largest


MUTANTS: Mapping[str, Callable[..., Sizes]] = {
    "counters_forgotten": _with(lambda s, b, t, r: {"counters": 0}),
    "one_moment": _with(lambda s, b, t, r: {"moments": 1}),
    "bytes_2": _with(lambda s, b, t, r: {"weight": 2}),
    "head_untied": _with(lambda s, b, t, r: {"count": _count(s) + s["vocab"] * s["d_model"]}),
    "default_context": _with(lambda s, b, t, r: {"count": _count({**s, "context": 2048})}),
    "biases_forgotten": _with(
        lambda s, b, t, r: {"count": _count(s) - 9 * s["n_layers"] * s["d_model"]}
    ),
    "saved_at_2_bytes": _with(
        lambda s, b, t, r: {
            "saved": s["n_layers"] * sum(kept_bytes(t, b, s["d_model"], 1, "flash").values())
        }
    ),
    "paper_doubled": _with(
        lambda s, b, t, r: {
            "saved": 2 * s["n_layers"] * sum(kept_bytes(t, b, s["d_model"], 1, "flash").values())
        }
    ),
    "final_norm_forgotten": _with(
        lambda s, b, t, r: {"saved": r["saved_activations"] - 8 * b * t * s["d_model"]}
    ),
    "one_layer": _with(
        lambda s, b, t, r: {
            "saved": rule_of_the_lab({**s, "n_layers": 1}, b, t)["saved_activations"]
        }
    ),
    "logits_among_saved": _but(
        lambda s, b, t, r: {"saved_activations": r["saved_activations"] + r["logits"]}
    ),
    "logits_three_times": _but(lambda s, b, t, r: {"logits": 3 * r["logits"]}),
    "peak_is_sum": _but(
        lambda s, b, t, r: {"peak": sum(r[key] for key in (*EXACT, "saved_activations"))}
    ),
    "one_copy_of_logits": _with(lambda s, b, t, r: {"copies_of_logits": 1}),
    "two_copies_of_logits": _with(lambda s, b, t, r: {"copies_of_logits": 2}),
    "no_temporaries": _with(lambda s, b, t, r: {"copies_of_the_largest": 0}),
    "one_temporary": _with(lambda s, b, t, r: {"copies_of_the_largest": 1}),
    "embedding_is_largest": _with(lambda s, b, t, r: {"largest": 4 * s["vocab"] * s["d_model"]}),
    "gradients_at_logits": _but(
        lambda s, b, t, r: {"peak": max(_at_logits(r) + r["gradients"], _in_step(s, r))}
    ),
    "activations_in_step": _but(
        lambda s, b, t, r: {"peak": max(_at_logits(r), _in_step(s, r) + r["saved_activations"])}
    ),
    "only_logits": _but(lambda s, b, t, r: {"peak": _at_logits(r)}),
    "only_step": _but(lambda s, b, t, r: {"peak": _in_step(s, r)}),
}
