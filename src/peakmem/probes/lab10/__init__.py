"""Probes of lab 10, attention: one module for each subject."""

from peakmem.probes.lab10.attention import (
    CALLS,
    run_attention,
    run_backward,
    tiled_attention,
    tiled_backward,
)
from peakmem.probes.lab10.clock import module_times, timed
from peakmem.probes.lab10.costs import attention_cost, roofline
from peakmem.probes.lab10.gelu import LAYERS, few_bit_gelu, run_gelu, upstream_of, values_of
from peakmem.probes.lab10.leak import find_the_leak, watched_attention
from peakmem.probes.lab10.loss import chunked_cross_entropy, run_loss
from peakmem.probes.lab10.rows import long_row, online_softmax, scores_alone
from peakmem.probes.lab10.snapshots import who_holds_the_peak

__all__ = [
    "CALLS",
    "LAYERS",
    "attention_cost",
    "chunked_cross_entropy",
    "few_bit_gelu",
    "find_the_leak",
    "long_row",
    "module_times",
    "online_softmax",
    "roofline",
    "run_attention",
    "run_backward",
    "run_gelu",
    "run_loss",
    "scores_alone",
    "tiled_attention",
    "tiled_backward",
    "timed",
    "upstream_of",
    "values_of",
    "watched_attention",
    "who_holds_the_peak",
]
