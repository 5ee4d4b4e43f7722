"""Hidden half of lab 10, attention: one module for every one or two exercises."""

from __future__ import annotations

from autograder.content.lab10.costs import attention_cost, roofline
from autograder.content.lab10.find_the_leak import find_the_leak
from autograder.content.lab10.gelu import few_bit_gelu
from autograder.content.lab10.loss import chunked_cross_entropy
from autograder.content.lab10.rows import online_softmax
from autograder.content.lab10.snapshots import who_holds_the_peak
from autograder.content.lab10.tiled import tiled_attention
from autograder.content.lab10.tiled_backward import tiled_backward
from autograder.content.lab10.times import module_times
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab10_attention",
    tasks=(
        attention_cost,
        roofline,
        online_softmax,
        tiled_attention,
        tiled_backward,
        find_the_leak,
        chunked_cross_entropy,
        module_times,
        few_bit_gelu,
        who_holds_the_peak,
    ),
    hides=HIDDEN_MODULES["lab10_attention"],
    allows=("peakmem.labs.lab10",),
)
