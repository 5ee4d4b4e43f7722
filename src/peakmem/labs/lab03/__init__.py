"""What lab 3's notebook runs and meters: self-checks, small training runs, Adam's step."""

from peakmem.labs.lab03.calculator import with_hidden_modules
from peakmem.labs.lab03.checks import (
    budget_of,
    from_backward_to_step,
    in_turns,
    on_transposed,
    or_refused,
    peak_of,
    results_of,
    rise_of,
    values_after,
)
from peakmem.labs.lab03.metered import (
    SHAPES,
    metered_adam,
    metered_backward,
    metered_step,
    small_model,
    step_curve,
    training_curve,
)
from peakmem.labs.lab03.training import losses_of

__all__ = [
    "SHAPES",
    "budget_of",
    "from_backward_to_step",
    "in_turns",
    "losses_of",
    "metered_adam",
    "metered_backward",
    "metered_step",
    "on_transposed",
    "or_refused",
    "peak_of",
    "results_of",
    "rise_of",
    "small_model",
    "step_curve",
    "training_curve",
    "values_after",
    "with_hidden_modules",
]
