"""Probes of lab 6, swapping to the host: one module for each subject."""

from peakmem.probes.lab06.adam import offloaded_adam
from peakmem.probes.lab06.gpu import COPY_BYTES, gpu_overlap
from peakmem.probes.lab06.leak import batch_means, find_the_leak
from peakmem.probes.lab06.plans import plan_joint, schedule, worth_swapping
from peakmem.probes.lab06.programs import PROGRAMS
from peakmem.probes.lab06.saved import run_program, swap_saved_tensors
from peakmem.probes.lab06.streaming import stream_forward

__all__ = [
    "COPY_BYTES",
    "PROGRAMS",
    "batch_means",
    "find_the_leak",
    "gpu_overlap",
    "offloaded_adam",
    "plan_joint",
    "run_program",
    "schedule",
    "stream_forward",
    "swap_saved_tensors",
    "worth_swapping",
]
