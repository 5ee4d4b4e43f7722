"""largest_batch: what fits on top of 16 bytes per parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from autograder.content.lab02.answers import exact_bytes
from autograder.content.lab02.layer import kept_bytes
from autograder.content.lab02.parameters import total_parameters
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["largest_batch"]

_Shape = Mapping[str, int]


def _parameters(shape: _Shape) -> int:
    return total_parameters(shape["n_layers"], shape["d_model"], shape["vocab"], shape["context"])


def _one_example(seq: int, shape: _Shape) -> int:
    return shape["n_layers"] * sum(kept_bytes(seq, 1, shape["d_model"], shape["n_heads"]).values())


def _batch(seq: int, shape: _Shape, budget: int) -> int:
    left = budget - 16 * _parameters(shape)
    return max(left // _one_example(seq, shape), 0)


def _with_bytes(a_parameter: int) -> Callable[[int, _Shape, int], int]:
    def mutant(seq: int, shape: _Shape, budget: int) -> int:
        left = budget - a_parameter * _parameters(shape)
        return max(left // _one_example(seq, shape), 0)

    return mutant


def _with_parameters(count: Callable[[_Shape], int]) -> Callable[[int, _Shape, int], int]:
    def mutant(seq: int, shape: _Shape, budget: int) -> int:
        return max((budget - 16 * count(shape)) // _one_example(seq, shape), 0)

    return mutant


def _with_example(kept: Callable[[int, _Shape], int]) -> Callable[[int, _Shape, int], int]:
    def mutant(seq: int, shape: _Shape, budget: int) -> int:
        return max((budget - 16 * _parameters(shape)) // kept(seq, shape), 0)

    return mutant


def _seq_for_context(seq: int, shape: _Shape, budget: int) -> int:
    return _batch(seq, {**shape, "context": seq}, budget)


def _strictly(seq: int, shape: _Shape, budget: int) -> int:
    return _batch(seq, shape, budget - 1)


def _at_least_one(seq: int, shape: _Shape, budget: int) -> int:
    return max(_batch(seq, shape, budget), 1)


def _below_zero(seq: int, shape: _Shape, budget: int) -> int:
    return (budget - 16 * _parameters(shape)) // _one_example(seq, shape)


def _rounded_up(seq: int, shape: _Shape, budget: int) -> int:
    return max(-((16 * _parameters(shape) - budget) // _one_example(seq, shape)), 0)


def _seq_in_context(seq: int, shape: _Shape, budget: int) -> int:
    return _batch(min(seq, shape["context"]), shape, budget)


def _batch_cases(rng: np.random.Generator) -> list[Case]:
    def shape() -> dict[str, int]:
        n_heads, d_head = int(rng.integers(2, 16)), int(rng.choice([32, 48, 80, 96]))
        sizes = {"n_layers": int(rng.integers(2, 30)), "d_model": d_head * n_heads}
        context = 64 * int(rng.integers(8, 50))
        embeddings = {"vocab": int(rng.integers(100, 60_000)), "context": context}
        return sizes | {"n_heads": n_heads} | embeddings

    def draw(batch: int, over: int) -> list[object]:
        """A call with room for `batch` sequences and `over` bytes more, or fewer if negative."""
        sizes, seq = shape(), int(rng.integers(64, 4000))
        needed = 16 * _parameters(sizes) + batch * _one_example(seq, sizes)
        return [seq, sizes, max(needed + over, 0)]

    some = [draw(int(rng.integers(2, 300)), int(rng.integers(1, 10_000))) for _ in range(8)]
    # At these budgets a single byte decides.
    exact = [draw(batch, over) for batch in (1, 5, 40, 3000) for over in (0, -1)]
    nothing = [draw(0, 1000), draw(0, 0), draw(-2, 0), [128, shape(), 0]]
    gpt2 = {"n_layers": 12, "d_model": 768, "n_heads": 12, "vocab": 50257, "context": 1024}
    lengths = [[seq, gpt2, 16 * 10**9] for seq in (128, 256, 512, 1024, 2048, 4096, 8192, 16384)]
    lengths.append([1024, gpt2, 24 * 10**9])
    # One attribute differs at a time, to catch results cached under too few of them.
    others = {"n_layers": 24, "d_model": 1536, "n_heads": 16, "vocab": 500_000, "context": 4096}
    lengths += [[1024, {**gpt2, name: size}, 16 * 10**9] for name, size in others.items()]
    # A quotient that no float tells from the next whole number. It is small, so that answers that
    # try one batch after another end soon.
    long = 5 * 10**7
    lengths.append([long, gpt2, 16 * _parameters(gpt2) + 3 * _one_example(long, gpt2) - 1])
    return [
        Case(("batch",), {"calls": some}),
        Case(("batch",), {"calls": exact}),
        Case(("batch",), {"calls": nothing}),
        Case(("batch",), {"calls": lengths}, fixed=True),
    ]


largest_batch = Task(
    id="lab02-largest_batch",
    parts={"batch": 2},
    defines=("largest_batch",),
    probe="largest_batch",
    cases=_batch_cases,
    judge=by_reference(
        _batch,
        {
            "budget_excluded": _strictly,
            "at_least_one": _at_least_one,
            "below_zero": _below_zero,
            "rounded_up": _rounded_up,
            "bytes_2": _with_bytes(2),
            "bytes_12": _with_bytes(12),
            "bytes_18": _with_bytes(18),
            "bytes_20": _with_bytes(20),
            "head_untied": _with_parameters(
                lambda shape: _parameters(shape) + shape["vocab"] * shape["d_model"]
            ),
            "default_context": _with_parameters(
                lambda shape: _parameters({**shape, "vocab": 50257, "context": 2048})
            ),
            "context_left_out": _with_parameters(
                lambda shape: _parameters({**shape, "context": 2048})
            ),
            "seq_for_context": _seq_for_context,
            "one_layer": _with_example(
                lambda seq, shape: _one_example(seq, {**shape, "n_layers": 1})
            ),
            "flash": _with_example(
                lambda seq, shape: shape["n_layers"] * 34 * seq * shape["d_model"]
            ),
            "seq_cut_to_context": _seq_in_context,
            "divides_floats": lambda seq, shape, budget: max(
                int((budget - 16 * _parameters(shape)) / _one_example(seq, shape)), 0
            ),
        },
        equal=exact_bytes,
        write=lambda seq, shape, budget: f"largest_batch({seq}, {dict(shape)}, {budget})",
    ),
    mistakes={
        "budget_excluded": "A batch that needs exactly the budget fits: <=, not <.",
        "at_least_one": "If not even one sequence fits, the answer is 0.",
        "below_zero": "If the parameters alone exceed the budget, the answer is 0, not a negative "
        "number.",
        "rounded_up": "Round down: part of another sequence doesn't fit.",
        "bytes_2": "You count 2 bytes per parameter, the weights alone. Training takes 16.",
        "bytes_12": "You count 12 bytes per parameter. The convention here is 16: weights 2, "
        "gradients 2, fp32 weights 4, two moments of 4.",
        "bytes_18": "You count 18 bytes per parameter, which assumes gradients in fp32. The "
        "convention here is 16: weights 2, gradients 2, fp32 weights 4, two moments of 4.",
        "bytes_20": "You count 20 bytes per parameter. The convention here is 16: weights 2, "
        "gradients 2, fp32 weights 4, two moments of 4.",
        "head_untied": "You count the head as a separate matrix. It is tied: it *is* the token "
        "embedding, which you already count.",
        "default_context": "Take vocab and context from the shape; you use GPT-3's values for all "
        "models.",
        "context_left_out": "Take context from the shape, too; you use 2048 for all models.",
        "seq_for_context": "The position embedding has a vector for each of the shape's context "
        "positions, however long the sequences are; you count seq of them.",
        "one_layer": "Each layer keeps its activations: multiply by n_layers.",
        "flash": "Attention is standard here, so its probabilities are saved too: 5as^2b bytes "
        "per layer.",
        "divides_floats": "You divide with /, and floats above 2**53 can't represent every "
        "integer. Divide with //.",
        "seq_cut_to_context": "Use seq as given, even if it exceeds the context.",
    },
)
