"""Exercise: swap, recompute or keep, by the time each costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["worth_swapping"]

Stage = Mapping[str, Any]


def _recompute_time(stage: Stage, flops: float) -> float:
    return float(stage["forward_flops"] / flops)


def _decide(
    swap: Callable[[Stage, float, float], float],
    recompute: Callable[[Stage, float], float] = _recompute_time,
) -> Callable[..., str]:
    """Decide by the given costs of swapping and of recomputing."""

    def decide(stage: Stage, link: float, flops: float) -> str:
        if stage["saved_bytes"] == 0:
            return "keep"
        swaps = swap(stage, link, flops) <= recompute(stage, flops)
        return "swap" if swaps else "recompute"

    return decide


def _swap_time(stage: Stage, link: float, flops: float) -> float:
    copies, hidden = 2 * stage["saved_bytes"] / link, stage["hidden_flops"] / flops
    return float(max(0.0, copies - hidden))


_worth = _decide(_swap_time)


def _nearly_equal(stage: Stage, link: float, flops: float) -> str:
    near = _swap_time(stage, link, flops) <= 1.01 * stage["forward_flops"] / flops
    return "swap" if near and stage["saved_bytes"] else _worth(stage, link, flops)


def _tie_recomputes(stage: Stage, link: float, flops: float) -> str:
    equal = _swap_time(stage, link, flops) == stage["forward_flops"] / flops
    return "recompute" if equal and stage["saved_bytes"] else _worth(stage, link, flops)


def _tie_recomputes_unless_free(stage: Stage, link: float, flops: float) -> str:
    free = _swap_time(stage, link, flops) == 0
    return _worth(stage, link, flops) if free else _tie_recomputes(stage, link, flops)


def _without_keep(stage: Stage, link: float, flops: float) -> str:
    return "swap" if stage["saved_bytes"] == 0 else _worth(stage, link, flops)


def _swapped_answers(stage: Stage, link: float, flops: float) -> str:
    right = _worth(stage, link, flops)
    return {"swap": "recompute", "recompute": "swap", "keep": "keep"}[right]


def _keep_where_free(stage: Stage, link: float, flops: float) -> str:
    free = _swap_time(stage, link, flops) == 0
    return "keep" if free else _worth(stage, link, flops)


_MUTANTS: dict[str, Callable[..., str]] = {
    "out_only": _decide(
        lambda s, link, f: max(0.0, s["saved_bytes"] / link - s["hidden_flops"] / f)
    ),
    "nothing_hidden": _decide(lambda s, link, f: 2 * s["saved_bytes"] / link),
    "negative_time": lambda s, link, f: _negative(s, link, f),
    "hides_behind_forward": _decide(
        lambda s, link, f: max(0.0, 2 * s["saved_bytes"] / link - s["forward_flops"] / f)
    ),
    "bits": _decide(
        lambda s, link, f: max(0.0, 16 * s["saved_bytes"] / link - s["hidden_flops"] / f)
    ),
    "hidden_in_bytes": _decide(
        lambda s, link, f: max(0.0, 2 * s["saved_bytes"] / link - s["hidden_flops"] / link)
    ),
    "whole_seconds": _decide(
        lambda s, link, f: max(0.0, 2 * s["saved_bytes"] // link - s["hidden_flops"] // f),
        lambda s, f: s["forward_flops"] // f,
    ),
    "hides_twice": _decide(
        lambda s, link, f: 2 * max(0.0, s["saved_bytes"] / link - s["hidden_flops"] / f)
    ),
    "nearly_equal": _nearly_equal,
    "tie_recomputes": _tie_recomputes,
    "tie_recomputes_unless_free": _tie_recomputes_unless_free,
    "never_keeps": _without_keep,
    "keep_where_free": _keep_where_free,
    "answers_exchanged": _swapped_answers,
    "always_swap": lambda s, link, f: "swap" if s["saved_bytes"] else "keep",
    "always_recompute": lambda s, link, f: "recompute" if s["saved_bytes"] else "keep",
}


def _negative(stage: Stage, link: float, flops: float) -> str:
    """Compares absolute values instead of taking the max, so a negative time looks long."""
    if stage["saved_bytes"] == 0:
        return "keep"
    swap = abs(2 * stage["saved_bytes"] / link - stage["hidden_flops"] / flops)
    return "swap" if swap <= stage["forward_flops"] / flops else "recompute"


def _stage(saved_bytes: int, forward_flops: int, hidden_flops: int) -> dict[str, int]:
    return {
        "saved_bytes": saved_bytes,
        "forward_flops": forward_flops,
        "hidden_flops": hidden_flops,
    }


# Bytes per second in one direction: PCIe 3, 4 and 5 with 16 lanes, NVLink-C2C.
_LINKS = (16e9, 32e9, 64e9, 450e9)


def _drawn(rng: np.random.Generator) -> list[Any]:
    """A stage whose answer depends on every number and isn't close to break-even."""
    link = float(rng.choice(_LINKS))
    flops = float(rng.choice([60e12, 125e12, 312e12, 989e12]))
    saved = int(2.0 ** rng.uniform(8, 32))
    copies = 2 * saved / link
    hidden = copies * rng.choice([0.0, 0.3, 0.45, 0.6, 0.9, 1.5, 3.0])
    extra = max(0.0, copies - hidden)
    recompute = copies * rng.choice([0.04, 0.15, 0.3, 0.6, 0.8, 1.2, 2.0])
    if abs(recompute - extra) < 0.02 * copies:
        recompute *= 1.1
    return [_stage(saved, int(recompute * flops), int(hidden * flops)), link, flops]


def _cases(rng: np.random.Generator) -> list[Case]:
    # With powers of two, break-even is exact in any order of operations.
    ties = [
        [_stage(2**30, 2**42, 3 * 2**42), 2.0**33, 2.0**44],  # 0.25 - 0.75 < 0, against 0.25
        [_stage(2**30, 2**42, 0), 2.0**33, 2.0**44],  # 0.25 against 0.25
        [_stage(2**30, 2**43, 2**43), 2.0**31, 2.0**43],  # 1 - 1 against 1
        [_stage(2**30, 2**43, 2**42), 2.0**31, 2.0**43],  # 1 - 0.5 against 1
        [_stage(2**31, 2**43, 2**43), 2.0**31, 2.0**43],  # 2 - 1 against 1
        [_stage(2**20, 0, 2**44), 2.0**34, 2.0**44],  # all hidden, nothing to recompute
        [_stage(2**20, 0, 0), 2.0**34, 2.0**44],  # nothing hidden, nothing to recompute
        [_stage(2**30, 2**42, 0), 2.0**32, 2.0**44],  # 0.5 against 0.25
        [_stage(2**30, 2**42 - 2**24, 0), 2.0**33, 2.0**44],  # 0.25 against a little less
        [_stage(2**8, 2**19 - 2**9, 0), 2.0**34, 2.0**44],  # 30 ns against a little less
        [_stage(2**33, 2**42, 0), 2.0**33, 2.0**44],  # 2 against 0.25, also in whole seconds
    ]
    # The second of these on a device twice as fast, and with twice the bytes.
    ties += [
        [_stage(2**30, 2**42, 0), 2.0**33, 2.0**45],
        [_stage(2**31, 2**42, 0), 2.0**33, 2.0**44],
    ]
    nothing = [_stage(0, 2**40, 0), _stage(0, 0, 0), _stage(0, 2**44, 2**44)]
    return [
        Case(("value",), {"calls": [_drawn(rng) for _ in range(60)]}),
        # With drawn stages, to rule out a mistake that the others happen to look like.
        Case(
            ("value",),
            {"calls": ties + [_drawn(rng) for _ in range(20)]},
            fixed=True,
            about="the two costs are equal, nearly equal or 0. Compare them exactly, and answer "
            "'keep' only if saved_bytes is 0.",
        ),
        Case(
            ("value",),
            {"calls": [[s, 32e9, 312e12] for s in nothing]},
            fixed=True,
            about="saved_bytes is 0.",
        ),
    ]


def _write(stage: Stage, link: float, flops: float) -> str:
    inside = ", ".join(f"{name}={value:,}" for name, value in stage.items())
    return f"a stage with {inside}, a link of {link:.4g} bytes/s and {flops:.4g} flops/s"


worth_swapping = Task(
    id="lab06-worth_swapping",
    parts={"value": 2},
    defines=("worth_swapping",),
    probe="worth_swapping",
    cases=_cases,
    judge=by_reference(_worth, _MUTANTS, write=_write),
    mistakes={
        "out_only": "Your function counts one copy. Bytes that go out must come back, so count "
        "two copies.",
        "nothing_hidden": "Your function treats the whole time of the copies as extra time. "
        "Subtract the compute they hide behind, hidden_flops / flops_per_s.",
        "negative_time": "Your function returns a negative extra time for copies that are hidden "
        "with time to spare. Extra time is never below 0: max(0, ...).",
        "hides_behind_forward": "Your function hides the copies behind forward_flops. They hide "
        "behind hidden_flops, the compute between the stage's forward and its backward.",
        "bits": "Your function converts bytes to bits. The link's rate is in bytes per second.",
        "hidden_in_bytes": "Your function divides hidden_flops by the link's rate. The hidden "
        "compute takes hidden_flops / flops_per_s seconds.",
        "whole_seconds": "Your function rounds times down to whole seconds. Divide with /, not //.",
        "hides_twice": "Your function subtracts the hidden compute once for each copy. The copies "
        "use the link one after the other, so subtract the compute once from their total time.",
        "nearly_equal": "Your function treats nearly equal times as equal. If recomputing costs "
        "even slightly less, the answer is 'recompute': compare the exact times.",
        "tie_recomputes": "If both cost the same, the answer is 'swap'.",
        "tie_recomputes_unless_free": "If both cost the same, the answer is 'swap', whether or "
        "not that cost is 0.",
        "never_keeps": "If nothing is saved, there is nothing to swap: 'keep'.",
        "keep_where_free": "Your function keeps stages that could be swapped at no cost. Keeping "
        "costs memory, so the answer is 'swap'.",
        "answers_exchanged": "Your function answers 'swap' where recomputing is faster, and the "
        "other way round.",
        "always_swap": "Your function never recomputes. Compare the two times.",
        "always_recompute": "Your function never swaps. Compare the two times.",
    },
)
