"""Hidden half of lab 8, shards on real processes: one module for each exercise."""

from __future__ import annotations

from autograder.content.lab08.adam import sharded_adam
from autograder.content.lab08.find_the_leak import find_the_leak
from autograder.content.lab08.forbidden import ALLOWED
from autograder.content.lab08.gradients import shard_gradients
from autograder.content.lab08.layers import sharded_layers
from autograder.content.lab08.replicas import data_parallel
from autograder.content.lab08.ring import ring_all_reduce
from autograder.content.lab08.states import model_state_bytes
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab08_shards",
    tasks=(
        model_state_bytes,
        ring_all_reduce,
        data_parallel,
        sharded_adam,
        find_the_leak,
        shard_gradients,
        sharded_layers,
    ),
    hides=HIDDEN_MODULES["lab08_shards"],
    allows=("peakmem.labs.lab08", "peakmem.ranks", *ALLOWED),
)
