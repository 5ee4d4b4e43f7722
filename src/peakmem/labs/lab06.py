"""What lab 6's notebook calls: its arithmetic, its chain, its plans, its clocks and its sliders."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from peakmem.plan.chain import Chain
from peakmem.plan.simulator import Simulation, simulate
from peakmem.plan.treatments import Treatment, treated
from peakmem.show.explore import explore

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn

    from peakmem.execute.host_memory import HostTier
    from peakmem.measure.meter import MemoryMeter

__all__ = [
    "ACTIVATION",
    "BLOCKS",
    "WIDTH",
    "HostLinear",
    "adam_update_",
    "best_seconds",
    "choice_sliders",
    "link_and_compute",
    "simulate_plan",
    "train_chain",
]

_MIB = 2**20
ROWS, WIDTH, BLOCKS = 8192, 64, 12
ACTIVATION = ROWS * WIDTH * 4  # bytes


def adam_update_(
    parameter: Tensor,
    m: Tensor,
    v: Tensor,
    t: int,
    lr: float,
    betas: Sequence[float],
    eps: float,
) -> None:
    """Make step number `t` of Adam, from 1, on one parameter; it, `m` and `v` change in place.

    The gradient is `parameter.grad`, and stays as it is. One temporary of the parameter's size.
    Raises ValueError if there is no gradient, or if `t` is below 1.
    """
    import torch  # here, so that drawing and simulating load no torch

    (beta1, beta2), gradient = betas, parameter.grad
    if gradient is None:
        raise ValueError("the parameter's .grad is None: it took no part, so leave it alone")
    if t < 1:
        raise ValueError(f"t is {t}: expected 1 in a parameter's first step, then 2, and so on")
    with torch.no_grad():
        m.mul_(beta1).add_(gradient, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        root = (v / (1 - beta2**t)).sqrt_().add_(eps)
        parameter.addcdiv_(m, root, value=-lr / (1 - beta1**t))


def simulate_plan(
    stages: Iterable[object],
    plan: Iterable[str],
    budget_bytes: int,
    link_bytes_per_s: float,
) -> Simulation:
    """Return the run of a plan that keeps, recomputes or swaps each stage: `makespan` and `spans`.

    The last stage is kept, whatever the plan says. Raises Infeasible if the plan doesn't fit, and
    ValueError if it is invalid.

    >>> from peakmem.plan.chain import Stage
    >>> simulate_plan([Stage(1, 2, 30, 10)] * 2, ["recompute", "keep"], 40, 10).makespan
    7.0
    """
    chain, plan = Chain.of(stages), [str(treatment) for treatment in plan]
    unknown = sorted(set(plan) - {"keep", "recompute", "swap"})
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not a treatment; expected keep, recompute or swap for each stage"
        )
    treatments = cast("list[Treatment]", plan)
    return simulate(chain, treated(chain, treatments, budget_bytes, link_bytes_per_s))


def train_chain(
    swap: Callable[[HostTier], AbstractContextManager[object]],
    host: HostTier,
    budget: int | None = None,
) -> MemoryMeter:
    """Run a chain of BLOCKS blocks forward under `swap(host)`, then backward; return the meter.

    A block is y = tanh(y @ weight). Raises OutOfMemory if more than `budget` bytes are live.
    """
    import torch
    from torch import nn

    from peakmem.measure.meter import MemoryMeter
    from peakmem.probes.lab06.saved import run_chain

    device = "cuda" if torch.cuda.is_available() else "cpu"
    room = torch.cuda.memory_allocated() if device == "cuda" else 0
    weights = [nn.Parameter(torch.eye(WIDTH, device=device)) for _ in range(BLOCKS)]
    x = torch.ones(ROWS, WIDTH, device=device)
    meter = MemoryMeter(device, None if budget is None else budget + room).track(x, weights)
    with meter:
        run_chain(swap, host, x, weights)
    return meter


class HostLinear:
    """A linear layer whose weight waits on a host: `load()` brings it up, as a new module."""

    def __init__(self, weight: Tensor, host: HostTier) -> None:
        self.weight_bytes = weight.nbytes
        self._host, self._handle = host, host.put(weight)

    def load(self) -> nn.Linear:
        """Return the layer, with its weight on the device."""
        from torch import nn  # here, so that drawing and simulating load no torch

        weight = self._host.get(self._handle)
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
        layer.weight = nn.Parameter(weight)
        return layer


def best_seconds(work: Callable[[], object], device: str, repeats: int = 5) -> float:
    """Return the shortest time of several runs: the machine's speed when nothing disturbs it."""
    import torch

    def seconds() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    return min(seconds() for _ in range(repeats))


def link_and_compute(device: str) -> tuple[float, float]:
    """Return this machine's bytes per second to the host and back, and its operations per second.

    A GPU is timed like its data sheet, with large products in 16 bits.
    """
    import torch

    from peakmem.execute.host_memory import HostTier

    on_gpu = device == "cuda"
    host = HostTier()
    block = torch.ones((512 if on_gpu else 32) * _MIB // 4, device=device)
    side, dtype = (8192, torch.bfloat16) if on_gpu else (1024, torch.float32)
    matrix = torch.randn(side, side, device=device).to(dtype)

    def round_trip() -> None:
        handle = host.put(block)
        host.get(handle)
        host.free(handle)

    link = 2 * block.nbytes / best_seconds(round_trip, device)
    return link, 2 * side**3 / best_seconds(lambda: matrix @ matrix, device)


def choice_sliders(worth_swapping: Callable[..., str]) -> Any:
    """Return sliders for a transformer layer, and your choice for it over links and GPUs.

    `worth_swapping(stage, link_bytes_per_s, flops_per_s)` is exercise 6.3's. The layer has
    the given width and number of layers between its forward and its backward; its bytes and
    operations per token are those of the lab's text.
    """

    def draw(width: int, layers_between: int) -> tuple[Figure, str]:
        from peakmem.show.plots.lab06 import draw_choices

        stage = SimpleNamespace(
            saved_bytes=34 * width,
            forward_flops=24 * width**2,
            hidden_flops=72 * width**2 * layers_between,
        )
        links, speeds = ([10 ** (low + i / 20) for i in range(61)] for low in (0, 12.5))
        rows = [[worth_swapping(stage, link * 1e9, speed) for link in links] for speed in speeds]
        return draw_choices(links, speeds, rows), (
            f"The choice for a layer of width {width} with {layers_between} layers in between, "
            "over the link's bandwidth and the device's operations per second."
        )

    return explore(
        draw, width=[1024, 2048, 4096, 8192, 12288], layers_between=[0, 1, 2, 3, 6, 12, 24]
    )
