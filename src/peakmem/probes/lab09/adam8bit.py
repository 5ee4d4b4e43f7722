"""Probe of lab 9's 8-bit Adam: its losses, its state, and many tensors at once."""

from __future__ import annotations

import random
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.lib.array_utils import byte_bounds
from torch import Tensor

from peakmem.probes import Namespace
from peakmem.probes.metering import with_rises
from peakmem.probes.plain_tensor import plain_tensor

__all__ = ["adam8bit_step", "large_steps", "trained"]

Step = Callable[..., Any]

_DEFAULTS = {"betas": (0.9, 0.999), "eps": 1e-8}


def adam8bit_step(
    student: Namespace,
    metered: bool = True,
    large: Mapping[str, int] | None = None,
    **sizes: Any,
) -> dict[str, Any]:
    """Train with the student's `adam8bit_step`: see `trained`; or step on `large` tensors.

    Training is repeated with a new state (`again` has its losses). Without `options`, it is also
    repeated with the defaults written out, and `defaults` tells whether the losses stay the same,
    or differ only because an answer rounds at random.

    `large` has `n_tensors`, `n` and `seed`, for `large_steps`. If `metered`, also returns
    `rise_bytes` and `numpy_rise_bytes`, including parameters and gradients.

    `repeats` tells whether two small runs of `large_steps` move parameters by the same distance.
    """
    if large is None:
        found = _trained_again(student.adam8bit_step, **sizes)
        return {**found, "repeats": _repeats(student.adam8bit_step)}
    repeats = {"repeats": _repeats(student.adam8bit_step)}
    found = with_rises(lambda: large_steps(student.adam8bit_step, **large), metered=metered)
    return {**found, **repeats}


def _repeats(step: Step) -> bool:
    first, second = (large_steps(step, n_tensors=2, n=300, seed=0)["moved"] for _ in range(2))
    return repr(first) == repr(second)  # so that NaN equals NaN


def _trained_again(step: Step, **sizes: Any) -> dict[str, Any]:
    found, again = (_seeded(step, **sizes) for _ in range(2))
    found["again"] = again["losses"]
    if sizes.get("options"):
        return found
    explicit = _seeded(step, **{**sizes, "options": _DEFAULTS})
    varies = found["losses"] != again["losses"]
    return {**found, "defaults": varies or explicit["losses"] == again["losses"]}


def _seeded(step: Step, **sizes: Any) -> dict[str, Any]:
    """Train as `trained` does, with fixed seeds in case an answer rounds at random."""
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - an answer may use the global generator
    random.seed(0)
    return trained(step, **sizes)


def trained(
    step: Step,
    width: int,
    rows: int,
    seed: int,
    steps: int,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train a network of two layers by `step(params, grads, state, lr, **options)`.

    Returns the `losses` before each step and after the last; `state_bytes`, the bytes of the
    state's tensors and arrays, including those in objects or attached to parameters; `n_values`,
    the size of each parameter; and `changed`, whether a step wrote into the gradients.
    """
    generator = torch.Generator().manual_seed(seed)
    shapes = [(width, 4 * width + 1), (4 * width + 1,), (4 * width + 1, 8)]
    params = [
        (torch.randn(shape, generator=generator) / shape[0] ** 0.5).requires_grad_()
        for shape in shapes
    ]
    x, y = torch.randn(rows, width, generator=generator), torch.randn(rows, 8, generator=generator)

    def loss() -> Tensor:
        hidden = torch.tanh(x @ params[0] + params[1])
        return torch.nn.functional.mse_loss(hidden @ params[2], y)

    state: dict[Any, Any] = {}
    losses, changed = [], False
    for _ in range(steps):
        now = loss()
        grads = list(torch.autograd.grad(now, params))
        before = [grad.clone() for grad in grads]
        with torch.no_grad():
            step(params, grads, state, 0.01, **(options or {}))
        changed |= not all(map(_same_bits, before, grads))
        losses.append(now.item())
    return {
        "losses": [*losses, loss().item()],
        "state_bytes": _state_bytes(state, params),
        "n_values": [param.numel() for param in params],
        "changed": changed,
    }


def _same_bits(one: Tensor, other: Tensor) -> bool:
    """Compare float32 tensors bit by bit; NaNs from diverged training count as equal."""
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


def _state_bytes(state: dict[Any, Any], params: Sequence[Tensor]) -> int:
    """The bytes of a state, and of anything attached to parameters instead."""
    things = [state, *(_attached(param) for param in params)]
    return sum(dict(_buffers(things, set())).values())


def _attached(tensor: Tensor) -> list[Any]:
    return [vars(tensor), tensor.grad if tensor.is_leaf else None]


def _buffers(thing: Any, seen: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the address and size of the memory behind a state's tensors and arrays.

    Tensors and arrays in collections and in attributes of objects count too, and so do bytes
    objects.
    """
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        while isinstance(thing.base, np.ndarray):
            thing = thing.base  # a view keeps the whole array alive
        low, high = byte_bounds(thing)  # not nbytes, which counts strides of 0 as memory
        yield low, high - low
    elif isinstance(thing, (bytes, bytearray, memoryview, array)):
        yield id(thing), memoryview(thing).nbytes
    elif isinstance(thing, Tensor):
        if not thing.is_meta:  # a meta tensor has a size but no memory
            storage = plain_tensor(thing).untyped_storage()
            yield storage.data_ptr(), storage.nbytes()
        yield from _buffers(_attached(thing), seen)
    else:
        for part in _parts(thing):
            yield from _buffers(part, seen)


def _parts(thing: Any) -> Iterable[Any]:
    """Return a collection's values, or the values of an object's attributes and slots."""
    if isinstance(thing, Mapping):
        return thing.values()
    if isinstance(thing, (list, tuple, set, frozenset, deque)):
        return thing
    slots = [vars(kind).get("__slots__", ()) for kind in type(thing).__mro__]
    names = chain.from_iterable([one] if isinstance(one, str) else one for one in slots)
    values = [getattr(thing, name) for name in names if hasattr(thing, name)]
    return [*values, *getattr(thing, "__dict__", {}).values()]


def large_steps(step: Step, n_tensors: int, n: int, seed: int) -> dict[str, Any]:
    """Take three steps on `n_tensors` vectors of `n` zeros; return how far each `moved` on average.

    Each step has new gradients. Each vector has an average for its small, larger and largest
    gradients, and one of each kind for the values whose first gradient was in the upper half: a
    step that doesn't remember each value's gradient gets these wrong. Also returns the state's
    `state_bytes`, and whether a step wrote into the gradients (`changed`).
    """
    params = [torch.zeros(n).requires_grad_() for _ in range(n_tensors)]
    # Unequal blocks, so that a misplaced code or step shows.
    sizes = torch.tensor([1.0, 10.0, 100.0]).repeat_interleave(256).repeat(n // 768 + 1)[:n]
    grads = [torch.empty(n) for _ in range(n_tensors)]
    state: dict[Any, Any] = {}
    changed = False
    for number, factor in enumerate(_FACTORS):
        for i, grad in enumerate(grads):
            _draw(grad, seed + number * n_tensors + i).mul_(sizes).mul_(factor * (-1) ** i)
        before = [grad.sum().item() for grad in grads]
        with torch.no_grad():
            step(params, grads, state)  # with the defaults
        changed |= before != [grad.sum().item() for grad in grads]
    moved = []
    for i, param in enumerate(params):
        upper = _draw(torch.empty(n), seed + i) > 0.6
        for part in (sizes == size for size in (1, 10, 100)):
            moved += [param.detach()[each].mean().item() for each in (part, part & upper)]
    return {"moved": moved, "state_bytes": _state_bytes(state, params), "changed": changed}


# The later gradients nearly cancel the decoded moments, so that an error in them shows.
_FACTORS = (1.0, -0.5, -0.25)


def _draw(into: Tensor, seed: int) -> Tensor:
    """Fill a tensor in place with numbers from 0.1 to 1.1."""
    return into.uniform_(0.1, 1.1, generator=torch.Generator().manual_seed(seed))
