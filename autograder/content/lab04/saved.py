"""saved_bytes: the bytes that autograd keeps once a function has returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.model.compare import by_reference, same
from autograder.model.restrictions import Ban
from autograder.model.task import Case, Task

__all__ = ["SAVED", "saved_bytes"]


@dataclass(frozen=True)
class _Saved:
    """A tensor that an operation saved: what it is, and three ways to count it."""

    #: "input", "inner", "output", "buffer", "constant" (of no module), "parameter", "view" (of a
    #: parameter), "number" (one written in Python) or "dropped" (the graph that saved it is gone
    #: when the function returns).
    what: str
    #: The tensor's number of elements.
    elements: int
    #: Bytes of an element.
    size: int = 4
    #: Elements of its storage, if it is a view.
    whole: int = 0
    #: How often it was saved.
    times: int = 1
    #: The number of addresses at which the saved tensors begin: each slice has its own.
    starts: int = 1
    #: The number of distinct shapes of the saved tensors.
    shapes: int = 1
    #: Which of the operations that saved it is dropped: the "first" or the "last".
    dropped: str = ""

    @property
    def storage_bytes(self) -> int:
        return self.size * (self.whole or self.elements)


def _linear(rows: int, columns: int) -> list[_Saved]:
    return [_Saved("view", 2 * columns * columns), _Saved("input", rows * columns)]


# name -> (rows, columns) -> what is saved, derived on paper from each operation's derivative.
SAVED: dict[str, Callable[[int, int], list[_Saved]]] = {
    "product": lambda r, c: [_Saved("input", r * c, times=2)],
    "gelu, composite": lambda r, c: [
        _Saved("input", r * c),  # for x**3
        _Saved("inner", r * c),  # the tanh
        _Saved("inner", r * c),  # 1 + tanh, a factor
        _Saved("inner", r * c),  # 0.5 x, the other factor
        *[_Saved("number", 1, size=8)] * 3,
    ],
    "gelu, fused": lambda r, c: [_Saved("input", r * c)],
    "linear": _linear,
    "frozen linear": lambda r, c: [_Saved("view", 2 * c * c)],
    "parameter": lambda r, c: [_Saved("parameter", c), _Saved("input", r * c)],
    "parameter's view": lambda r, c: [_Saved("view", c, whole=3 * c), _Saved("input", r * c)],
    "buffer": lambda r, c: [_Saved("buffer", c)],
    "constant's view": lambda r, c: [_Saved("constant", c, whole=3 * c)],
    "result's view": lambda r, c: [_Saved("inner", 2 * r, whole=r * c)],
    "two slices": lambda r, c: [_Saved("input", 2 * r, whole=r * c, times=2, starts=2)],
    "two shapes": lambda r, c: [_Saved("input", r * c, times=2, shapes=2)],
    "expanded": lambda r, c: [_Saved("input", r * c), _Saved("input", r * c, whole=c)],
    "view": lambda r, c: [_Saved("input", r, whole=r * c)],
    "number": lambda r, c: [_Saved("inner", r * c), *[_Saved("number", 1, size=8)] * 2],
    "dropped": lambda r, c: [_Saved("output", r * c), _Saved("dropped", r * c)],
    "dropped, then saved": lambda r, c: [_Saved("input", r * c, times=2, dropped="first")],
    "saved, then dropped": lambda r, c: [_Saved("input", r * c, times=2, dropped="last")],
    "mlp": lambda r, c: [
        *[_Saved("input", r * c), _Saved("view", 4 * c * c)],
        _Saved("inner", 4 * r * c, times=2),  # ReLU's output, also the next layer's input
    ],
    "layer_norm": lambda r, c: [_Saved("input", r * c), *[_Saved("inner", r)] * 2],
    "attention": lambda r, c: [
        *[_Saved("input", r * c)] * 2,
        _Saved("input", r * c, whole=r * c),  # k.T, a view of k
        _Saved("inner", r * r, times=2),  # softmax's output, also a factor of the second product
    ],
    "embedding": lambda r, c: [_Saved("input", r, size=8)],
    "mask": lambda r, c: [_Saved("inner", r * c, size=1)],
    "double": lambda r, c: [_Saved("input", r * c, size=8)],
    "two outputs": lambda r, c: [_Saved("output", r * c)] * 2,
    "one value": lambda r, c: [_Saved("output", 1)],
    "no graph": lambda r, c: [],
}

_WRITTEN = {
    "product": "x * x",
    "gelu, composite": "GELU written out with tanh",
    "gelu, fused": "F.gelu(x, approximate='tanh')",
    "linear": "lambda x: F.linear(x, weight) with a Parameter",
    "frozen linear": "lambda x: F.linear(x, weight) with a Parameter that requires no gradient",
    "parameter": "lambda x: x * weight with a Parameter of one value per column",
    "parameter's view": "lambda x: x * weight[1] with a Parameter of three rows",
    "buffer": "a module that returns x * scale, a buffer with a value per column",
    "constant's view": "lambda x: x * table[1] with a tensor of three rows without a gradient",
    "result's view": "(x + 1)[:, :2] ** 2",
    "view": "x[:, :1] ** 2",
    "number": "torch.exp(2.5 * x) / 3.0",
    "dropped": "a function that computes exp(x), drops it and returns tanh(x)",
    "dropped, then saved": "a function that computes x**2, drops it and returns x**3",
    "saved, then dropped": "a function that computes x**3, then x**2, drops that and returns x**3",
    "two slices": "x[:, :2] ** 2 + x[:, 2:4] ** 2",
    "two shapes": "x @ x.T",
    "expanded": "lambda x, y: x * y.expand(rows, columns) with a y of one row",
    "mlp": "Linear(c, 4c), ReLU, Linear(4c, c), with x that requires no gradient",
    "layer_norm": "F.layer_norm(x, (columns,))",
    "attention": "softmax(q @ k.T) @ v",
    "embedding": "nn.Embedding, called with an index per row",
    "mask": "x.masked_fill(x < 0, 0.0)",
    "double": "torch.sin of a float64 x",
    "two outputs": "a function that returns tanh(x) and exp(x)",
    "one value": "lambda x: torch.exp(x.mean())",
    "no graph": "torch.exp of an x that requires no gradient",
}

_HELD = frozenset({"input", "inner", "output", "buffer", "constant"})


def _count(
    kinds: frozenset[str] = _HELD,
    of: Callable[[_Saved], int] = lambda saved: saved.storage_bytes,
) -> Callable[[str, int, int], int]:
    """A function that counts the saved tensors of these kinds."""

    def count(name: str, rows: int, columns: int) -> int:
        return sum(of(saved) for saved in SAVED[name](rows, columns) if saved.what in kinds)

    return count


def _first_saver_only(name: str, rows: int, columns: int) -> frozenset[int]:
    """The possible results: a new tensor may or may not reuse a dropped tensor's address."""
    found = _count(of=lambda s: s.storage_bytes * (s.dropped != "first"))(name, rows, columns)
    reused = any(saved.what == "dropped" for saved in SAVED[name](rows, columns))
    return frozenset({found, 0} if reused else {found})


def _equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, frozenset):  # any of these
        return type(got) is int and got in expected
    return same(expected, got)


_MUTANTS: dict[str, Callable[..., Any]] = {
    "dropped_too": _count(_HELD | {"dropped"}),
    "counted_twice": _count(of=lambda s: s.storage_bytes * (s.times - bool(s.dropped))),
    "counted_twice_and_dropped": _count(
        _HELD | {"dropped"}, of=lambda s: s.storage_bytes * s.times
    ),
    "slices_apart": _count(of=lambda s: s.storage_bytes * s.starts),
    "shapes_apart": _count(of=lambda s: s.storage_bytes * s.shapes),
    "last_saver_only": _count(of=lambda s: s.storage_bytes * (s.dropped != "last")),
    "first_saver_only": _first_saver_only,
    "views_as_small": _count(of=lambda s: s.size * s.elements),
    "views_left_out": _count(of=lambda s: 0 if s.whole else s.storage_bytes),
    "parameters_too": _count(_HELD | {"parameter", "view"}),
    "parameters_views": _count(_HELD | {"view"}),
    "parameters_themselves": _count(_HELD | {"parameter"}),
    "numbers_too": _count(_HELD | {"number"}),
    "inputs_left_out": _count(_HELD - {"input"}),
    "outputs_left_out": _count(_HELD - {"output"}),
    "buffers_left_out": _count(_HELD - {"buffer"}),
    "single_values_left_out": _count(of=lambda s: s.storage_bytes * (s.elements > 1)),
    "elements": _count(of=lambda s: s.storage_bytes // s.size),
    "four_bytes_each": _count(of=lambda s: 4 * (s.whole or s.elements)),
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def call(name: str) -> list[object]:
        return [name, int(rng.integers(5, 40)), int(rng.integers(5, 40))]

    shown = ["product", "gelu, composite", "linear", "dropped", "view", "two slices"]
    shown += ["saved, then dropped", "dropped, then saved"]
    return [
        *(Case(("value",), {"calls": [call(name)]}) for name in shown),
        Case(("value",), {"calls": [call(name) for name in SAVED]}),
    ]


saved_bytes = Task(
    id="lab04-saved_bytes",
    parts={"value": 3},
    defines=("saved_bytes",),
    probe="saved_bytes",
    cases=_cases,
    judge=by_reference(
        _count(),
        _MUTANTS,
        equal=_equal,
        write=lambda name, r, c: f"{_WRITTEN[name]} ({r} rows, {c} columns)",
    ),
    ban=Ban(allows=frozenset({"gc"})),
    mistakes={
        "dropped_too": "You count every tensor that was ever saved, but part of the graph was "
        "dropped before the function returned, along with its saved tensors. Count only those "
        "that are still held.",
        "counted_twice": "You count a tensor each time it is saved. Count each storage once.",
        "counted_twice_and_dropped": "You add up everything that passes through the hook. A "
        "storage that is saved twice counts once, and one that the graph no longer holds does not "
        "count.",
        "slices_apart": "You count two slices of one tensor as two storages. tensor.data_ptr() is "
        "where a slice begins; tensor.untyped_storage().data_ptr() is where its storage begins.",
        "shapes_apart": "You count a tensor and a view of another shape, such as x and x.T, as two "
        "storages. Tell storages apart by untyped_storage().data_ptr() alone.",
        "last_saver_only": "Several operations may save one storage. You remember only the last "
        "one, so if it was dropped, you miss that another still holds the storage.",
        "first_saver_only": "Several operations may save one storage. You remember only the first "
        "one, so if it was dropped, you miss that another still holds the storage.",
        "views_as_small": "A view keeps its whole storage alive. Count "
        "untyped_storage().nbytes(), not the view's own elements.",
        "views_left_out": "You leave out every view. Leave out only views of an nn.Parameter: a "
        "view of anything else keeps its storage alive.",
        "parameters_too": "You count parameters. They exist with or without a graph. Note that a "
        "linear layer saves a view of its weight: look at ._base.",
        "parameters_views": "You count views of parameters. A linear layer saves a view of its "
        "weight: look at ._base.",
        "parameters_themselves": "You leave out views of parameters, but count a parameter that "
        "is saved directly. It isn't a view, so its ._base is None.",
        "numbers_too": "You count Python numbers, such as the 2.0 in 2.0 * x. They aren't tensors "
        "of the program.",
        "inputs_left_out": "You leave out the inputs. An input that an operation saved counts.",
        "outputs_left_out": "You leave out the function's result. It counts if an operation saved "
        "it, as exp and tanh do.",
        "buffers_left_out": "You leave out a buffer. Leave out only parameters.",
        "single_values_left_out": "You leave out a tensor without dimensions. Python numbers "
        "don't count, but a result like x.mean() is a tensor of the program.",
        "elements": "You return elements. Return bytes.",
        "four_bytes_each": "You count 4 bytes for every element. Ask the storage for its bytes.",
    },
    stretch=True,
)
