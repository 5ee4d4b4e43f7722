"""Numpy scalars, and a numpy string."""
import numpy as np


def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    out_and_in = np.float64(2 * stage.saved_bytes) / link_bytes_per_s
    extra = np.clip(out_and_in - np.float64(stage.hidden_flops) / flops_per_s, 0, None)
    recompute = np.float64(stage.forward_flops) / flops_per_s
    answers = np.array(["recompute", "swap"])
    return "keep" if stage.saved_bytes == 0 else str(answers[int(extra <= recompute)])
