"""gpt_parameters: the parameters of a GPT, counted exactly by component."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.content.lab02.answers import by_parts
from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.task import Case, Task

__all__ = ["gpt_parameters", "total_parameters"]

_Count = dict[str, int]

_PARTS = {
    "embeddings and head": ("token_embedding", "position_embedding", "head"),
    "attention": ("attention",),
    "mlp": ("mlp",),
    "norms": ("layer_norms", "final_norm"),
}


def _count(
    n_layers: int, d_model: int, vocab: int = 50257, context: int = 2048, tied: bool = True
) -> _Count:
    square = d_model * d_model
    return {
        "token_embedding": vocab * d_model,
        "position_embedding": context * d_model,
        "attention": n_layers * (4 * square + 4 * d_model),
        "mlp": n_layers * (8 * square + 5 * d_model),
        "layer_norms": n_layers * 4 * d_model,
        "final_norm": 2 * d_model,
        "head": 0 if tied else vocab * d_model,
    }


def total_parameters(n_layers: int, d_model: int, vocab: int, context: int) -> int:
    """Return the number of parameters of a GPT with a tied head."""
    return sum(_count(n_layers, d_model, vocab, context).values())


def _but(change: Callable[..., _Count]) -> Callable[..., _Count]:
    """The reference with some components counted differently.

    `change` gets the right count, then n_layers, d_model, vocab and context.
    """

    def mutant(
        n_layers: int, d_model: int, vocab: int = 50257, context: int = 2048, tied: bool = True
    ) -> _Count:
        right = _count(n_layers, d_model, vocab, context, tied)
        return right | change(right, n_layers, d_model, vocab, context)

    return mutant


_MUTANTS = {
    "without_any_biases": _but(
        lambda right, n, d, v, c: {
            "attention": n * 4 * d * d,
            "mlp": n * 8 * d * d,
            "layer_norms": n * 2 * d,
            "final_norm": d,
        }
    ),
    "without_linear_biases": _but(
        lambda right, n, d, v, c: {"attention": n * 4 * d * d, "mlp": n * 8 * d * d}
    ),
    "one_layer": _but(
        lambda right, n, d, v, c: {
            key: right[key] // n for key in ("attention", "mlp", "layer_norms")
        }
    ),
    "tied_head_counted": _but(lambda right, n, d, v, c: {"head": v * d}),
    "head_never_counted": _but(lambda right, n, d, v, c: {"head": 0}),
    "head_with_bias": _but(lambda right, n, d, v, c: {"head": right["head"] and right["head"] + v}),
    "no_output_projection": _but(lambda right, n, d, v, c: {"attention": n * (3 * d * d + 3 * d)}),
    "mlp_biases_alike": _but(lambda right, n, d, v, c: {"mlp": n * (8 * d * d + 2 * d)}),
    "one_norm_a_layer": _but(lambda right, n, d, v, c: {"layer_norms": n * 2 * d}),
    "norms_without_bias": _but(
        lambda right, n, d, v, c: {"layer_norms": n * 2 * d, "final_norm": d}
    ),
    "final_norm_in_layer_norms": _but(
        lambda right, n, d, v, c: {"layer_norms": n * 4 * d + 2 * d, "final_norm": 0}
    ),
    "defaults_always": lambda n, d, v=50257, c=2048, tied=True: _count(n, d, tied=tied),
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def shape() -> list[object]:
        d_model = 8 * int(rng.integers(1, 1000))
        vocab, context = (int(size) for size in rng.integers(100, 60_000, 2))
        return [int(rng.integers(2, 100)), d_model, vocab, context]

    table = [(12, 768), (24, 1024), (24, 1536), (24, 2048), (32, 2560), (32, 4096), (40, 5140)]
    gpt3 = [list(row) for row in (*table, (96, 12288))]
    drawn = [shape() + tail for tail in ([], [True], [False]) for _ in range(4)]
    edges = [[1, 1, 1, 1, True], [1, 1, 1, 1, False], [12, 768, 50257, 1024], [96, 12288, 50257]]
    edges.append([2, 700_000_003, 7, 11, False])  # products that fit into int64 but into no float
    edges += one_at_a_time([12, 768, 1000, 512, False], {0: 24, 1: 1024, 2: 900, 3: 256, 4: True})
    parts = tuple(_PARTS)
    return [Case(parts, {"calls": drawn}), Case(parts, {"calls": gpt3 + edges}, fixed=True)]


gpt_parameters = Task(
    id="lab02-gpt_parameters",
    parts=dict.fromkeys(_PARTS, 1),
    defines=("gpt_parameters",),
    probe="gpt_parameters",
    cases=_cases,
    judge=by_parts(
        _count,
        _PARTS,
        _MUTANTS,
        write=lambda *arguments: f"gpt_parameters({', '.join(map(str, arguments))})",
    ),
    mistakes={
        "without_linear_biases": "You leave out the linear layers' biases. Every linear layer "
        "except the head has one, as long as its output.",
        "one_layer": "Count attention, mlp and layer_norms over all layers; you count one layer.",
        "tied_head_counted": "A tied head is the token embedding itself, one tensor with two "
        "uses: count it once, and head is 0.",
        "head_never_counted": "With tied=False the head is a separate matrix, vocab x d_model.",
        "head_with_bias": "The head has no bias.",
        "no_output_projection": "Attention has four matrices: queries, keys, values, and the "
        "output projection, which you leave out.",
        "mlp_biases_alike": "The MLP's first bias is as long as its output, 4 d_model; only the "
        "second has length d_model.",
        "one_norm_a_layer": "A layer has two norms, one before attention and one before the MLP.",
        "norms_without_bias": "A layer norm has a weight and a bias of d_model numbers each.",
        "final_norm_in_layer_norms": "The norm after the last layer is final_norm; layer_norms "
        "counts only the norms inside the layers.",
        "without_any_biases": "You leave out the biases. Every norm has one, and so does every "
        "linear layer except the head, as long as its output.",
        "defaults_always": "vocab and context are arguments; GPT-3's 50257 and 2048 are only "
        "their defaults.",
    },
)
