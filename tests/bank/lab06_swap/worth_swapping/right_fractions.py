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
