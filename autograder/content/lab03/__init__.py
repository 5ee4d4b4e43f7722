"""Hidden half of lab 3, the optimizer's state: one module for each exercise."""

from __future__ import annotations

from autograder.content.lab03.adam_step import adam_step
from autograder.content.lab03.find_the_leak import find_the_leak
from autograder.content.lab03.lean_adam_step import lean_adam_step
from autograder.content.lab03.measured_state_bytes import measured_state_bytes
from autograder.content.lab03.peak_of_step import peak_of_step
from autograder.content.lab03.recipes import bytes_per_parameter, largest_model
from autograder.content.lab03.state_bytes import state_bytes
from autograder.content.lab03.step_in_backward import step_in_backward
from autograder.content.lab03.step_timeline import step_timeline
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab03_adam",
    tasks=(
        adam_step,
        bytes_per_parameter,
        largest_model,
        measured_state_bytes,
        step_timeline,
        find_the_leak,
        state_bytes,
        peak_of_step,
        lean_adam_step,
        step_in_backward,
    ),
    hides=HIDDEN_MODULES["lab03_adam"],
)
