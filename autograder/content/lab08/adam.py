"""Exercise: Adam with its moments sharded over ranks, the first stage of ZeRO.

Long because every mistake is simulated, to tell which one a student made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from autograder.content.lab08.forbidden import NO_WRAPPERS
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab08.adam import parameters, updated

__all__ = ["Adam", "sharded_adam"]

_EQUAL, _STATE, _ALIKE = "equals Adam", "state", "ranks equal"
_MIB = 2**20
_WORLD = 4
_SHAPES = [[7], [300, 300], [2048, 1024], [513]]  # one is larger than all others combined
_PARAMETERS = sum(math.prod(shape) for shape in _SHAPES)
_MOST_BYTES = 8 * _PARAMETERS // _WORLD + 1024 * len(_SHAPES)
# In each step every updated value must reach the other ranks. Ranks that send less keep moments of
# all values, perhaps in fewer bits.
_LEAST_SENT_BYTES_A_STEP = (_WORLD - 1) * 4 * _PARAMETERS  # by all ranks together
_SLACK_BYTES = _MIB  # held by Python and torch themselves, and counted by the kernel too
# Generous, since steps aren't limited; a budget stops a rank from storing its state elsewhere.
_BUDGET = Budget(12 * 4 * _PARAMETERS)
_TOLERANCE = 1e-5
_GAIN = 1e-8  # makes tensors so small that default eps and a step's last digits matter
_TOLERANCE_BY_DEFAULT = 1e-7  # for steps of 1e-3: powers of 0.999 in float32 have a smaller error


class Adam:
    """Adam as published by Kingma and Ba, in float64; options turn it into the mistakes."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        corrects: bool = True,
        eps_inside: bool = False,
        counts_all: bool = False,
        none_is_zero: bool = False,
    ) -> None:
        self._params, self._lr, self._betas, self._eps = list(params), lr, betas, eps
        self._corrects, self._eps_inside = corrects, eps_inside
        self._counts_all, self._none_is_zero = counts_all, none_is_zero
        self._steps = [0] * len(self._params)
        self._m = [torch.zeros_like(p, dtype=torch.float64) for p in self._params]
        self._v = [torch.zeros_like(p, dtype=torch.float64) for p in self._params]

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters that have a gradient."""
        for number, p in enumerate(self._params):
            if p.grad is None and self._none_is_zero:
                p.grad = torch.zeros_like(p)
            self._steps[number] += self._counts_all or p.grad is not None
            if p.grad is not None:
                p.add_(self._change(number, p.grad.double()), alpha=-self._lr)

    def _change(self, number: int, g: Tensor) -> Tensor:
        (b1, b2), t = self._betas, self._steps[number]
        m, v = self._m[number], self._v[number]
        m.mul_(b1).add_(g, alpha=1 - b1)
        v.mul_(b2).add_(g * g, alpha=1 - b2)
        of_m, of_v = (1 - b1**t, 1 - b2**t) if self._corrects else (1.0, 1.0)
        if self._eps_inside:
            return (m / of_m) / (v / of_v + self._eps).sqrt()
        return (m / of_m) / ((v / of_v).sqrt() + self._eps)


def _adam(**options: Any) -> Any:
    return lambda params, **given: Adam(params, **given, **options)


_MUTANTS: dict[str, Any] = {
    "not_corrected": _adam(corrects=False),
    "eps_inside": _adam(eps_inside=True),
    "steps_counted_for_all": _adam(counts_all=True),
    "none_is_zero": _adam(none_is_zero=True),
    "options_ignored": lambda params, **given: Adam(params),
    "betas_swapped": lambda params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8: Adam(
        params, lr, (betas[1], betas[0]), eps
    ),
    "unchanged": lambda params, **given: Adam(params, 0.0),
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(world: int, **more: Any) -> Case:
        small = [[int(n) for n in rng.integers(1, 6, size)] for size in (0, 1, 2, 3)]
        large = [int(rng.integers(15, 20)), int(rng.integers(15, 20))]
        shapes = [*small, large, [world], small[2]]  # two have the same shape
        late, twice = (int(n) for n in rng.choice(len(shapes), 2, replace=False))
        options = {
            "lr": float(rng.uniform(0.01, 0.1)),
            "betas": (float(rng.uniform(0.5, 0.8)), float(rng.uniform(0.9, 0.95))),
            "eps": float(rng.uniform(0.01, 0.1)),
        }
        missing = [[late], [twice], [twice], []]
        inputs = {"world": world, "shapes": shapes, "missing": missing, "options": options}
        seed = int(rng.integers(2**31))
        return Case((_EQUAL, _ALIKE), {**inputs, "seed": seed, "metered": False, **more})

    options = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8}
    # A random number of steps, so that no rank can free its moments just before the last check.
    steps: list[list[int]] = [[] for _ in range(int(rng.integers(2, 9)))]
    large = {"world": _WORLD, "shapes": _SHAPES, "missing": steps, "options": options}
    given = {**large, "seed": int(rng.integers(2**31)), "large": True}
    by_default = case(3, options={}, gain=_GAIN)
    return [case(2), by_default, Case((_STATE,), given, budget=_BUDGET)]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    ranks, inputs = value.get("ranks"), case.inputs
    if not _has_form(ranks, inputs["world"], len(inputs["shapes"])):
        return dict.fromkeys(case.parts, Finding(False, "The answers came back garbled."))
    if case.budget:
        return {_STATE: _state(answer, inputs, ranks)}
    return {_EQUAL: _equal(inputs, ranks), _ALIKE: _alike(ranks)}


def _has_form(ranks: Any, world: int, count: int) -> TypeGuard[list[dict[str, Any]]]:
    return (
        isinstance(ranks, list)
        and len(ranks) == world
        and all(
            isinstance(rank, dict)
            and isinstance(rank.get("params"), list)
            and len(rank["params"]) == count
            for rank in ranks
        )
    )


def _equal(inputs: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> Finding:
    shapes, missing = inputs["shapes"], inputs["missing"]
    given = (shapes, missing, inputs["options"], inputs["seed"], inputs.get("gain", 1.0))
    tolerance = _TOLERANCE if inputs["options"] else _TOLERANCE_BY_DEFAULT

    def differs(optimizer: Any) -> str:
        _, params = updated(optimizer, *given)
        for number, rank in enumerate(ranks):
            for shape, right, got in zip(shapes, params, rank["params"], strict=True):
                if not _are_close(right.detach().numpy(), got, tolerance):
                    return f"the tensor of shape {shape} of rank {number}"
        return ""

    about = f"With {len(ranks)} ranks and {len(missing)} steps,"
    if not inputs["options"]:
        about = f"With {len(ranks)} ranks, {len(missing)} steps and the default lr, betas and eps,"
    if where := differs(Adam):
        mutants = {**_MUTANTS, "state_shared": _continued(inputs)}
        known = [name for name, mutant in mutants.items() if not differs(mutant)]
        said = f"{about} {where} differs from Adam's result."
        return Finding(False, said, (*known, *_own_share_only(given, ranks, tolerance)))
    if any(rank.get("changed") != [] for rank in ranks):
        return Finding(False, f"{about} step() changed gradients.", ("gradients_changed",))
    if any(rank.get("left") is not False for rank in ranks):
        return Finding(False, f"{about} zero_grad() left gradients.", ("gradients_left",))
    if any(rank.get("records") is not True for rank in ranks):
        said = f"{about} torch no longer records gradients. Use `with torch.no_grad():`."
        return Finding(False, said)
    return Finding(True)


def _continued(inputs: Mapping[str, Any]) -> Any:
    """Adam that continues with the moments of the optimizer that took the previous step."""

    def make(params: Iterable[nn.Parameter], **options: Any) -> Adam:
        sizes = (inputs["shapes"], inputs["missing"][:1], inputs["options"], inputs["seed"] + 1)
        first, _ = updated(Adam, *sizes, inputs.get("gain", 1.0))
        made = Adam(params, **options)
        made._m, made._v, made._steps = first._m, first._v, first._steps
        return made

    return make


def _own_share_only(
    given: Any, ranks: Sequence[Mapping[str, Any]], tolerance: float
) -> Iterator[str]:
    """Each value is right in some rank, and unchanged in the others."""
    _, params = updated(Adam, *given)
    begun = parameters(given[0], given[3], given[4])
    for number, (right, before) in enumerate(zip(params, begun, strict=True)):
        came = [rank["params"][number] for rank in ranks]
        if not all(isinstance(c, np.ndarray) and c.shape == tuple(right.shape) for c in came):
            return
        new, old = right.detach().numpy(), before.detach().numpy()
        is_new = [np.isclose(c, new, 0, tolerance) for c in came]
        is_old = [np.isclose(c, old, 0, tolerance) for c in came]
        if not (np.any(is_new, axis=0).all() and np.logical_or(is_new, is_old).all()):
            return
    yield "own_share_only"


def _alike(ranks: Sequence[Mapping[str, Any]]) -> Finding:
    first, *others = (rank["params"] for rank in ranks)
    for number, params in enumerate(others, 1):
        for of_first, of_other in zip(first, params, strict=True):
            alike = (
                isinstance(of_first, np.ndarray)
                and isinstance(of_other, np.ndarray)
                and of_first.tobytes() == of_other.tobytes()
            )
            if not alike:
                said = f"With {len(ranks)} ranks, ranks 0 and {number} differ after some steps."
                return Finding(False, said, ("ranks_differ", "own_share_only"))
    return Finding(True)


def _state(
    answer: Answer, inputs: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]
) -> Finding:
    if not any(_makes(ranks, slip, inputs) for slip in _KEEP_MOMENTS):
        said = "On large tensors, with zero_grad() between steps, the results differ from Adam's."
        return Finding(False, said, tuple(_of_sums(ranks, inputs)))
    held = answer.rank_held_bytes or _told(answer)
    if not held:
        return Finding(False, doubt=_UNKNOWN)
    if max(held) <= _MOST_BYTES + _SLACK_BYTES and answer.memory != "refused":
        sent = answer.rank_sent_bytes  # empty where nothing counts them from outside
        least_bytes = len(inputs["missing"]) * _LEAST_SENT_BYTES_A_STEP
        if len(sent) == _WORLD and sum(sent) < least_bytes:
            return Finding(False, doubt=_ALONE)
        return Finding(True)
    said = (
        f"With {_PARAMETERS:,} parameters and {_WORLD} ranks, each rank may keep "
        f"{_MOST_BYTES / _MIB:.1f} MiB once parameters and gradients are freed. Yours keep "
        f"{', '.join(f'{each / _MIB:.1f}' for each in sorted(held))} MiB."
    )
    return Finding(False, said, tuple(_of_state(held)))


def _of_sums(ranks: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]) -> Iterator[str]:
    if _makes(ranks, "unchanged", inputs):
        yield "unchanged"
    if any(rank["params"] != ranks[0]["params"] for rank in ranks):
        yield "own_share_only"


# Adam, and Adam with a mistake that another part judges.
_KEEP_MOMENTS = ("", *(slip for slip in _MUTANTS if slip != "unchanged"))


def _makes(ranks: Sequence[Mapping[str, Any]], slip: str, inputs: Mapping[str, Any]) -> bool:
    """Tell whether all tensors' sums are Adam's. For most mistakes the first tensor shows it."""
    for count in (1, len(inputs["shapes"])):
        given = inputs["shapes"][:count], inputs["missing"], inputs["options"], inputs["seed"]
        right = _sums(slip, json.dumps(given))
        for rank in ranks:
            for (sum_, rounding), got in zip(right, rank["params"][:count], strict=True):
                is_close = partial(math.isclose, sum_, rel_tol=1e-3, abs_tol=rounding)
                if not (isinstance(got, float) and is_close(got)):
                    return False
    return True


@lru_cache(maxsize=64)
def _sums(slip: str, given: str) -> list[tuple[float, float]]:
    """The sums of the tensors after Adam's updates, with or without a mistake, and their rounding.

    A sum that nearly cancels keeps the rounding errors of its terms: a unit in each last place.
    """
    _, params = updated(_MUTANTS.get(slip, Adam), *json.loads(given))
    return [(p.sum().item(), 2.0**-23 * p.abs().sum().item()) for p in params]


def _told(answer: Answer) -> tuple[int, ...]:
    """The ranks' own figures, if no grader observes them from outside."""
    told = answer.value.get("held_bytes") if isinstance(answer.value, dict) else None
    if answer.memory or not isinstance(told, list) or len(told) != _WORLD:
        return ()
    return tuple(told) if all(type(each) is int for each in told) else ()


def _of_state(held: Sequence[int]) -> Iterator[str]:
    if min(held) < 0.5 * max(held):
        yield "whole_tensors"
    elif min(held) >= 0.9 * 8 * _PARAMETERS:
        yield "replicated"
    else:
        yield "more_than_moments"


def _are_close(expected: Any, got: Any, tolerance: float) -> bool:
    if not isinstance(got, np.ndarray) or got.dtype.kind != "f" or got.shape != expected.shape:
        return False
    size = float(np.abs(expected).max(initial=1.0))
    return bool(np.allclose(got, expected, 0, tolerance * size))


_ALONE = (
    "Your ranks sent fewer bytes than the updated parameters take, so each updated more than its "
    "share. An instructor will look at this."
)
_UNKNOWN = (
    "This machine doesn't report how much memory your ranks hold. An instructor will look at this."
)

sharded_adam = Task(
    id="lab08-sharded_adam",
    parts={_EQUAL: 2, _STATE: 2, _ALIKE: 1},
    defines=("ShardedAdam",),
    probe="sharded_adam",
    cases=_cases,
    judge=_judge,
    mistakes={
        "not_corrected": "You don't correct the moments: divide them by 1 - beta**t.",
        "eps_inside": "Add eps to the root, not to the value under it.",
        "steps_counted_for_all": "A step without a gradient doesn't count for a tensor: each "
        "tensor has its own t.",
        "none_is_zero": "Leave a tensor whose grad is None alone: None isn't a gradient of zeros.",
        "options_ignored": "You ignore lr, betas and eps.",
        "state_shared": "Another ShardedAdam's moments end up in yours. Keep moments in self, not "
        "on the class or in a global.",
        "gradients_changed": "step() writes into p.grad. Compute with copies.",
        "betas_swapped": "The first beta is for the mean, the second for the squares.",
        "unchanged": "step() changes no parameter. Write into the given tensors.",
        "gradients_left": "zero_grad() leaves gradients: set each p.grad to None, or to zeros.",
        "ranks_differ": "Let one rank compute each value and send it to all others, so that all "
        "ranks have the same bits.",
        "own_share_only": "Each rank has updated only its own share. Gather the shares.",
        "replicated": "Each rank keeps all moments. Keep only your share's moments: numel / world "
        "of each tensor, rounded up.",
        "whole_tensors": "You assign whole tensors to ranks, so the largest stays in one piece. "
        "Cut every tensor.",
        "more_than_moments": "A rank keeps more than its share of two moments, perhaps a copy of "
        "parameters or gradients.",
    },
    ban=NO_WRAPPERS,
    trust="measured",
    ranks=True,
    seconds=60.0,
)
