"""The parts of torch.distributed that lab 8's solutions may use, and the calls they may not."""

from __future__ import annotations

from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.restrictions import Ban

__all__ = ["ALLOWED", "NO_COLLECTIVES", "NO_WRAPPERS"]

_POINT_TO_POINT = (
    "send",
    "recv",
    "isend",
    "irecv",
    "batch_isend_irecv",
    "P2POp",
    "Work",
    "get_rank",
    "get_world_size",
    "is_initialized",
    "barrier",
)
_COLLECTIVES = (
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
)

#: Allowed in this lab, beyond the names allowed everywhere. Groups, stores and wrappers aren't.
ALLOWED = tuple(
    f"torch.distributed.{name}" for name in (*_POINT_TO_POINT, *_COLLECTIVES, "ReduceOp", "group")
)

_WRAPPERS = {
    "DistributedDataParallel",
    "FullyShardedDataParallel",
    "ZeroRedundancyOptimizer",
    "_c10d_functional",
    "c10d",
    "c10d_functional",
    "fully_shard",
    "symm_mem",
}

NO_WRAPPERS = Ban(
    names=NO_METER_TAMPERING.names | _WRAPPERS,
    modules=NO_METER_TAMPERING.modules | {"torch.nn.parallel", "torch.ops"},
    reason="Use only the torch.distributed calls that the lab names.",
)

# Helpers may be named after the ring's two rounds, so of these names only the module's are banned.
_ROUNDS = {"all_gather", "gather", "reduce", "reduce_scatter", "scatter"}

# Methods of a group that do the same as the module's functions.
_OF_GROUPS = {".allgather", ".allreduce", ".alltoall", ".alltoall_base", "_allgather_base"}
_OF_GROUPS |= {"_reduce_scatter_base"}

NO_COLLECTIVES = Ban(
    names=NO_WRAPPERS.names | _OF_GROUPS | set(_COLLECTIVES) - _ROUNDS,
    modules=NO_WRAPPERS.modules
    | {f"torch.distributed.{name}" for name in _COLLECTIVES}
    | {f"torch.distributed.group.WORLD.{name}" for name in _ROUNDS},
    reason="Use only send, recv, isend and irecv: here you build the collectives yourself.",
)
