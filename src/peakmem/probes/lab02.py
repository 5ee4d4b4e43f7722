"""Probes of lab 2, where the memory goes: each calls one function on many inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peakmem.probes import Namespace, call_each

__all__ = ["gpt_parameters", "weight_bytes"]

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
