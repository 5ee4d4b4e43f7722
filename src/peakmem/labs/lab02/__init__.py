"""Lab 2's helpers: the saved tensors of real models, measured and plotted, and sliders."""

from peakmem.labs.lab02.kept import show_kept, show_variants
from peakmem.labs.lab02.machine import machine_bytes, parameters_by_torch
from peakmem.labs.lab02.pictures import memory_sliders, show_memory_over_length, show_models
from peakmem.labs.lab02.steps import (
    evaluation_losses,
    evaluation_peak,
    evaluation_rise,
    measured_peak,
    measured_saved,
    measured_step,
    show_lives,
    show_real_step,
    show_two_steps,
)
from peakmem.probes.lab02 import no_model_runs

__all__ = [
    "evaluation_losses",
    "evaluation_peak",
    "evaluation_rise",
    "machine_bytes",
    "measured_peak",
    "measured_saved",
    "measured_step",
    "memory_sliders",
    "no_model_runs",
    "parameters_by_torch",
    "show_kept",
    "show_lives",
    "show_memory_over_length",
    "show_models",
    "show_real_step",
    "show_two_steps",
    "show_variants",
]
