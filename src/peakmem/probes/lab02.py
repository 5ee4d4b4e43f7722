"""Probes of lab 2, where the memory goes: each calls one function on many inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from peakmem.probes import Namespace, call_each

__all__ = [
    "activation_elements",
    "boundary_bytes",
    "gpt_parameters",
    "inconsistent_rows",
    "largest_batch",
    "layer_activation_bytes",
    "lifetimes",
    "live_bytes",
    "predict_training",
    "weight_bytes",
]

Calls = Sequence[Sequence[Any]]
Outcomes = list[tuple[Any, ...]]


def weight_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `weight_bytes(n_params, dtype)` for each of `calls`, as `call_each` does."""
    return call_each(student.weight_bytes, calls)


def gpt_parameters(student: Namespace, calls: Calls) -> Outcomes:
    """Call `gpt_parameters(n_layers, d_model, vocab, context, tied)` for each of `calls`.

    The last three may be left out.
    """
    return call_each(student.gpt_parameters, calls)


def inconsistent_rows(student: Namespace, calls: Calls) -> Outcomes:
    """Call `inconsistent_rows(table)` for each of `calls`.

    The names come back as a list, whatever they were gathered in. A text is left as it is: it is
    one name, not many.
    """
    function = student.inconsistent_rows

    def names(table: Sequence[Mapping[str, Any]]) -> Any:
        found = function(table)
        return found if isinstance(found, str) else list(found)

    return call_each(names, calls)


def activation_elements(student: Namespace, calls: Calls) -> Outcomes:
    """Call `activation_elements(op, **dims)` for each (op, dims) of `calls`."""
    function = student.activation_elements
    return call_each(lambda op, dims: function(op, **dims), calls)


def boundary_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `boundary_bytes(n_layers, tokens, d_model, bytes_per_element)` for each of `calls`."""
    return call_each(student.boundary_bytes, calls)


def layer_activation_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `layer_activation_bytes(seq, batch, d_model, n_heads, attention)` for each of `calls`.

    The last one may be left out.
    """
    return call_each(student.layer_activation_bytes, calls)


def lifetimes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `lifetimes(graph, training)` for each of `calls`."""
    return call_each(student.lifetimes, calls)


def live_bytes(student: Namespace, calls: Calls) -> Outcomes:
    """Call `live_bytes(tensors, n_steps)` for each of `calls`."""
    return call_each(student.live_bytes, calls)


def largest_batch(student: Namespace, calls: Calls) -> Outcomes:
    """Call `largest_batch(seq, shape, budget_bytes)` for each of `calls`.

    The shape travels as a dict, and the student gets an object with its items as attributes.
    """
    function = student.largest_batch
    return call_each(
        lambda seq, shape, budget_bytes: function(seq, SimpleNamespace(**shape), budget_bytes),
        calls,
    )


def predict_training(student: Namespace, calls: Calls) -> Outcomes:
    """Call `predict_training(shape, batch, seq)` for each of `calls`.

    The shape travels as a dict, and the student gets an object with its items as attributes.
    """
    function = student.predict_training
    return call_each(
        lambda shape, batch, seq: function(SimpleNamespace(**shape), batch, seq), calls
    )
