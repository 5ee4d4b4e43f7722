"""Hidden half of lab 1, how numbers are stored: one module for each group of exercises."""

from __future__ import annotations

from autograder.task import Lab
from autograder.tasks.lab01.bf16 import to_bf16
from autograder.tasks.lab01.decode import decode_fp32
from autograder.tasks.lab01.encode import encode_fp32
from peakmem.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab01_formats",
    tasks=(decode_fp32, encode_fp32, to_bf16),
    hides=HIDDEN_MODULES["lab01_formats"],
)
