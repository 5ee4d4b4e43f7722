"""Lab 1's helpers: a rounding function, pictures of formats, and bits to click on."""

from peakmem.labs.lab01.formats import fields, float16_sums, limits_by_torch, rounded
from peakmem.labs.lab01.halves import halves_of_three, halves_peak, halves_rise
from peakmem.labs.lab01.pictures import (
    bit_flipper,
    show_bit_fields,
    show_number_line,
    show_relative_spacing,
    show_stalling_sum,
)
from peakmem.labs.lab01.rules import not_allowed, python_loops

__all__ = [
    "bit_flipper",
    "fields",
    "float16_sums",
    "halves_of_three",
    "halves_peak",
    "halves_rise",
    "limits_by_torch",
    "not_allowed",
    "python_loops",
    "rounded",
    "show_bit_fields",
    "show_number_line",
    "show_relative_spacing",
    "show_stalling_sum",
]
