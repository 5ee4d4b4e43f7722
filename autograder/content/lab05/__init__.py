"""Hidden half of lab 5, gradient accumulation: one module for each exercise."""

from __future__ import annotations

from autograder.content.lab05.accumulate_gradients import accumulate_gradients
from autograder.content.lab05.accumulate_token_mean import accumulate_token_mean
from autograder.content.lab05.batch_norm_gap import batch_norm_gap
from autograder.content.lab05.find_the_leak import find_the_leak
from autograder.content.lab05.largest_micro_batch import largest_micro_batch
from autograder.content.lab05.memory_line import memory_line
from autograder.content.lab05.train_epoch import train_epoch
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab05_accumulation",
    tasks=(
        accumulate_gradients,
        find_the_leak,
        accumulate_token_mean,
        train_epoch,
        memory_line,
        largest_micro_batch,
        batch_norm_gap,
    ),
    hides=HIDDEN_MODULES["lab05_accumulation"],
)
