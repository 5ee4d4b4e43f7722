"""What lab 8's notebook calls: ranks whose bytes are metered, and its sliders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from peakmem.show.explore import explore

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn

__all__ = ["OwnersAdam", "held_mib", "rank_memory_mib", "sent_times", "stages_sliders"]

_MIB = 2**20
_WIDTH, _LAYERS = 256, 8
_SENT_LENGTH = 3 * 2**18

Prepare = Callable[[list[Any]], tuple[Callable[..., Any], Any]]


class OwnersAdam:
    """Adam on the rank that keeps a parameter's gradient, which then sends the parameter to all."""

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        self._params = list(params)
        self._adam: Any = None
        self._owners: list[int] = []

    def step(self) -> None:
        """Update all parameters; the first step finds their owners."""
        import torch
        import torch.distributed as dist

        rank, world = dist.get_rank(), dist.get_world_size()
        if self._adam is None:
            mine = torch.tensor([rank if p.grad is not None else world for p in self._params])
            dist.all_reduce(mine, op=dist.ReduceOp.MIN)
            self._owners = mine.tolist()
            owned = [
                p for p, owner in zip(self._params, self._owners, strict=True) if owner == rank
            ]
            self._adam = torch.optim.Adam(owned or [torch.zeros(1)])
        self._adam.step()
        for p, owner in zip(self._params, self._owners, strict=True):
            dist.broadcast(p.data, owner)

    def zero_grad(self) -> None:
        """Free all gradients."""
        for p in self._params:
            p.grad = None


def held_mib(prepare: Prepare, world: int) -> float:
    """Return the most MiB that a rank holds, of weights, gradients and optimizer state.

    `prepare(layers)` returns a model of 8 linear layers (256, 256), 2 MiB in float32, and its
    optimizer. The figure is taken after the second backward.
    """
    from peakmem.measure.ranks import launch

    return float(max(launch(_held, world, prepare))) / _MIB


def _held(prepare: Prepare) -> int:
    import torch
    import torch.distributed as dist

    from peakmem.measure.meter import MemoryMeter

    x = torch.ones(1, _WIDTH)
    with MemoryMeter("cpu", history=False) as meter:
        model, optimizer = prepare(_layers())
        _step(model, x)
        optimizer.step()
        optimizer.zero_grad()
        _step(model, x)
        # torch's thread may hold a collective's tensors for a while after it has returned, but
        # frees them before it begins the next. (A barrier would hold on to earlier ones.)
        dist.all_reduce(torch.zeros(1))
        return meter.live_bytes - meter.baseline_bytes


def _layers(count: int = _LAYERS) -> list[nn.Module]:
    import torch
    from torch import nn

    torch.manual_seed(0)
    return [nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(count)]


def _step(model: Callable[..., Any], x: Tensor) -> None:
    model(x).square().mean().backward()


def rank_memory_mib(prepare: Prepare, world: int) -> list[float]:
    """Return rank 0's live MiB after each operation of a forward and backward pass.

    Like `held_mib`, without the optimizer's step.
    """
    from peakmem.measure.ranks import launch

    timeline: list[int] = launch(_timeline, world, prepare)[0]
    return [live / _MIB for live in timeline]


def _timeline(prepare: Prepare) -> list[int]:
    import torch

    from peakmem.measure.meter import MemoryMeter

    x = torch.ones(1, _WIDTH)
    with MemoryMeter("cpu") as meter:
        model, _ = prepare(_layers())
        before = len(meter.timeline)
        _step(model, x)
        return [live - meter.baseline_bytes for _, live in meter.timeline[before:]]


def sent_times(all_reduce: Callable[..., Any], worlds: Sequence[int]) -> dict[int, float]:
    """Return, for each number of ranks, what the busiest rank sends, in multiples of x.

    Empty on systems that don't report a process's written bytes.
    """
    from peakmem.probes.lab08 import run_all_reduce

    found = {}
    for world in worlds:
        sent = run_all_reduce(all_reduce, world, [_SENT_LENGTH], 0, large=True)["sent_bytes"]
        if None not in sent:
            found[world] = max(sent) / (4 * _SENT_LENGTH)
    return found


def stages_sliders(model_state_bytes: Callable[..., dict[str, float]]) -> Any:
    """Return sliders for parameters, ranks and recipe, and a rank's bytes by stage beside a GPU."""

    def draw(billions: float, ranks: int, recipe: str, board: str) -> tuple[Figure, str]:
        from peakmem.show.plots.lab08 import draw_stages
        from peakmem.specs.hardware import accelerator

        device = accelerator(board)
        stages = {
            stage: {
                part: held / 1e9
                for part, held in model_state_bytes(
                    round(billions * 1e9), ranks, stage, recipe
                ).items()
            }
            for stage in range(4)
        }
        gb = device.memory.bytes / 1e9
        fits = [stage for stage, held in stages.items() if sum(held.values()) <= gb]
        said = f"Stages that fit: {', '.join(map(str, fits))}" if fits else "No stage fits"
        figure = draw_stages(stages, "GB", most=(f"{board}, {gb:.0f} GB", gb))
        return figure, f"A rank's model states by stage of ZeRO. {said}; activations come on top."

    return explore(
        draw,
        billions=[0.125, 1.5, 7.5, 13.0, 70.0, 175.0],
        ranks=[1, 2, 4, 8, 16, 64, 256],
        recipe=["mixed", "fp32"],
        board=["a100-80gb", "v100-16gb", "h100-80gb"],
    )
