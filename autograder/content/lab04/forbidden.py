"""Tools that lab 4's solutions may not use, and doubts about measured figures."""

from __future__ import annotations

from autograder.model.restrictions import Ban

__all__ = ["NO_TORCH_CHECKPOINT", "UNSEEN"]

NO_TORCH_CHECKPOINT = Ban(
    names=frozenset(
        {"checkpoint_sequential", "CheckpointFunction", ".checkpoint", "checkpoint_wrapper"}
        | {"set_checkpoint_early_stop", "_checkpoint_without_reentrant_generator"}
        | {"torch.utils.checkpoint"}
    ),
    modules=frozenset(
        {"torch.utils.checkpoint", "torch.distributed.algorithms._checkpoint", "fairscale"}
        | {"deepspeed"}
    ),
    reason="Write checkpointing yourself: don't use torch.utils.checkpoint or another library's.",
)

UNSEEN = (
    "The meter saw less memory than any run of this exercise takes, as if the work ran where the "
    "meter can't see it: on another thread, or with torch's dispatch modes switched off. An "
    "instructor will look at this."
)
