"""What lab 5's self-checks call: a student's function on a model that reveals its mistakes."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.core.errors import OutOfMemory
from peakmem.labs.lab05.limits import (
    Function,
    beside_one,
    check_size,
    no_number,
    recording_left_on,
)
from peakmem.measure.meter import measure_call
from peakmem.probes.hooks import hooks_on
from peakmem.probes.lab05.gradients import without_options
from peakmem.probes.lab05.leak import most_bytes, validated
from peakmem.probes.leak import measured_run

__all__ = [
    "accumulated",
    "epoch_of",
    "gap_of",
    "rise_of",
    "searches",
    "validation_of",
]

_MIB = 2**20
_DIGITS = 4


class Louder(nn.Linear):
    """Gives different results in training and in evaluation, like dropout.

    It takes up to `most` samples at a time.
    """

    most = 0

    def forward(self, x: Tensor) -> Tensor:
        """Return the product, twice as large in training."""
        check_size(x, self.most)
        return super().forward(x) * (2 if self.training else 1)


def accumulated(accumulate: Function) -> Function:
    """Return a function (samples, micro_batch, ...) -> (gradient, loss) of a model of one weight.

    The weight is 1, the samples 1, 2, 3, ..., the targets 0. A bias of 0 never has a gradient
    before. Returns a sentence instead if more than the gradient changes.
    """

    def run(
        samples: int,
        micro_batch: int,
        before: float = 0.0,
        training: bool = False,
        loss_fn: Function = F.mse_loss,
    ) -> object:
        model = Louder(1, 1).train(training)
        model.most = micro_batch
        model.weight.data.fill_(1.0)
        model.bias.data.zero_()
        model.weight.grad = torch.full((1, 1), before) if before else None
        inputs = torch.arange(1.0, samples + 1)[:, None]
        targets, plain = torch.zeros(samples, 1), without_options(loss_fn)
        loss = accumulate(model, plain, inputs, targets, micro_batch)
        if not recording_left_on() or inputs.requires_grad or not model.weight.requires_grad:
            return "requires_grad has changed"
        if model.weight.item() != 1.0:
            return "the weight has changed"
        if model.training != training:
            return "the model's mode has changed"
        if hooks_on(model):
            return "a hook is left"
        if problem := no_number(loss, "loss"):
            return problem
        if model.weight.grad is None:
            return "no gradient"
        return round(model.weight.grad.item(), _DIGITS), round(float(loss), _DIGITS)

    return run


def rise_of(accumulate: Function) -> Callable[[], str]:
    """Return a function that tells whether eight micro-batches take over twice what one has to."""

    def run() -> str:
        return beside_one(_rise_bytes(_one_backward, 2), _rise_bytes(accumulate, 16))

    return run


def _one_backward(
    model: nn.Module, loss_fn: Function, inputs: Tensor, targets: Tensor, _: int
) -> None:
    loss_fn(model(inputs), targets).backward()


def _rise_bytes(accumulate: Function, samples: int) -> int:
    model = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(8, 8), nn.Tanh())))
    data = torch.ones(samples, 512, 8)
    plain = without_options(F.mse_loss)
    found = measure_call(accumulate, model, plain, data, data, 2, device="cpu")
    recording_left_on()
    return found.rise_bytes


def validation_of(validate: Function) -> Callable[[], tuple[Any, ...]]:
    """Return a function that gives a small validation's loss and traces, and a large one's peak."""
    small = {"samples": 10, "micro_batch": 3, "length": 2, "width": 4, "n_layers": 2, "seed": 0}
    large = {"samples": 32, "micro_batch": 2, "length": 512, "width": 32, "n_layers": 8, "seed": 0}

    def run() -> tuple[Any, ...]:
        results = validated(validate, **small, training=True)
        found = measured_run(validated, validate, large, {"samples": 2}, metered=True)
        peak, most = found["rise_bytes"] + found["numpy_rise_bytes"], most_bytes(**large)
        said = f"within {most / _MIB:.1f} MiB" if peak <= most else f"{peak / _MIB:.1f} MiB"
        mode = "training mode" if results["training"] else "evaluation mode"
        loss = results["loss"]
        if isinstance(loss, float):  # so that a mistake's loss is known however it is summed
            loss = round(loss, _DIGITS)
        return loss, f"gradients {results['gradients']}", mode, said

    return run


class _Slope(nn.Module):
    """Two weights, and a loss whose gradients are the number it is given, and 3/4 of that.

    In evaluation mode they are twice as large.
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.other = nn.Parameter(torch.zeros(()))
        self.waiting = 0  # losses whose backward is still to come

    def forward(self, slope: Any) -> Tensor:
        if isinstance(slope, tuple):
            raise TypeError("the loader yields tuples of arguments: call model(*batch)")
        if self.waiting:
            raise ValueError("call backward() on each loss before the next micro-batch runs")
        loss: Tensor = self.weight * slope + self.other * (0.75 * slope)
        if not self.training:
            loss = 2 * loss
        self.waiting += 1
        loss.register_hook(self._begins)  # type: ignore[no-untyped-call]
        return loss

    def _begins(self, _: Tensor) -> None:
        self.waiting -= 1


class _Loader:
    """Like torch's DataLoader, it can be looped over, but isn't an iterator itself."""

    def __init__(self, slopes: Sequence[float]) -> None:
        self.slopes, self.loops = slopes, 0

    def __iter__(self) -> Iterator[tuple[float]]:
        self.loops += 1
        if self.loops > 1:
            raise ValueError(
                "the loader started over: call iter(loader) once, and take all batches from that"
            )
        return ((slope,) for slope in self.slopes)


def epoch_of(train_epoch: Function) -> Function:
    """Return a function (slopes, steps, ...) -> (updates, gradients the optimizer saw, events).

    A slope is the gradient of one weight for a micro-batch; of another weight it is 3/4 of that.
    Events are "update" and "schedule", in order, followed by "dirty" if gradients are left.
    """

    def run(slopes: Sequence[float], steps: int, schedule: bool = False, **options: Any) -> object:
        model, events, seen = _Slope(), [], []

        class Noting(torch.optim.SGD):
            def step(self, closure: Any = None) -> Any:
                if closure is not None:
                    closure()  # it makes the gradients
                gradient = self.param_groups[0]["params"][0].grad
                events.append("update")
                seen.append(None if gradient is None else round(gradient.item(), _DIGITS))
                return super().step()

        optimizer = Noting([{"params": [p]} for p in model.parameters()], lr=0.1)  # two groups
        if schedule:
            options["scheduler"] = SimpleNamespace(step=lambda: events.append("schedule"))
        count = train_epoch(model, optimizer, _Loader(slopes), steps, **options)
        left = any(p.grad is not None and bool(p.grad.any()) for p in model.parameters())
        if isinstance(count, float):
            count = f"{count}: return a whole number"
        return count, tuple(seen), " ".join([*events, *["dirty"] * left])

    return run


def searches(largest_micro_batch: Function) -> Function:
    """Return a function (room, upper, ...) -> what the search finds, or how it searched.

    Runs raise `error`, if one is given, after so many good runs.
    """

    def run(
        room: int, upper: int, error: type[Exception] | None = None, good_runs: int = 0
    ) -> object:
        sizes: list[int] = []

        def once(m: int) -> object:
            if not 1 <= operator.index(m) <= upper:  # a TypeError for 2.5: half a sample
                raise ValueError(f"run({m}) was called, but sizes go from 1 to {upper}")
            sizes.append(m)
            if len(sizes) > 2000:
                raise ValueError(
                    "2000 runs without an end: does each run make the interval smaller?"
                )
            if error is not None and len(sizes) > good_runs:
                raise error("out of memory? No, this is a bug")
            if m > room:
                raise OutOfMemory("aten::bmm asked for too much")
            return m % 2 or None  # which says nothing

        try:
            found = largest_micro_batch(once, upper)
        except OutOfMemory:
            return "OutOfMemory came out of it"
        except Exception as raised:
            if error is not None and type(raised) is error:
                return f"{error.__name__} passed through"
            raise
        if error is not None:
            return f"{error.__name__} was hidden"
        allowed = math.ceil(math.log2(upper)) + 2
        return found if len(sizes) <= allowed else f"{found}, after {len(sizes)} runs"

    return run


def gap_of(batch_norm_gap: Function) -> Function:
    """Return a function (values, micro_batch, ...) -> one layer's gap, or what the call changed.

    A sample is a value, or a list of several features.
    """

    def run(
        values: Sequence[Any], micro_batch: int, training: bool = True, layer: str = "batch"
    ) -> object:
        x = torch.tensor(values).reshape(len(values), -1)
        width = x.shape[1]
        norms = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm, "channels": nn.BatchNorm2d}
        norm = norms[layer](width)
        # Layers within layers have modes, too.
        layers = nn.Sequential(norm)
        if layer == "channels":  # the same, for images of one pixel
            layers = nn.Sequential(nn.Unflatten(1, (width, 1, 1)), norm, nn.Flatten())
        model = nn.Sequential(layers, nn.Identity()).train(training)
        norm.train(not training)  # a layer in a different mode from the rest
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        before, given = copy.deepcopy(model.state_dict()), x.clone()
        modes = [module.training for module in model.modules()]
        gap = batch_norm_gap(model, x, micro_batch)
        if not recording_left_on():
            return "gradients are off"
        if problem := no_number(gap, "gap"):
            return problem
        if not torch.equal(x, given):
            return "x has changed"
        return _changed(model, before, modes) or round(float(gap), 3)

    return run


def _changed(model: nn.Module, before: Mapping[str, Tensor], modes: Sequence[bool]) -> str:
    """What a call changed in a model whose gradients were 1; empty if nothing."""
    after, parameters = model.state_dict(), list(model.parameters())
    if any(not torch.equal(after[name], before[name]) for name in before):
        return "running statistics have changed"
    if [module.training for module in model.modules()] != modes:
        return "a mode has changed"
    if any(p.grad is None or bool((p.grad != 1).any()) for p in parameters):
        return "a gradient has changed"
    tracks = all(getattr(m, "track_running_stats", True) is True for m in model.modules())
    return "" if tracks and all(p.requires_grad for p in parameters) else "a setting has changed"
