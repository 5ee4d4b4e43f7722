# %% right: dict
"""The cheapest of a dict of costs; at a tie the first one, which is the swap."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if not stage.saved_bytes:
        return "keep"
    copies = stage.saved_bytes / link_bytes_per_s * 2
    costs = {"swap": copies - stage.hidden_flops / flops_per_s, "recompute": 0.0}
    costs["swap"] = costs["swap"] if costs["swap"] > 0 else 0.0
    costs["recompute"] = stage.forward_flops / flops_per_s
    return min(costs, key=costs.get)


# %% right: fractions
"""Exact fractions."""
from fractions import Fraction


def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    link, flops = Fraction(link_bytes_per_s), Fraction(flops_per_s)
    sticks_out = 2 * stage.saved_bytes / link - stage.hidden_flops / flops
    if sticks_out <= max(0, Fraction(stage.forward_flops) / flops):
        return "swap"
    return "recompute"


# %% right: numpy
"""Numpy scalars, and a numpy string."""
import numpy as np


def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    out_and_in = np.float64(2 * stage.saved_bytes) / link_bytes_per_s
    extra = np.clip(out_and_in - np.float64(stage.hidden_flops) / flops_per_s, 0, None)
    recompute = np.float64(stage.forward_flops) / flops_per_s
    answers = np.array(["recompute", "swap"])
    return "keep" if stage.saved_bytes == 0 else str(answers[int(extra <= recompute)])


# %% right: plain
"""Two costs and a comparison."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link_bytes_per_s - stage.hidden_flops / flops_per_s)
    return "swap" if extra <= stage.forward_flops / flops_per_s else "recompute"


# %% wrong: always_recompute
"""Always recomputes."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "recompute"


# %% wrong: always_swap
"""Always swaps."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap"


# %% wrong: answers_exchanged
"""The two answers the wrong way round."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "recompute" if extra <= again else "swap"


# %% wrong: bits
"""Turns bytes into bits."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * 8 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"


# %% wrong: hidden_in_bytes
"""Divides the hidden operations by the link's rate."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, (2 * stage.saved_bytes - stage.hidden_flops) / link)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"


# %% wrong: hides_behind_forward
"""Hides the copies behind the stage's own forward."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.forward_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"


# %% wrong: keep_where_free
"""Keeps what could be swapped for nothing."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "keep" if extra == 0 else "swap" if extra <= again else "recompute"


# %% wrong: negative_time
"""Takes the distance of the two times, so that well-hidden copies look long."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = abs(2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"


# %% wrong: never_keeps
"""Knows no stage without saved bytes."""
def worth_swapping(stage, link, flops):
    
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"


# %% wrong: nothing_hidden
"""Takes the whole copies for extra time."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = 2 * stage.saved_bytes / link
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"


# %% wrong: out_only
"""Counts the copy out, and not the one back."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"


# %% wrong: tie_recomputes
"""At equal cost it recomputes."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra < again else "recompute"


# %% wrong: hides_twice
"""Each copy hides behind all hidden operations."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    copy = stage.saved_bytes / link_bytes_per_s
    extra = 2 * max(0, copy - stage.hidden_flops / flops_per_s)
    return "swap" if extra <= stage.forward_flops / flops_per_s else "recompute"


# %% wrong: tie_recomputes_unless_free
"""At equal cost it recomputes, but a hidden swap is a swap."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    extra = 2 * stage.saved_bytes / link_bytes_per_s - stage.hidden_flops / flops_per_s
    if extra <= 0:
        return "swap"
    return "swap" if extra < stage.forward_flops / flops_per_s else "recompute"


# %% wrong: changes_stage
"""Doubles the stage's bytes in place."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0: return "keep"
    stage.saved_bytes *= 2
    extra = max(0, stage.saved_bytes / link_bytes_per_s - stage.hidden_flops / flops_per_s)
    return "swap" if extra <= stage.forward_flops / flops_per_s else "recompute"


# %% wrong: keeps_small
"""Keeps stages of less than a MB."""


def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes < 1e6:
        return "keep"
    swap = max(0, 2 * stage.saved_bytes / link_bytes_per_s - stage.hidden_flops / flops_per_s)
    return "swap" if swap <= stage.forward_flops / flops_per_s else "recompute"


# %% right: operations
"""Compares operations, in Decimal."""

from decimal import Decimal


def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    rate = Decimal(flops_per_s) / Decimal(link_bytes_per_s)
    over = 2 * stage.saved_bytes * rate - stage.hidden_flops
    return ("recompute", "swap")[max(over, 0) <= stage.forward_flops]


# %% wrong: nearly_equal
"""Takes times within a percent of each other for equal."""


def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    extra = 2 * stage.saved_bytes / link_bytes_per_s - stage.hidden_flops / flops_per_s
    return "swap" if max(0.0, extra) <= 1.01 * stage.forward_flops / flops_per_s else "recompute"


# %% wrong: rounded_times
"""Rounds times to nanoseconds."""


def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    extra = 2 * stage.saved_bytes / link_bytes_per_s - stage.hidden_flops / flops_per_s
    again = stage.forward_flops / flops_per_s
    return "swap" if round(max(0.0, extra), 9) <= round(again, 9) else "recompute"


# %% wrong: kept_without_the_rate
"""Keeps results by stage and link."""
found = {}


def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    key = *vars(stage).values(), link_bytes_per_s
    if key not in found:
        copies = 2 * stage.saved_bytes / link_bytes_per_s
        extra = max(0, copies - stage.hidden_flops / flops_per_s)
        found[key] = "swap" if extra <= stage.forward_flops / flops_per_s else "recompute"
    return found[key] if stage.saved_bytes else "keep"


# %% wrong: whole_seconds
"""Divides times with //."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    copies = 2 * stage.saved_bytes // link_bytes_per_s
    swap = max(0, copies - stage.hidden_flops // flops_per_s)
    return "swap" if swap <= stage.forward_flops // flops_per_s else "recompute"


# %% wrong: keeps_what_costs_nothing
"""Keeps a stage that costs nothing to recompute."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0 or stage.forward_flops == 0:
        return "keep"
    swap = max(0, 2 * stage.saved_bytes / link_bytes_per_s - stage.hidden_flops / flops_per_s)
    return "swap" if swap <= stage.forward_flops / flops_per_s else "recompute"
