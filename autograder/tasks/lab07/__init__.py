"""Hidden half of lab 7, mixed precision: one module for each exercise."""

from __future__ import annotations

from autograder.task import Lab
from autograder.tasks.lab07.gpu_speed import gpu_speed
from autograder.tasks.lab07.loss_scaler import loss_scaler
from peakmem.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab07_mixed_precision",
    tasks=(loss_scaler, gpu_speed),
    hides=HIDDEN_MODULES["lab07_mixed_precision"],
)
