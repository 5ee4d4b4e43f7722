"""Exercise: layers whose weights are gathered only while in use, the third stage of ZeRO."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from autograder.content.lab08.forbidden import NO_WRAPPERS
from autograder.content.lab08.sent import between
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab08.layers import layers_of, trained

__all__ = ["sharded_layers"]

_RIGHT, _PEAK, _TRAFFIC = "outputs and updates", "peak", "traffic"
_MIB = 2**20
_WORLD, _WIDTH, _COUNT, _STEPS = 4, 768, 12, 2
_LAYER_BYTES = 4 * (_WIDTH**2 + _WIDTH)
_PARAMETER_BYTES = _COUNT * _LAYER_BYTES
# At first all layers are whole. Later each rank has shares of weights, gradients and momentum,
# which take less. On top of these, three layers may be in use.
_MOST_BYTES = _PARAMETER_BYTES + 3 * _LAYER_BYTES
_SCRATCH_BYTES = 2 * _LAYER_BYTES + _MIB  # gloo's copies; the rest is for Python and torch
# In each step, a rank sends its shards to the others at least once, and gets their gradients.
_LEAST_SENT_BYTES = _STEPS * 2 * (_WORLD - 1) * _PARAMETER_BYTES  # by all ranks
_MOST_SENT_BYTES = _STEPS * 3 * _PARAMETER_BYTES * 1.02
_LAYER_VALUES = _WIDTH**2 + _WIDTH
_MOST_SHARD_VALUES = _LAYER_VALUES // _WORLD + 8  # with any padding
_TOLERANCE = 1e-4
_VALUES = ("sums", "no_update", "two_copies")


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(world: int, widths: tuple[int, ...]) -> Case:
        first, *rest = (int(n) for n in rng.permutation(3))
        order = [first, rest[0], first, rest[1]]  # one layer is used twice
        sizes = {"width": int(rng.choice(widths)), "count": 3, "order": order, "steps": 3}
        sizes |= {"seed": int(rng.integers(2**31)), "nested": True}
        return Case((_RIGHT,), {"world": world, **sizes, "metered": False})

    sizes = {"width": _WIDTH, "count": _COUNT, "order": list(range(_COUNT)), "steps": _STEPS}
    given = {"world": _WORLD, **sizes, "seed": int(rng.integers(2**31))}
    budget = Budget(_MOST_BYTES + _SCRATCH_BYTES)
    # On three ranks these layers need padding: their sizes aren't multiples of 3.
    return [
        case(2, (4, 5, 6, 7, 8)),
        case(3, (4, 7)),
        Case((_PEAK, _TRAFFIC), given, budget=budget),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    finding = _outputs(case.inputs, value.get("outputs"), bool(case.budget))
    if not case.budget or not finding.ok:
        return dict.fromkeys(case.parts, finding)
    peak = _peak(answer)
    if peak.ok:
        peak = _shards(value.get("shards"))
    sent = between(answer, _LEAST_SENT_BYTES, _MOST_SENT_BYTES, _too_much_sent)
    return {_PEAK: peak, _TRAFFIC: sent}


def _outputs(inputs: Mapping[str, Any], got: Any, large: bool) -> Finding:
    if _are_close(_simulated(inputs), got):
        return Finding(True)
    said = (
        f"With {inputs['world']} ranks and layers in the order {inputs['order']}, outputs of "
        f"{inputs['steps']} steps differ from a single process's."
    )
    if large:
        return Finding(False, said, _VALUES, follows=True)
    known = (name for name, of in _MUTANTS.items() if _are_close(of(inputs), got))
    return Finding(False, said, tuple(known))


def _simulated(
    inputs: Mapping[str, Any], *, copies: bool = False, times: int = 1, updated: bool = True
) -> Any:
    """Each rank's outputs, computed by one process on all samples; options are mistakes."""
    shape = (inputs["width"], inputs["count"], inputs["order"], inputs["seed"])
    layers = layers_of(*shape, nested=inputs.get("nested", False))
    if copies:
        layers = [copy.deepcopy(layer) for layer in layers]
    model = nn.Sequential(*layers)
    params = list(model.parameters()) if updated else []
    sizes = (inputs["width"], range(inputs["world"]), inputs["steps"], inputs["seed"])
    return np.asarray(trained(model, params, *sizes, times=times)).swapaxes(0, 1)


_MUTANTS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "sums": lambda inputs: _simulated(inputs, times=inputs["world"]),
    "no_update": lambda inputs: _simulated(inputs, updated=False),
    "two_copies": lambda inputs: _simulated(inputs, copies=True),
}


def _are_close(right: Any, got: Any) -> bool:
    try:
        came = np.asarray(got, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return came.shape == right.shape and bool(np.allclose(came, right, 0, _TOLERANCE))


def _peak(answer: Answer) -> Finding:
    rise = answer.metered("rise_bytes")
    if not answer.breaks_budget(rise, _MOST_BYTES):
        return Finding(True)
    took = "" if rise is None else f" Your code takes {rise / _MIB:.1f} MiB."
    said = (
        f"With {_COUNT} layers of {_LAYER_BYTES / _MIB:.1f} MiB and {_WORLD} ranks, a rank may "
        f"take {_MOST_BYTES / _MIB:.0f} MiB.{took}"
    )
    return Finding(False, said, ("layers_stay",))


def _shards(shards: Any) -> Finding:
    """No rank may store more than its share of a layer; whole layers, dealt out, take as little."""
    sizes = _sizes(shards)
    if sum(sizes) < _COUNT * _LAYER_VALUES:
        return Finding(False, "The answers came back garbled.")
    if max(sizes) <= _MOST_SHARD_VALUES:
        return _one_for_each_layer([len(of_rank) for of_rank in shards])
    said = (
        f"Of a layer with {_LAYER_VALUES:,} values, each of {_WORLD} ranks stores "
        f"{_LAYER_VALUES // _WORLD:,}. One of your parameters has {max(sizes):,}."
    )
    return Finding(False, said, ("whole_layers",))


def _one_for_each_layer(counts: Sequence[int]) -> Finding:
    others = [count for count in counts if count != _COUNT]
    if not others:
        return Finding(True)
    said = f"With {_COUNT} layers, parameters() yields {_COUNT} shards. Yours yields {others[0]}."
    return Finding(False, said, ("several_shards",))


def _sizes(shards: Any) -> list[int]:
    """Return the numbers of values in all ranks' shards, or none if one isn't a number."""
    if not (isinstance(shards, list) and all(isinstance(of_rank, list) for of_rank in shards)):
        return []
    sizes = [size for of_rank in shards for size in of_rank]
    return sizes if all(type(size) is int for size in sizes) else []


def _too_much_sent(sent: tuple[int, ...]) -> Finding:
    said = (
        f"In {_STEPS} steps on {_PARAMETER_BYTES / _MIB:.0f} MiB of parameters a rank may send "
        f"{_MOST_SENT_BYTES / _MIB:.0f} MiB. Yours sends {max(sent) / _MIB:.0f} MiB."
    )
    return Finding(False, said, ("sends_too_much",))


sharded_layers = Task(
    id="lab08-sharded_layers",
    parts={_RIGHT: 3, _PEAK: 2, _TRAFFIC: 1},
    defines=("ShardedLayers",),
    probe="sharded_layers",
    cases=_cases,
    judge=_judge,
    mistakes={
        "sums": "Gradients are summed over ranks, not averaged.",
        "no_update": "Updates have no effect: outputs still come from the first weights. "
        "parameters() must yield the shards that forward gathers, and backward must fill their "
        ".grad.",
        "two_copies": "In your code a layer that occurs twice has two shards, which drift apart. "
        "Make one shard, and use it twice.",
        "layers_stay": "Whole layers stay alive: empty each layer's own parameters when its shard "
        "is made, free gathered weights after use, and gather them again in backward.",
        "whole_layers": "Ranks store layers whole. Cut each layer into one shard for each rank.",
        "several_shards": "Make one shard per layer and rank: flatten the layer's parameters into "
        "one tensor, pad it, and cut it.",
        "sends_too_much": "Gather each layer once in forward and once in backward, and reduce its "
        "gradient once.",
    },
    ban=NO_WRAPPERS,
    trust="measured",
    ranks=True,
    stretch=True,
    seconds=60.0,
)
