"""Hidden half of lab 6, swapping to the host: one module for each exercise."""

from __future__ import annotations

from autograder.content.lab06.adam import offloaded_adam
from autograder.content.lab06.find_the_leak import find_the_leak
from autograder.content.lab06.gpu_overlap import gpu_overlap
from autograder.content.lab06.joint import plan_joint
from autograder.content.lab06.saved import swap_saved_tensors
from autograder.content.lab06.schedule import schedule
from autograder.content.lab06.stream import stream_forward
from autograder.content.lab06.worth import worth_swapping
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab06_swap",
    tasks=(
        offloaded_adam,
        stream_forward,
        worth_swapping,
        schedule,
        find_the_leak,
        swap_saved_tensors,
        plan_joint,
        gpu_overlap,
    ),
    hides=HIDDEN_MODULES["lab06_swap"],
    allows=(
        "peakmem.labs.lab06",
        "peakmem.plan.chain",
        "peakmem.plan.plan",
        "peakmem.plan.simulator",
        "peakmem.plan.treatments",
        "peakmem.swapping",
        "peakmem.tiers",
    ),
)
