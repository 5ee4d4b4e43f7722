"""find_the_leak: a log of activations that keeps the activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from autograder.content.leaks import Leak, leak_task
from peakmem.probes.lab04.leak import logged_steps

__all__ = ["find_the_leak", "step_with_log"]

_SIDE, _LAYERS, _LENGTH = 512, 16, 4  # a segment's length is the given code's
_TENSORS = 14  # the input, four segments' inputs, what one segment saves, and its gradients


def step_with_log(
    layers: Sequence[nn.Module],
    x: Tensor,
    *,
    note: Callable[[Tensor], float] = lambda output: output.detach().square().mean().item(),
    remove: bool = True,
    logged: Callable[[list[float], int], list[float]] = lambda log, n: log[:n],
) -> list[float]:
    """One checkpointed forward and backward; return the mean square of each layer's output.

    Each option turns it into one of the mistakes.
    """
    log: list[float] = []

    def hook(layer: nn.Module, inputs: Any, output: Tensor) -> None:
        log.append(note(output))

    def segment(x: Tensor, first: int) -> Tensor:
        for layer in layers[first : first + _LENGTH]:
            x = layer(x)
        return x

    handles = [layer.register_forward_hook(hook) for layer in layers]
    for first in range(0, len(layers), _LENGTH):
        x = torch_checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()  # type: ignore[no-untyped-call]
    for handle in handles if remove else ():
        handle.remove()
    return logged(log, len(layers))


def _sizes(rng: np.random.Generator, side: int, n_layers: int) -> dict[str, int]:
    return {"n_layers": n_layers, "rows": side, "columns": side, "seed": int(rng.integers(2**31))}


def _with_hooks(layers: Sequence[nn.Module], x: Tensor) -> list[float]:
    return step_with_log(layers, x, remove=False)


def _with_hooks_and_twice(layers: Sequence[nn.Module], x: Tensor) -> list[float]:
    return step_with_log(layers, x, remove=False, logged=lambda log, n: log)


def _with_input_changed(layers: Sequence[nn.Module], x: Tensor) -> list[float]:
    return step_with_log(layers, x.requires_grad_())


def _tensors(count: int) -> Callable[[Mapping[str, Any]], int]:
    return lambda sizes: count * 4 * sizes["rows"] * sizes["columns"]


def _small(rng: np.random.Generator) -> dict[str, int]:
    """One layer more than whole segments, so that a loop that ends one layer early misses it."""
    return _sizes(rng, int(rng.integers(3, 9)), _LENGTH * int(rng.integers(1, 4)) + 1)


find_the_leak = leak_task(
    Leak(
        lab="lab04",
        function="step_with_log",
        work=logged_steps,
        reference=step_with_log,
        small=_small,
        large=lambda rng: _sizes(rng, _SIDE, _LAYERS),
        most_bytes=_tensors(_TENSORS),
        # More layers than the text speaks of, so that an answer that writes 16 for them fails.
        edges=[{"n_layers": _LAYERS + 5, "rows": 4, "columns": 4, "seed": 0}],
        mutants={
            "hooks_stay": _with_hooks,
            "outputs_of_each_step": _with_hooks,
            "inputs_changed": _with_input_changed,
            "logs_twice": lambda layers, x: step_with_log(layers, x, logged=lambda log, n: log),
            "logs_twice_and_hooks_stay": _with_hooks_and_twice,
            "not_squared": lambda layers, x: step_with_log(
                layers, x, note=lambda output: output.detach().mean().item()
            ),
        },
        leaks={
            "outputs_of_each_step": _tensors(48),
            "outputs_stay": _tensors(28),
            "graph_stays": _tensors(22),
            "no_checkpoint": _tensors(18),
        },
        mistakes={
            "hooks_stay": "Your hooks stay on the layers, one more per step. Keep the handles that "
            "register_forward_hook returns, and remove() them.",
            "outputs_of_each_step": "The hooks' list holds every output, and the hooks stay on "
            "the layers, so each step's list is still alive in the next step. Log the number, not "
            "the tensor, and remove the hooks.",
            "outputs_stay": "Your list still holds every output. detach() makes a tensor without a "
            "graph, but with the same storage. Reduce the output to a number in the hook.",
            "graph_stays": "Every output is still alive: a mean's graph saves its output, or a "
            "list holds the outputs, where detach() doesn't help. Log the mean of output.detach() "
            "as a number, with .item().",
            "no_checkpoint": "The log is small now, but too many activations are live at once. "
            "Run the layers through checkpoint in segments of four, as the given code does.",
            "logs_twice": "Your log has each layer twice: hooks run again when a segment is "
            "recomputed. Log forward's values only.",
            "logs_twice_and_hooks_stay": "Your log has each layer twice, because hooks run again "
            "when a segment is recomputed, and your hooks stay on the layers. Log forward's "
            "values only, keep the handles that register_forward_hook returns, and remove() them.",
            "inputs_changed": "Your function changes x or the list of layers, which belong to the "
            "caller. If you made x require a gradient, that gradient stays in memory.",
            "not_squared": "You log the mean of the outputs. Log the mean of their squares.",
        },
    ),
)
