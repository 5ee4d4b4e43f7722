"""Hidden half of lab 4, checkpointing: one module for each exercise."""

from __future__ import annotations

from autograder.content.lab04.attention import recompute_attention_only
from autograder.content.lab04.checkpoint import checkpoint
from autograder.content.lab04.find_the_leak import find_the_leak
from autograder.content.lab04.gpu_tradeoff import gpu_tradeoff
from autograder.content.lab04.plan import plan
from autograder.content.lab04.saved import saved_bytes
from autograder.content.lab04.segments import run_in_segments
from autograder.content.lab04.sqrt_rule import sqrt_rule
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab04_checkpointing",
    tasks=(
        checkpoint,
        run_in_segments,
        sqrt_rule,
        find_the_leak,
        saved_bytes,
        plan,
        recompute_attention_only,
        gpu_tradeoff,
    ),
    hides=HIDDEN_MODULES["lab04_checkpointing"],
    allows=("peakmem.labs.lab04", "peakmem.probes.lab04"),
)
