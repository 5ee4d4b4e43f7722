"""Probes of lab 4, checkpointing: one module for each subject."""

from peakmem.probes.hooks import hooks_on
from peakmem.probes.lab04.attention import (
    attention_block,
    recompute_attention_only,
    run_attention,
    settings_of,
)
from peakmem.probes.lab04.checkpoint import (
    MANY,
    MANY_TANHS,
    TANHS,
    checkpoint,
    many_tanhs,
    run_checkpointed,
    run_many,
)
from peakmem.probes.lab04.gpu import GPU_BATCH, GPU_LAYERS, gpu_stack, gpu_tradeoff
from peakmem.probes.lab04.leak import find_the_leak, logged_steps
from peakmem.probes.lab04.plans import (
    KEPT_SET_OPTIMUM,
    NESTED_OPTIMUM,
    UNEQUAL_STAGES,
    plan,
    sqrt_rule,
)
from peakmem.probes.lab04.saved import saved_bytes
from peakmem.probes.lab04.segments import run_in_segments, run_large_layers, run_layers

__all__ = [
    "GPU_BATCH",
    "GPU_LAYERS",
    "KEPT_SET_OPTIMUM",
    "MANY",
    "MANY_TANHS",
    "NESTED_OPTIMUM",
    "TANHS",
    "UNEQUAL_STAGES",
    "attention_block",
    "checkpoint",
    "find_the_leak",
    "gpu_stack",
    "gpu_tradeoff",
    "hooks_on",
    "logged_steps",
    "many_tanhs",
    "plan",
    "recompute_attention_only",
    "run_attention",
    "run_checkpointed",
    "run_in_segments",
    "run_large_layers",
    "run_layers",
    "run_many",
    "saved_bytes",
    "settings_of",
    "sqrt_rule",
]
