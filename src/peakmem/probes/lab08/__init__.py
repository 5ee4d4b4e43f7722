"""Probes of lab 8, shards on real processes: one module for each subject."""

from peakmem.probes.lab08.adam import run_adam, sharded_adam
from peakmem.probes.lab08.gradients import run_gradients, shard_gradients
from peakmem.probes.lab08.layers import run_sharded, sharded_layers
from peakmem.probes.lab08.leak import find_the_leak, run_layers
from peakmem.probes.lab08.replicas import data_parallel, run_replicas
from peakmem.probes.lab08.ring import ring_all_reduce, run_all_reduce, values
from peakmem.probes.lab08.states import model_state_bytes

__all__ = [
    "data_parallel",
    "find_the_leak",
    "model_state_bytes",
    "ring_all_reduce",
    "run_adam",
    "run_all_reduce",
    "run_gradients",
    "run_layers",
    "run_replicas",
    "run_sharded",
    "shard_gradients",
    "sharded_adam",
    "sharded_layers",
    "values",
]
