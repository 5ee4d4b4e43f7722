"""GPU memory of a process beyond its tensors: CUDA's context and cuBLAS's workspaces."""

from __future__ import annotations

import subprocess
import sys

import torch

from benchmarks.figures import Figure, NotRun
from peakmem.core.units import MiB
from peakmem.predict.fit import CONTEXT_BYTES

__all__ = ["context"]

# Two layers forward, then backward with the first one recomputed; only workspaces remain.
_STEP = """
import sys, torch
from torch.utils.checkpoint import checkpoint
for dtype in (torch.float32, torch.bfloat16):
    x = torch.randn(512, 1024, device="cuda", dtype=dtype, requires_grad=True)
    layers = [torch.nn.Linear(1024, 1024, device="cuda", dtype=dtype) for _ in range(2)]
    checkpoint(torch.nn.Sequential(*layers), x, use_reentrant=False).sum().backward()
    del x, layers
torch.cuda.synchronize()
torch.cuda.empty_cache()
kinds = "requested_bytes.all.current", "reserved_bytes.all.current"
print(*(torch.cuda.memory_stats()[kind] for kind in kinds), flush=True)
sys.stdin.readline()
"""


def context(device: torch.device) -> list[Figure]:
    """Measure both in a separate process, seen from this one."""
    if device.type != "cuda":
        raise NotRun("a CPU has no context")
    free_before, _ = torch.cuda.mem_get_info(device)
    with subprocess.Popen(
        [sys.executable, "-c", _STEP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        workspaces, reserved = map(int, other.stdout.readline().split())
        free_now, _ = torch.cuda.mem_get_info(device)
        other.stdin.write("\n")
    own = free_before - free_now - reserved
    least, most = (n_bytes / MiB for n_bytes in CONTEXT_BYTES)
    return [
        Figure("context", own / MiB, "MiB"),
        Figure("workspaces", workspaces / MiB, "MiB", most=66),
        Figure("both", (own + workspaces) / MiB, "MiB", least=least, most=most),
    ]
