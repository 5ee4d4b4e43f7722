"""What lab 5's notebook runs and meters: updates of a small GPT, self-checks, mistakes."""

from peakmem.labs.lab05.checks import (
    accumulated,
    epoch_of,
    gap_of,
    rise_of,
    searches,
    validation_of,
)
from peakmem.labs.lab05.mistakes import gradient_errors, parameter_errors
from peakmem.labs.lab05.token_checks import token_mean_of, token_rise_of
from peakmem.labs.lab05.updates import (
    BATCH,
    BUDGET,
    MIB,
    SHAPE,
    all_at_once,
    device,
    mean_loss,
    measured_peak,
    milliseconds_a_sample,
    new_training,
    weight_bytes,
)

__all__ = [
    "BATCH",
    "BUDGET",
    "MIB",
    "SHAPE",
    "accumulated",
    "all_at_once",
    "device",
    "epoch_of",
    "gap_of",
    "gradient_errors",
    "mean_loss",
    "measured_peak",
    "milliseconds_a_sample",
    "new_training",
    "parameter_errors",
    "rise_of",
    "searches",
    "token_mean_of",
    "token_rise_of",
    "validation_of",
    "weight_bytes",
]
