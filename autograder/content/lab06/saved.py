"""Exercise: saved tensors go to the host in forward and come back in backward.

The host counts every figure except the device's peak. The same programs run once more here without
swapping, to find out which storages autograd saves and what the gradients are.

Long because one answer's figures decide four parts, and a mistake in one shows in others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.execute.host_memory import HostTier
from peakmem.probes.lab06 import run_program

__all__ = ["Saved", "saved_by", "swap_saved_tensors"]

_GRADIENTS, _PEAK, _ONCE, _NOTHING = (
    "gradients",
    "device peak under the budget",
    "each storage moved once, parameters not at all",
    "nothing left on the host",
)
_COUNTS = (
    "bytes_out",
    "bytes_in",
    "live_bytes",
    "within_bytes",
    "live_between_bytes",
    "stay_bytes",
    "after_bytes",
)
_BLOCKS = 12
_LIVE_AT_ONCE = (
    6  # activations: two that come back, their gradients, and what is computed from them
)
_MIB = 2**20
_SLACK_BYTES = 2**19  # for the small weights' gradients and the grader


@dataclass(frozen=True)
class Saved:
    """The storages that autograd saves in a program, in bytes."""

    #: Each storage once, without parameters.
    once: int
    #: The same, counted once for every saved tensor.
    each: int
    #: Each storage of a parameter once.
    parameters_once: int
    #: The same, counted once for every saved parameter.
    parameters_each: int


def saved_by(program: str, seed: int) -> tuple[Saved, list[Any]]:
    """Run a program without swapping; return what it saves, and its gradients."""
    # Held, so that no new storage gets an earlier one's identity.
    activations: list[torch.UntypedStorage] = []
    parameters: list[torch.UntypedStorage] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        owner = tensor if tensor._base is None else tensor._base
        kind = parameters if isinstance(owner, torch.nn.Parameter) else activations
        kind.append(tensor.untyped_storage())
        return tensor

    @contextmanager
    def record(_: HostTier) -> Iterator[None]:
        activations.clear()  # those of an earlier block
        parameters.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            yield

    gradients = run_program(program, seed, record)["gradients"]
    sizes = [_once_and_each(kind) for kind in (activations, parameters)]
    return Saved(*sizes[0], *sizes[1]), gradients


def _once_and_each(storages: list[torch.UntypedStorage]) -> tuple[int, int]:
    by_identity = {id(storage): storage.nbytes() for storage in storages}
    return sum(by_identity.values()), sum(storage.nbytes() for storage in storages)


def _cases(rng: np.random.Generator) -> list[Case]:
    def program(name: str, *parts: str) -> Case:
        return Case(parts, {"program": name, "seed": int(rng.integers(2**31))})

    # An activation takes more bytes than the budget's slack, so one too many is refused.
    rows = int(rng.integers(10_000, 10_600))
    return [
        # A low peak earns nothing if bytes that were swapped out don't come back.
        program("reused", _GRADIENTS, _PEAK, _ONCE, _NOTHING),
        program("blocks", _GRADIENTS, _ONCE, _NOTHING),
        program("views", _GRADIENTS, _PEAK, _ONCE, _NOTHING),
        program("layouts", _GRADIENTS, _ONCE, _NOTHING),
        program("twice", _GRADIENTS, _ONCE, _NOTHING),
        program("two_hosts", _ONCE),
        program("frozen", _ONCE),
        program("retain", _GRADIENTS, _NOTHING),
        program("dropped", _NOTHING),
        program("within", _NOTHING),
        Case((_PEAK,), {"blocks": _BLOCKS, "rows": rows}, budget=_budget(rows)),
    ]


def _budget(rows: int) -> Budget:
    one = _activation_bytes(rows)  # the input has the same size
    most_bytes = one + _LIVE_AT_ONCE * one + 2 * _SLACK_BYTES + _MIB
    return Budget(most_bytes, window_bytes=one, files=True)


def _activation_bytes(rows: int) -> int:
    return rows * 64 * 4


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    inputs = case.inputs
    value = answer.value if isinstance(answer.value, dict) else {}
    if "rows" in inputs:
        return {_PEAK: _peak(inputs["rows"], value, answer)}
    if any(type(value.get(name)) is not int for name in _COUNTS):
        return dict.fromkeys(case.parts, Finding(False, "The answers came back garbled."))
    saved, gradients = saved_by(inputs["program"], inputs["seed"])
    right = _gradients(inputs["program"], saved, gradients, value)
    findings = {
        _GRADIENTS: right,
        _PEAK: right if inputs["program"] == "reused" else _stays(value),
        _ONCE: _once(inputs["program"], saved, value, right=right.ok),
        _NOTHING: _nothing_left(inputs["program"], value),
    }
    return {part: findings[part] for part in case.parts}


_ABOUT = {
    "reused": "a program in which a new tensor gets a freed address",
    "blocks": "a chain of equal blocks",
    "views": "a program with transposes, slices and expanded rows",
    "layouts": "a program with permuted, integer, bool and empty tensors",
    "twice": "a program that saves one tensor several times",
    "two_hosts": "a program that ran under another host before and whose graph still exists",
    "retain": "a program that runs backward twice (retain_graph=True)",
    "frozen": "a program with a frozen parameter (requires_grad=False) and a view of it",
    "within": "a program with two forwards in one block",
    "dropped": "a graph that is dropped without a backward",
}


def _swaps(value: Mapping[str, Any]) -> Finding | None:
    """The finding on a manager that sent nothing to the host, which earns no part.

    A manager may leave small tensors on the device; the large chain shows whether it swaps.
    """
    if value["bytes_out"] == 0:
        return Finding(False, _NOTHING_WENT, ("others_stay", "swaps_nothing"))
    return None


def _gradients(
    program: str, saved: Saved, expected: list[Any], value: Mapping[str, Any]
) -> Finding:
    got = value.get("gradients")
    if isinstance(got, list) and len(got) == len(expected) and all(map(_close, expected, got)):
        return Finding(True)
    said = f"The gradients of {_ABOUT[program]} are wrong."
    return Finding(False, said, tuple(_why_wrong(program, saved, value)))


def _why_wrong(program: str, saved: Saved, value: Mapping[str, Any]) -> Iterator[str]:
    if program == "retain":
        yield "freed_at_first_use"
    # If too few bytes went out, one storage was mistaken for another.
    if value["bytes_out"] >= saved.once:
        yield "views_not_restored"
    elif program == "reused":
        yield "address_as_identity"


def _close(expected: Any, got: Any) -> bool:
    if expected is None or got is None:
        return expected is got
    return (
        isinstance(got, np.ndarray)
        and got.shape == expected.shape
        and np.allclose(got, expected, rtol=1e-9, atol=1e-12)
    )


def _stays(value: Mapping[str, Any]) -> Finding:
    """The finding on what stays on the device after forward, provided that anything left."""
    if value["bytes_out"] == 0 or value["stay_bytes"] == 0:
        return Finding(True)
    said = f"After forward, {value['stay_bytes']:,} bytes of activations were still on the device."
    return Finding(False, said, ("others_stay", "stays_on_the_device"))


def _once(program: str, saved: Saved, value: Mapping[str, Any], *, right: bool) -> Finding:
    if (nothing := _swaps(value)) is not None:
        return nothing
    out_bytes = value["bytes_out"]
    if value["after_bytes"] > 0:
        return Finding(False, "", ("goes_on_after_the_block",))
    if out_bytes > saved.once:
        said = (
            f"In {_ABOUT[program]}, autograd saves {saved.once:,} bytes in storages other than "
            f"parameters', each counted once, but {out_bytes:,} went to the host."
        )
        return Finding(False, said, tuple(_why_more(saved, value)))
    if out_bytes < saved.once and right:
        said = f"In {_ABOUT[program]}, {out_bytes:,} bytes went to the host, not {saved.once:,}."
        elsewhere = ("another_host",) if program == "two_hosts" else ()
        return Finding(False, said, ("others_stay", *elsewhere))
    if value["bytes_in"] > saved.each:
        said = (
            f"In backward of {_ABOUT[program]}, {value['bytes_in']:,} bytes came back, more than "
            f"the {saved.each:,} of a whole storage for each saved tensor."
        )
        return Finding(False, said, ("fetched_too_often",))
    return Finding(True)


def _why_more(saved: Saved, value: Mapping[str, Any]) -> Iterator[str]:
    if _frees_nothing(value):
        yield "put_and_get"
    if value["bytes_out"] - saved.once in (saved.parameters_once, saved.parameters_each):
        yield "parameters_too"
    yield "duplicates"


# Mistakes that leave entries on the host within the block. Other programs distinguish them.
_HOLDS = ("never_freed", "put_and_get", "address_as_identity", "stays_on_the_device")


def _nothing_left(program: str, value: Mapping[str, Any]) -> Finding:
    if (nothing := _swaps(value)) is not None:
        return nothing
    if value["live_between_bytes"] == 0:
        return Finding(False, "After forward, nothing was on the host.", ("swaps_nothing",))
    if value["within_bytes"] > 0:
        said = (
            f"In a block, {value['within_bytes']:,} bytes were still on the host after a forward "
            "and its backward."
        )
        return Finding(False, said, _HOLDS, follows=True)
    if value["live_bytes"] == 0:
        return Finding(True)
    end = "at the end" if program == "dropped" else "after backward"
    said = f"{value['live_bytes']:,} bytes were still on the host {end}, in {_ABOUT[program]}."
    names = ("never_freed", "put_and_get") if _frees_nothing(value) else ("never_freed",)
    return Finding(False, said, names)


def _frees_nothing(value: Mapping[str, Any]) -> bool:
    return bool(value["live_bytes"] == value["bytes_out"] > 0)


def _peak(rows: int, value: Mapping[str, Any], answer: Answer) -> Finding:
    out_bytes, corners = value.get("bytes_out"), value.get("corners")
    if type(out_bytes) is not int or not isinstance(corners, list) or len(corners) != _BLOCKS:
        return Finding(False, "The answers came back garbled.")
    activation_bytes = _activation_bytes(rows)
    rise_bytes = answer.metered("rise_bytes")
    if answer.breaks_budget(rise_bytes, _LIVE_AT_ONCE * activation_bytes + _SLACK_BYTES):
        said = (
            f"On {_BLOCKS} blocks, more than {_LIVE_AT_ONCE} activations were on the device at "
            "once."
        )
        mistake = "swaps_nothing" if out_bytes == 0 else "stays_on_the_device"
        return Finding(False, said, (mistake,))
    if not all(_is_pair_of(*pair) for pair in zip(_chain_gradients(rows), corners, strict=True)):
        # The input and each block's result are saved; fewer bytes mean that two were confused.
        mixed_up = out_bytes < (_BLOCKS + 1) * activation_bytes
        said = f"The gradients of {_BLOCKS} large blocks are wrong."
        return Finding(False, said, ("address_as_identity",) if mixed_up else ())
    if out_bytes < (_BLOCKS - 2) * activation_bytes:
        return Finding(False, doubt=_HIDDEN)
    return Finding(True)


def _chain_gradients(rows: int) -> list[float]:
    """The gradient of each weight, as one number because all values in a block are equal."""
    values = [1.0]
    for _ in range(_BLOCKS):
        values.append(float(np.tanh(values[-1])))
    gradients, upstream = [], 1.0
    for before, after in reversed(list(pairwise(values))):
        upstream *= 1 - after**2
        gradients.append(rows * before * upstream)
    return gradients[::-1]


def _is_pair_of(expected: float, pair: Any) -> bool:
    numbers = isinstance(pair, list) and [type(x) for x in pair] == [float, float]
    return numbers and np.allclose(pair, expected, rtol=1e-3)


_NOTHING_WENT = "In small programs, nothing went to the host."
_HIDDEN = (
    "The device's peak is low, but the host didn't get the saved tensors. An instructor will look "
    "at where they are."
)

swap_saved_tensors = Task(
    id="lab06-swap_saved_tensors",
    parts={_GRADIENTS: 1, _PEAK: 2, _ONCE: 1, _NOTHING: 1},
    defines=("swap_saved_tensors",),
    probe="swap_saved_tensors",
    stretch=True,
    cases=_cases,
    judge=_judge,
    trust="measured",
    ban=NO_METER_TAMPERING,
    mistakes={
        "goes_on_after_the_block": "Your hooks are still active after the block. Leave them when "
        "it ends: `with saved_tensors_hooks(pack, unpack): yield`.",
        "parameters_too": "You also send parameters to the host. They stay on the device anyway, "
        "so this only costs time. Leave nn.Parameters and their views (whose _base is one) alone.",
        "duplicates": "You send a storage to the host more than once. Several saved tensors may "
        "share a storage, as views or as the same tensor: remember where each storage is.",
        "fetched_too_often": "You bring storages back more often than backward needs them.",
        "another_host": "You treat storages on one host as if they were on another. Make a "
        "Storages(host) in each call of swap_saved_tensors.",
        "others_stay": "Tensors other than parameters stay on the device. Only nn.Parameters and "
        "their views stay; other leaves, views, integers and small tensors go to the host.",
        "swaps_nothing": "You swap nothing. Pass torch.autograd.graph.saved_tensors_hooks a pack "
        "that puts tensors on the host, and enter it with `with`.",
        "never_freed": "Bytes stay on the host. Autograd releases the object that pack returned "
        "after backward and when the graph is dropped: free the handle when that object dies, "
        "with weakref.finalize or __del__.",
        "put_and_get": "Every save puts another copy on the host, and nothing frees it, as in the "
        "lab's short first version. Let pack return Storages(host).entry(tensor) and the layout, "
        "so that each storage goes out once and is freed with its last holder.",
        "freed_at_first_use": "A second backward through the same graph gets nothing or the wrong "
        "values. Unpack may be called again: free when the object that pack returned dies, not at "
        "its first use.",
        "stays_on_the_device": "Activations stay on the device although you copied them. "
        "Something still holds them: the object that pack returns, a dict, or a cache of tensors "
        "that came back.",
        "address_as_identity": "Gradients are wrong if a new tensor gets a freed address. "
        "data_ptr() and id() identify a storage only while it is alive: after it is freed, the "
        "next storage may get its address.",
        "views_not_restored": "Gradients are wrong if views are saved. Restore the same shape, "
        "strides and offset: get the storage's bytes and call as_strided on them.",
    },
)
