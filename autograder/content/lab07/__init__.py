"""Hidden half of lab 7, mixed precision: one module for every one or two exercises."""

from __future__ import annotations

from autograder.content.lab07.dtype_trace import dtype_trace
from autograder.content.lab07.find_the_leak import find_the_leak
from autograder.content.lab07.gpu_speed import gpu_speed
from autograder.content.lab07.gradients import best_scale, flushed_fraction
from autograder.content.lab07.loss_scaler import loss_scaler
from autograder.content.lab07.master_weights import master_weights
from autograder.content.lab07.train import train
from autograder.content.lab07.training_bytes import training_bytes
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab07_mixed_precision",
    tasks=(
        flushed_fraction,
        best_scale,
        loss_scaler,
        master_weights,
        find_the_leak,
        train,
        dtype_trace,
        training_bytes,
        gpu_speed,
    ),
    hides=HIDDEN_MODULES["lab07_mixed_precision"],
    allows=("peakmem.labs.lab07",),
)
