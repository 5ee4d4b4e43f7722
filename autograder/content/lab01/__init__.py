"""Hidden half of lab 1, how numbers are stored: one module for every one or two exercises."""

from __future__ import annotations

from autograder.content.lab01.bf16 import to_bf16
from autograder.content.lab01.decode import decode_fp32
from autograder.content.lab01.e4m3 import decode_e4m3
from autograder.content.lab01.encode import encode_fp32
from autograder.content.lab01.find_the_leak import find_the_leak
from autograder.content.lab01.integers import fixed_point_value, integer_value
from autograder.content.lab01.limits import format_limits
from autograder.content.lab01.stall import stall_value
from autograder.content.lab01.sums import careful_sum
from autograder.content.lab01.updates import update_lost
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab01_formats",
    tasks=(
        integer_value,
        fixed_point_value,
        decode_fp32,
        format_limits,
        decode_e4m3,
        to_bf16,
        update_lost,
        find_the_leak,
        encode_fp32,
        stall_value,
        careful_sum,
    ),
    hides=HIDDEN_MODULES["lab01_formats"],
    allows=("peakmem.labs.lab01.rounded",),
)
