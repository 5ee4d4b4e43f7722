"""Probes of lab 1, how numbers are stored: each calls one function on a list of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peakmem.probes import Namespace, call_each

__all__ = ["decode_fp32", "encode_fp32", "to_bf16"]

Calls = Sequence[Sequence[Any]]
Outcomes = list[tuple[Any, ...]]


def decode_fp32(student: Namespace, calls: Calls) -> Outcomes:
    """Call `decode_fp32(bits)` for each of `calls`; outcomes as `call_each` gives them."""
    return call_each(student.decode_fp32, calls)


def encode_fp32(student: Namespace, calls: Calls) -> Outcomes:
    """Call `encode_fp32(x)` for each of `calls`."""
    return call_each(student.encode_fp32, calls)


def to_bf16(student: Namespace, calls: Calls) -> Outcomes:
    """Call `to_bf16(x)` for each of `calls`; x is a float32 array."""
    return call_each(student.to_bf16, calls)
