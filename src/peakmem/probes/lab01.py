"""Probes of lab 1, how numbers are stored: each calls one function on many inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peakmem.probes import Calls, Namespace, Outcomes, call_each, calling
from peakmem.probes.conversions import refused
from peakmem.probes.leak import leaking

__all__ = [
    "Float16Adder",
    "careful_sum",
    "decode_e4m3",
    "decode_fp32",
    "encode_fp32",
    "find_the_leak",
    "fixed_point_value",
    "format_limits",
    "halves_bound",
    "halves_offset",
    "integer_value",
    "keep_halves",
    "stall_value",
    "to_bf16",
    "update_lost",
]


integer_value = calling("integer_value")  # (bits, width, encoding)
fixed_point_value = calling("fixed_point_value")  # (bits, width, fraction_bits)


def decode_fp32(student: Namespace, calls: Calls) -> Outcomes:
    """Call `decode_fp32(bits)` for each of `calls`."""
    with refused():
        return call_each(student.decode_fp32, calls)


def encode_fp32(student: Namespace, calls: Calls) -> Outcomes:
    """Call `encode_fp32(x)` for each of `calls`."""
    with refused():
        return call_each(student.encode_fp32, calls)


format_limits = calling("format_limits")  # (exponent_bits, mantissa_bits)


def to_bf16(student: Namespace, calls: Calls) -> Outcomes:
    """Call `to_bf16(x)` for each of `calls`; x is a float32 array.

    Integer arrays whose values fit in 16 bits are returned as uint16, because most answers are
    int64, which would take four times as many bytes to send and store.
    """
    return [tuple(map(_in_16_bits, outcome)) for outcome in call_each(student.to_bf16, calls)]


def _in_16_bits(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or value.size == 0:
        return value
    return value.astype(np.uint16) if value.min() >= 0 and value.max() < 2**16 else value


def decode_e4m3(student: Namespace, calls: Calls) -> Outcomes:
    """Call `decode_e4m3(bits)` for each of `calls`."""
    with refused():
        return call_each(student.decode_e4m3, calls)


stall_value = calling("stall_value")  # (step, exponent_bits, mantissa_bits)
update_lost = calling("update_lost")  # (param, update, exponent_bits, mantissa_bits)


def careful_sum(student: Namespace, arrays: Sequence[NDArray[np.float16]]) -> list[dict[str, Any]]:
    """Let the student sum each array; return the outcome and all additions.

    There is one dict per array: `outcome`, as `call_each` gives it, and `additions`, a float16
    array of shape (number of calls, 2) with the arguments of each call of `add`.
    """
    function = student.careful_sum
    answers = []
    for x in arrays:
        add = Float16Adder(x)
        (outcome,) = call_each(lambda array, add=add: function(array, add), [(x,)])
        answers.append({"outcome": outcome, "additions": add.log()})
    return answers


class Float16Adder:
    """`add(a, b)` for one sum: adds two numbers in float16, and logs the addition.

    Each argument must be an element of `x`, a sum that this adder returned, the negative of one of
    these, or 0. Raises ValueError for any other argument. A sum is returned as a Python float.

    >>> add = Float16Adder(np.array([2048, 1], np.float16))
    >>> add(2048, 1), add.calls
    (2048.0, 1)
    """

    def __init__(self, x: NDArray[np.float16]) -> None:
        self._known = {0.0, *np.abs(x).astype(float).tolist()}
        self._pairs: list[tuple[float, float]] = []

    def __call__(self, a: float, b: float) -> float:
        pair = (float(a), float(b))
        for argument in pair:
            if abs(argument) not in self._known:
                raise ValueError(
                    f"add cannot take {argument!r}: it is not an element of x, not a sum that add "
                    "returned, not the negative of one, and not 0"
                )
        exact = pair[0] + pair[1]  # exact: float64 holds any sum of two float16 numbers
        rounds_to_inf = abs(exact) >= 65520
        total = math.copysign(math.inf, exact) if rounds_to_inf else float(np.float16(exact))
        self._pairs.append(pair)
        self._known.add(abs(total))
        return total

    @property
    def calls(self) -> int:
        """Number of additions so far."""
        return len(self._pairs)

    def log(self) -> NDArray[np.float16]:
        """Return the arguments of all additions, of shape (calls, 2)."""
        return np.array(self._pairs, np.float16).reshape(-1, 2)


def keep_halves(
    function: Callable[..., Any], *, count: int, numbers: int, seed: int
) -> dict[str, Any]:
    """Return a report on the tensors of `function(load, count)`, while all are alive.

    Tensor i has `numbers` float32 values of both signs, at most $2^{19}$, scattered between 0.5
    and 8. They are the same for the same seed, and computed from integers, so that a judge can
    compute them without torch.
    """
    import torch  # late, so that this lab's other probes don't load torch

    loaded: list[int] = []

    def load(i: int) -> torch.Tensor:
        loaded.append(i)
        bits = torch.arange(numbers, dtype=torch.int32)  # in place, without temporaries
        bits.mul_(3137).bitwise_and_(2**19 - 1).mul_(4093).add_(halves_offset(seed, i))
        values = bits.bitwise_and_(2**25 - 1).add_(0x3F000000).view(torch.float32)
        values[1::2].neg_()
        return values

    kept = list(function(load, count))
    return {
        "tensors": ", ".join(map(_kind, kept)),
        "values": "; ".join(" ".join(map(str, np.asarray(half)[:5].tolist())) for half in kept),
        "sums": [int(np.asarray(half).sum(dtype=np.int64)) for half in kept],
        "loaded": loaded,
    }


find_the_leak = leaking(keep_halves, "upper_halves", count=2, numbers=64)


def _kind(half: Any) -> str:
    """The type and shape of a tensor or an array, or the type of anything else."""
    if not hasattr(half, "dtype"):
        return type(half).__name__
    return f"{str(half.dtype).removeprefix('torch.')}{list(half.shape)}"


def halves_offset(seed: int, i: int) -> int:
    """Return a number below $2^{25}$ that distinguishes tensor i of this seed in `keep_halves`."""
    return (1000 * seed + i) * 12_820_317 % 2**25


def halves_bound(sizes: Mapping[str, int]) -> int:
    """Return the bytes that `upper_halves` may take: all halves, and three whole tensors."""
    return (2 * sizes["count"] + 3 * 4) * sizes["numbers"]
