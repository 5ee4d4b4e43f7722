"""Probes of lab 5, gradient accumulation: one module for each subject."""

from peakmem.probes.lab05.batch_norm import batch_norm_gap
from peakmem.probes.lab05.epoch import train_epoch
from peakmem.probes.lab05.gradients import LOSSES, accumulate_gradients, accumulate_token_mean
from peakmem.probes.lab05.leak import find_the_leak
from peakmem.probes.lab05.micro_batches import largest_micro_batch, memory_line
from peakmem.probes.lab05.models import (
    Louder,
    Regression,
    large_run,
    normed_perceptron,
    perceptron,
    small_model,
    token_model,
)

__all__ = [
    "LOSSES",
    "Louder",
    "Regression",
    "accumulate_gradients",
    "accumulate_token_mean",
    "batch_norm_gap",
    "find_the_leak",
    "large_run",
    "largest_micro_batch",
    "memory_line",
    "normed_perceptron",
    "perceptron",
    "small_model",
    "token_model",
    "train_epoch",
]
