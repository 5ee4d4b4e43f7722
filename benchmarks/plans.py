"""Plans of training steps: each one's predicted and real time and peak, and the planning time.

Run as `python -m benchmarks.plans [cpu|cuda]`. On a GPU the stages are large enough for copies and
compute to overlap. On the CPU copies go to files one after the other, so times have no bound.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.speeds import wait
from peakmem.core.errors import Infeasible
from peakmem.execute.executor import run
from peakmem.execute.saved_tensors import FileLink, Slot, StreamLink
from peakmem.measure.measure_chain import chain_of
from peakmem.measure.meter import MemoryMeter
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.offload import joint, with_offload
from peakmem.plan.plan import Plan
from peakmem.plan.rotor import least_peak, optimal
from peakmem.plan.segments import keep_all, kept_set_optimal
from peakmem.plan.simulator import Simulation, simulate

__all__ = ["link_bytes_per_s", "main", "measure_plans", "planning_seconds"]


@dataclass(frozen=True)
class PlanRow:
    """One plan; `least_seconds` is the longer of its simulated compute and its simulated copies."""

    name: str
    budget_bytes: int | None
    predicted_peak_bytes: int
    peak_bytes: int
    predicted_seconds: float
    seconds: float
    copies: int
    least_seconds: float

    @property
    def overlap(self) -> float:
        """Real time divided by the time with perfect overlap; the bound is 1.15 on a GPU."""
        return self.seconds / self.least_seconds


def measure_plans(device: torch.device, budget_part: float = 0.5) -> list[PlanRow]:
    """Plan for a stack of layers, run every plan, and return its figures.

    The budget is at this fraction of the way from the lowest peak to that of keeping everything.
    Time is the best of three runs.
    """
    layers, inputs = _stack(device)
    chain = chain_of(layers, inputs)
    link = link_bytes_per_s(device)
    least, most = (simulate(chain, p(chain)).peak_bytes for p in (least_peak, keep_all))
    budget = int(least + budget_part * (most - least))
    planners: dict[str, Callable[[], Plan]] = {
        "keep all": lambda: keep_all(chain),
        "kept set, optimal": lambda: kept_set_optimal(chain, budget),
        "optimal": lambda: optimal(chain, budget),
        "with offload": lambda: with_offload(chain, budget, link),
        "joint": lambda: joint(chain, budget, link),
    }
    rows = []
    for name, planner in planners.items():
        try:
            plan = planner()
        except Infeasible:
            continue
        within = None if name == "keep all" else budget
        rows.append(_measure(name, plan, within, chain, layers, inputs))
    return rows


def _measure(
    name: str,
    plan: Plan,
    budget_bytes: int | None,
    chain: Chain,
    layers: nn.Sequential,
    inputs: torch.Tensor,
) -> PlanRow:
    predicted = simulate(chain, plan)
    seconds = []
    for _ in range(3):  # before the meter, because libraries keep workspaces after their first use
        layers.zero_grad()
        seconds.append(run(plan, layers, inputs, chain).seconds)
    layers.zero_grad()
    meter = MemoryMeter(inputs.device).track(inputs)
    weights = 0
    if inputs.device.type == "cuda":  # where workspaces count, too
        weights = torch.cuda.memory_stats(inputs.device)["requested_bytes.all.current"]
        weights -= chain.input_bytes
    with meter:
        run(plan, layers, inputs, chain)
    return PlanRow(
        name=name,
        budget_bytes=budget_bytes,
        predicted_peak_bytes=predicted.peak_bytes,
        peak_bytes=meter.peak_bytes - weights,
        predicted_seconds=predicted.makespan,
        seconds=min(seconds),
        copies=len(plan.copies),
        least_seconds=_least_seconds(predicted),
    )


def _least_seconds(predicted: Simulation) -> float:
    """The longer of all steps and all copies, each without pauses."""
    copying = sum(s.end - s.start for s in predicted.spans if s.kind in ("out", "in"))
    computing = sum(s.end - s.start for s in predicted.spans if s.kind not in ("out", "in"))
    return max(copying, computing)


def _stack(device: torch.device) -> tuple[nn.Sequential, torch.Tensor]:
    """Blocks of unequal width, and an input; on a GPU, a few hundred megabytes each."""
    torch.manual_seed(0)
    scale, batch = (16, 16384) if device.type == "cuda" else (1, 1024)
    blocks: list[nn.Module] = []
    for width in (256, 512, 1024, 512, 256, 1024, 512, 256):
        inner = nn.Sequential(
            nn.Linear(128 * scale, width * scale), nn.GELU(), nn.Linear(width * scale, 128 * scale)
        )
        blocks.append(inner)
    layers = nn.Sequential(*blocks).to(device)
    return layers, torch.randn(batch, 128 * scale, device=device)


def link_bytes_per_s(device: torch.device) -> float:
    """Return the speed of the link to the host: pinned memory on a GPU, files on the CPU."""
    nbytes = 2**28 if device.type == "cuda" else 2**22
    x = torch.ones(nbytes, dtype=torch.uint8, device=device)
    link = StreamLink(device) if device.type == "cuda" else FileLink()
    begun = ended = link.mark()
    for _ in range(2):  # the second round reuses the first one's pinned memory
        wait(device)
        slots = [Slot(x.untyped_storage())]
        begun = link.out_begins(slots, None)
        link.out_ends(slots)
        link.in_begins(slots, None)
        ended = link.in_ends(slots)
    link.close()
    return 2 * nbytes / link.seconds(begun, ended)


def planning_seconds(stages: int = 350, slots: int = 500) -> float:
    """Return how long `optimal` takes for a random chain of this many stages; the bound is 10 s."""
    rng = random.Random(0)
    chain = Chain(
        tuple(
            Stage(
                forward_time=rng.random(),
                backward_time=rng.random(),
                saved_bytes=rng.randrange(300_000, 3_000_000),
                output_bytes=rng.randrange(50_000, 300_000),
                gradient_bytes=rng.randrange(50_000, 300_000),
            )
            for _ in range(stages)
        )
    )
    budget = simulate(chain, keep_all(chain)).peak_bytes // 6
    start = time.process_time()
    optimal(chain, budget, slots)
    return time.process_time() - start


def main() -> int:
    """Print the figures; return 1 if one is out of bounds."""
    device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cpu")
    held = True
    for row in measure_plans(device):
        print(
            f"{row.name:18} peak {row.peak_bytes:>13,} bytes, "
            f"{row.peak_bytes / row.predicted_peak_bytes:.4f} of predicted; "
            f"{row.seconds:.4f} s, {row.seconds / row.predicted_seconds:.2f} of predicted; "
            f"{row.copies} copies, {row.overlap:.2f} of perfect overlap"
        )
        held &= row.peak_bytes <= (row.budget_bytes or row.peak_bytes)
        held &= abs(row.peak_bytes / row.predicted_peak_bytes - 1) <= 0.02
        held &= device.type == "cpu" or row.copies == 0 or row.overlap <= 1.15
    seconds = planning_seconds()
    print(f"optimal: 350 stages at 500 slots in {seconds:.2f} s of one core (at most 10)")
    return 0 if held and seconds <= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
