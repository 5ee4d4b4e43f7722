"""Probes of lab 3, the optimizer's state: one module for each subject."""

from peakmem.probes.lab03.adam import adam_step, gradients_of
from peakmem.probes.lab03.backward import step_in_backward
from peakmem.probes.lab03.leak import find_the_leak
from peakmem.probes.lab03.lean_adam import (
    kept_by_python,
    large_tensors,
    lean_adam_step,
    pieces_of,
    sums_of_pieces,
)
from peakmem.probes.lab03.sizes import (
    bytes_per_parameter,
    largest_model,
    peak_of_step,
    state_bytes,
    step_timeline,
)
from peakmem.probes.lab03.state import is_view, measured_state_bytes

__all__ = [
    "adam_step",
    "bytes_per_parameter",
    "find_the_leak",
    "gradients_of",
    "is_view",
    "kept_by_python",
    "large_tensors",
    "largest_model",
    "lean_adam_step",
    "measured_state_bytes",
    "peak_of_step",
    "pieces_of",
    "state_bytes",
    "step_in_backward",
    "step_timeline",
    "sums_of_pieces",
]
