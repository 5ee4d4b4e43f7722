"""What lab 9's notebook calls: weights to quantize, and small trainings to compare."""

from peakmem.labs.lab09.examples import outlier_inputs, rounding_losses, weight_matrix
from peakmem.labs.lab09.qlora import metered_qlora_step, qlora_gpt

__all__ = [
    "metered_qlora_step",
    "outlier_inputs",
    "qlora_gpt",
    "rounding_losses",
    "weight_matrix",
]
