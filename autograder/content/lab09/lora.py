"""Exercise: a frozen layer with two thin matrices beside it.

Students may initialise the first matrix as they like, so results aren't compared with a run of the
reference. They are computed here from the returned layer, the two matrices and alpha.

Long because the small runs and the large one are judged by the same matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from autograder.content.lab09.figures import Array, are_near
from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab09.lora import adapted, layer_and_rows

__all__ = ["Lora", "lora"]

_START, _TRAINED, _BYTES = "equal at the start", "trained and merged", "optimizer and gradients"
_WIDTH, _RANK, _ROWS = 1280, 4, 4
_MIB = 2**20
_MOST_BYTES = int(1.6 * 4 * _WIDTH**2)  # for the frozen weight and smaller tensors
_SCRATCH_BYTES = 2 * _MIB  # a matrix product packs parts of its operands


class Lora(nn.Module):
    """A frozen linear layer, and a trainable product of two thin matrices beside it."""

    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / rank**0.5)
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output plus the adapter's."""
        output: Tensor = self.linear(x) + self.scale * (x @ self.down.T @ self.up.T)
        return output

    def merge(self) -> nn.Linear:
        """Return one linear layer that does the same."""
        has_bias = self.linear.bias is not None
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, has_bias)
        merged.load_state_dict(self.linear.state_dict())
        with torch.no_grad():
            merged.weight += self.scale * self.up @ self.down
        return merged


def _cases(rng: np.random.Generator) -> list[Case]:
    def small(bias: bool, rank: int) -> dict[str, Any]:
        n_in, n_out = int(rng.integers(8, 12)), int(rng.integers(13, 18))
        alpha = rank * float(rng.choice([1.25, 2.75, 3.25]))  # alpha / rank isn't whole
        sizes = {"n_in": n_in, "n_out": n_out, "rank": rank, "alpha": alpha}
        return {**sizes, "bias": bias, "seed": int(rng.integers(2**31))}

    large = {"width": _WIDTH, "rank": _RANK, "rows": _ROWS, "seed": int(rng.integers(2**31))}
    budget = Budget(_MOST_BYTES + _SCRATCH_BYTES + _MIB)
    return [
        *(Case((_START, _TRAINED), small(bias, int(rng.integers(2, 5)))) for bias in (True, False)),
        Case((_START, _TRAINED), small(True, 1)),
        Case((_BYTES,), {"large": True, **large}, budget=budget),
    ]


@lru_cache(maxsize=64)
def _given(sizes: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """The base layer's weights and the inputs, which depend only on the sizes."""
    return adapted(Lora, **dict(sizes), steps=0)


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    if case.budget is not None:
        return dict.fromkeys(case.parts, _bytes(answer, case.inputs["seed"]))
    if not _is_report(answer.value):
        return dict.fromkeys(case.parts, Finding(False, "The answers came back garbled."))
    given = _given(tuple(sorted(case.inputs.items())))
    return {
        _START: _start(given, answer.value, case.inputs),
        _TRAINED: _trained(given, answer.value, case.inputs),
    }


def _is_report(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(_is_output(value.get(name)) for name in ("start", "trained", "merged"))
        and (value.get("x_gradient") is None or _is_output(value["x_gradient"]))
        and isinstance(value.get("trainable"), list)
        and all(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in value["trainable"])
        and isinstance(value.get("zero_at_start"), list)
        and len(value["zero_at_start"]) == len(value["trainable"])
        and all(type(zero) is bool for zero in value["zero_at_start"])
        and all(type(value.get(k)) is bool for k in ("base_changed", "returned"))
    )


def _is_output(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 3


def _start(given: Mapping[str, Any], value: Mapping[str, Any], sizes: Mapping[str, Any]) -> Finding:
    if not are_near(_output(given, 0.0), value["start"], 1e-4):
        said = "Before any training the output differs from the linear layer's."
        return Finding(False, said, ("not_zero_at_the_start",))
    pairs = zip(value["trainable"], value["zero_at_start"], strict=True)
    zeros = ["A" if sizes["n_in"] in array.shape else "B" for array, zero in pairs if zero]
    if _pair(value["trainable"], sizes) is None or "B" in zeros:
        return Finding(True)
    said = f"Before any training B isn't 0{', and A is' if zeros else ''}."
    return Finding(False, said, ("zeros_in_a",) if zeros else ())


def _output(given: Mapping[str, Any], delta: Any) -> Array:
    bias = 0.0 if given["bias"] is None else given["bias"].astype(np.float64)
    output: Array = given["x"].astype(np.float64) @ (given["weight"] + delta).T + bias
    return output


def _trained(
    given: Mapping[str, Any], value: Mapping[str, Any], sizes: Mapping[str, Any]
) -> Finding:
    if value["base_changed"]:
        return Finding(
            False, "Training changed the linear layer, or gave it gradients.", ("base_trained",)
        )
    pair = _pair(value["trainable"], sizes)
    if pair is None:
        shapes = [tuple(array.shape) for array in value["trainable"]]
        said = (
            f"Expected two trainable parameters with rank x in and out x rank values, for rank "
            f"{sizes['rank']}, {sizes['n_in']} in and {sizes['n_out']} out; yours are {shapes}."
        )
        vectors = sum(len(shape) == 1 for shape in shapes)
        if vectors and len(shapes) - vectors == 2:  # not the base's: that has no gradients
            return Finding(False, said, ("with_biases",))
        return Finding(False, said, ("base_trained",) if len(shapes) > 2 else ())
    up, down = pair
    product = up @ down
    if all(value["zero_at_start"]):
        said = "Before any training both of your matrices are 0."
        return Finding(False, said, ("both_zero",))
    if not np.abs(product).max() > 1e-6:
        said = "After some steps of Adam the product of your two matrices is still 0."
        return Finding(False, said, ("both_zero",))
    if np.linalg.matrix_rank(down, tol=1e-6) < sizes["rank"]:
        said = f"A has rank {np.linalg.matrix_rank(down, tol=1e-6)}, expected {sizes['rank']}."
        return Finding(False, said, ("equal_rows",))
    scale = sizes["alpha"] / sizes["rank"]
    if not are_near(_output(given, scale * product), value["trained"], 1e-4):
        said = "After training, the output isn't the layer's plus alpha / rank times the adapter's."
        return Finding(False, said, tuple(_scales(given, value["trained"], product, sizes)))
    if not _is_slope(given["weight"] + scale * product, value):
        said = "The gradient of x differs from the gradient through the layer plus the adapter."
        only = _is_slope(given["weight"], value)
        path = "no_gradient_through_the_adapter" if only else "no_gradient_through_the_base"
        return Finding(False, said, (path,))
    return _merged(given, value, scale * product)


def _is_slope(matrix: Array, value: Mapping[str, Any]) -> bool:
    """Whether x's gradient, the same for each row of x, comes from a product with this matrix."""
    got = value["x_gradient"]
    return got is not None and are_near(np.broadcast_to(matrix.sum(axis=0), got.shape), got, 1e-4)


def _merged(given: Mapping[str, Any], value: Mapping[str, Any], delta: Array) -> Finding:
    if not value["returned"]:
        return Finding(False, "merge() doesn't return an nn.Linear.", ("nothing_returned",))
    if are_near(value["trained"], value["merged"], 1e-4):
        return Finding(True)
    expected = _output(given, delta)
    others = {
        "adapter_not_merged": _output(given, 0.0),
        "merged_unscaled": _output(given, delta * _rank_over_alpha(value, delta)),
        "bias_lost": _output({**given, "bias": None}, delta),
        "merged_twice": 2 * expected - _output(given, 0.0),
    }
    known = [name for name, output in others.items() if are_near(output, value["merged"], 1e-4)]
    return Finding(False, "The merged layer's output differs from the output before.", tuple(known))


def _rank_over_alpha(value: Mapping[str, Any], delta: Array) -> float:
    """How much larger the product of the two matrices alone is than the scaled product."""
    first, second = (array.astype(np.float64) for array in value["trainable"])
    for a in (first, first.T):
        for b in (second, second.T):
            for left, right in ((a, b), (b, a)):
                if (left.shape[0], right.shape[1]) == delta.shape and left.shape[1] == len(right):
                    return float(np.linalg.norm(left @ right) / np.linalg.norm(delta))
    return 1.0


def _scales(
    given: Mapping[str, Any], trained: Array, product: Array, sizes: Mapping[str, Any]
) -> Iterator[str]:
    rank, alpha = sizes["rank"], sizes["alpha"]
    others = {
        "alpha_ignored": 1.0,
        "not_divided_by_rank": alpha,
        "divided_by_root": alpha / rank**0.5,
        "rank_over_alpha": rank / alpha,
    }
    for name, scale in others.items():
        if are_near(_output(given, scale * product), trained, 1e-4):
            yield name


def _pair(arrays: list[Array], sizes: Mapping[str, Any]) -> tuple[Array, Array] | None:
    """The two matrices as (out, rank) and (rank, in), in either orientation; else None."""
    found: dict[str, Array] = {}
    for array in arrays:
        for name, shape in (("up", ("n_out", "rank")), ("down", ("rank", "n_in"))):
            wanted = tuple(sizes[key] for key in shape)
            if array.shape == wanted:
                found[name] = array.astype(np.float64)
            elif array.shape == wanted[::-1]:
                found[name] = array.astype(np.float64).T
    return (found["up"], found["down"]) if len(found) == len(arrays) == 2 else None


def _bytes(answer: Answer, seed: int) -> Finding:
    rise = answer.metered("rise_bytes", "numpy_rise_bytes")
    if not answer.breaks_budget(rise, _MOST_BYTES):
        value = answer.value if isinstance(answer.value, dict) else {}
        if value.get("n_trained") == 2 * _RANK * _WIDTH and value.get("moved") is True:
            if _adds_a_product(value, seed):
                return Finding(True)
            said = f"With width {_WIDTH}, the output isn't the layer's plus the adapter's."
            return Finding(False, said)
        said = f"With width {_WIDTH}, train only an adapter of rank {_RANK}."
        return Finding(False, said, ("base_trained", "with_biases", "both_zero"))
    took = "" if rise is None else f", and took {rise / _MIB:.1f} MiB"
    said = (
        f"With a weight of {4 * _WIDTH**2 / _MIB:.1f} MiB and rank {_RANK}, two steps of Adam may "
        f"take {_MOST_BYTES / _MIB:.1f} MiB with that weight{took}."
    )
    return Finding(False, said, ("as_large_as_the_weight", "base_trained"))


def _adds_a_product(value: Mapping[str, Any], seed: int) -> bool:
    """Whether the output is the layer's plus a multiple of the two matrices' product.

    The small runs judge the factor.
    """
    trainable, trained = value.get("trainable"), value.get("trained")
    if not isinstance(trainable, list) or trained is None:
        return False
    if not all(map(_is_float, [trained, *trainable])):
        return False
    wide = [array if len(array) == _RANK else array.T for array in trainable]
    if [array.shape for array in wide] != [(_RANK, _WIDTH)] * 2:
        return False
    of_layer, x = _layers_output(seed)
    return any(
        _is_multiple(trained - of_layer, x @ first.T @ second, most=np.abs(of_layer).max())
        for first, second in (wide, wide[::-1])
        if trained.shape == of_layer.shape
    )


def _is_multiple(found: Array, of: Array, most: float) -> bool:
    """Whether one array is a multiple of another, up to 1e-4 of `most`."""
    size = float((of * of).sum())
    factor = float((found * of).sum()) / size if size > 0 else 0.0
    return bool((np.abs(found - factor * of) <= 1e-4 * most).all())


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 2


@lru_cache(maxsize=16)
def _layers_output(seed: int) -> tuple[Array, Array]:
    """The large layer's output and its input."""
    linear, x = layer_and_rows(_WIDTH, _ROWS, seed)
    with torch.no_grad():
        output: Array = linear.double()(x.double()).numpy()
    return output, x.double().numpy()


lora = Task(
    id="lab09-lora",
    parts={_START: 1, _TRAINED: 2, _BYTES: 1},
    defines=("Lora",),
    probe="lora",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "as_large_as_the_weight": "Something else as large as the weight is alive: a gradient "
        "or moments of the frozen layer, or the product of the two matrices. Multiply x by one "
        "matrix, and the result by the other.",
        "base_trained": "The linear layer is trained too. Freeze all its parameters, including "
        "the bias: requires_grad_(False).",
        "with_biases": "Your two matrices come with biases. LoRA has none: nn.Linear(..., "
        "bias=False).",
        "no_gradient_through_the_base": "x gets no gradient through the frozen layer, so nothing "
        "below it could be trained. requires_grad_(False) freezes its weight; no_grad() and "
        "detach() cut the graph.",
        "no_gradient_through_the_adapter": "x gets no gradient through the adapter. Leave it "
        "attached: the layers below are trained, too.",
        "both_zero": "Both matrices start at 0, so neither ever gets a nonzero gradient. Draw the "
        "first one at random, and leave the other at 0.",
        "not_zero_at_the_start": "The adapter changes the output before training. Start the "
        "second matrix at 0.",
        "equal_rows": "Rows of A that start equal get equal gradients and stay equal: the adapter "
        "takes the bytes of rank r but learns like rank 1. Draw A at random.",
        "zeros_in_a": "Your A starts at 0, and B is random. In LoRA, B starts at 0, and A is "
        "random.",
        "alpha_ignored": "You add the unscaled product. Multiply it by alpha / rank.",
        "not_divided_by_rank": "You multiply by alpha. Multiply by alpha / rank.",
        "divided_by_root": "You divide alpha by the square root of the rank. Divide by the rank.",
        "rank_over_alpha": "You multiply by rank / alpha, which is upside down.",
        "merged_unscaled": "merge() adds the product without alpha / rank.",
        "adapter_not_merged": "merge() returns a layer without what the adapter has learned. Add "
        "the product as it is now, in each call.",
        "nothing_returned": "Return an nn.Linear from merge(), with the adapter's part in its "
        "weight: not None, not a function, and not an adapter.",
        "bias_lost": "The merged layer has no bias.",
        "merged_twice": "After merge(), the adapter's part is added twice.",
    },
    ban=NO_METER_TAMPERING,
    trust="measured",
)
