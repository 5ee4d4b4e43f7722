"""Probe of lab 4's saved_bytes, and the functions whose graphs it counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.probes import Calls, Namespace, Outcomes, call_each

__all__ = ["saved_bytes"]


def saved_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `saved_bytes(fn, *inputs)` for functions named in `calls`: (name, rows, columns).

    The functions come from `_FUNCTIONS` in this module, and are built anew for each call.
    """

    def measure(name: str, rows: int, columns: int) -> Any:
        torch.manual_seed(rows)
        return student.saved_bytes(*_FUNCTIONS[name](rows, columns))

    return call_each(measure, calls)


def _x(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, requires_grad=True)


def _gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.T).softmax(dim=-1) @ v


def _branch_dropped(x: Tensor) -> Tensor:
    unused = torch.exp(x).sum()
    del unused
    return torch.tanh(x)


def _dropped_then_saved(x: Tensor) -> Tensor:
    unused = x**2
    del unused
    return x**3


def _saved_then_dropped(x: Tensor) -> Tensor:
    cube = x**3
    unused = x**2
    del unused
    return cube


class _Scaled(nn.Module):
    scale: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((columns,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def _with_parameter(frozen: bool) -> Callable[[int, int], tuple[Any, ...]]:
    def make(rows: int, columns: int) -> tuple[Any, ...]:
        weight = nn.Parameter(torch.randn(2 * columns, columns), requires_grad=not frozen)
        return (lambda x: F.linear(x, weight)), _x(rows, columns)

    return make


def _times_parameter(rows: int, columns: int) -> tuple[Any, ...]:
    weight = nn.Parameter(torch.randn(columns))
    return (lambda x: x * weight), _x(rows, columns)


def _with_parameters_view(rows: int, columns: int) -> tuple[Any, ...]:
    weight = nn.Parameter(torch.randn(3, columns))
    return (lambda x: x * weight[1]), _x(rows, columns)


def _with_constants_view(rows: int, columns: int) -> tuple[Any, ...]:
    table = torch.full((3, columns), 2.0)
    return (lambda x: x * table[1]), _x(rows, columns)


def _mlp(rows: int, columns: int) -> tuple[Any, ...]:
    layers = nn.Sequential(
        nn.Linear(columns, 4 * columns), nn.ReLU(), nn.Linear(4 * columns, columns)
    )
    return layers, torch.randn(rows, columns)


# name -> (rows, columns) -> the function and its inputs
_FUNCTIONS: dict[str, Callable[[int, int], tuple[Any, ...]]] = {
    "product": lambda r, c: ((lambda x: x * x), _x(r, c)),
    "gelu, composite": lambda r, c: (_gelu, _x(r, c)),
    "gelu, fused": lambda r, c: ((lambda x: F.gelu(x, approximate="tanh")), _x(r, c)),
    "linear": _with_parameter(frozen=False),
    "frozen linear": _with_parameter(frozen=True),
    "parameter": _times_parameter,
    "parameter's view": _with_parameters_view,
    "buffer": lambda r, c: (_Scaled(c), _x(r, c)),
    "constant's view": _with_constants_view,
    "result's view": lambda r, c: ((lambda x: (x + 1)[:, :2] ** 2), _x(r, c)),
    "view": lambda r, c: ((lambda x: x[:, :1] ** 2), _x(r, c)),
    "two slices": lambda r, c: ((lambda x: x[:, :2] ** 2 + x[:, 2:4] ** 2), _x(r, c)),
    "two shapes": lambda r, c: ((lambda x: x @ x.T), _x(r, c)),
    "expanded": lambda r, c: ((lambda x, y: x * y.expand(r, c)), _x(r, c), _x(1, c)),
    "number": lambda r, c: ((lambda x: torch.exp(2.5 * x) / 3.0), _x(r, c)),
    "dropped": lambda r, c: (_branch_dropped, _x(r, c)),
    "dropped, then saved": lambda r, c: (_dropped_then_saved, _x(r, c)),
    "saved, then dropped": lambda r, c: (_saved_then_dropped, _x(r, c)),
    "mlp": _mlp,
    "layer_norm": lambda r, c: ((lambda x: F.layer_norm(x, (c,))), _x(r, c)),
    "attention": lambda r, c: (_attention, _x(r, c), _x(r, c), _x(r, c)),
    "embedding": lambda r, c: (nn.Embedding(50, c), torch.arange(r) % 50),
    "mask": lambda r, c: ((lambda x: x.masked_fill(x < 0, 0.0)), _x(r, c)),
    "double": lambda r, c: (torch.sin, _x(r, c).detach().double().requires_grad_()),
    "two outputs": lambda r, c: ((lambda x: (torch.tanh(x), torch.exp(x))), _x(r, c)),
    "one value": lambda r, c: ((lambda x: torch.exp(x.mean())), _x(r, c)),
    "no graph": lambda r, c: (torch.exp, torch.randn(r, c)),
}
