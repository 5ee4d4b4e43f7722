"""Hidden half of lab 2, where the memory goes: one module for every one or two exercises."""

from __future__ import annotations

from autograder.content.lab02.activations import activation_elements, boundary_bytes
from autograder.content.lab02.batch import largest_batch
from autograder.content.lab02.find_the_leak import find_the_leak
from autograder.content.lab02.layer import layer_activation_bytes
from autograder.content.lab02.lifetimes import lifetimes, live_bytes
from autograder.content.lab02.parameters import gpt_parameters
from autograder.content.lab02.table import inconsistent_rows
from autograder.content.lab02.training import predict_training
from autograder.content.lab02.weights import weight_bytes
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab02_sizing",
    tasks=(
        weight_bytes,
        gpt_parameters,
        inconsistent_rows,
        layer_activation_bytes,
        largest_batch,
        lifetimes,
        live_bytes,
        activation_elements,
        boundary_bytes,
        find_the_leak,
        predict_training,
    ),
    hides=HIDDEN_MODULES["lab02_sizing"],
    allows=("peakmem.hardware", "peakmem.nn"),
)
