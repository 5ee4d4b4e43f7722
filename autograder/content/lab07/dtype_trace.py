"""Exercise: hooks that record the dtype of each module's output under autocast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from autograder.model.compare import first_item, same, show
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab07.trace import MODELS, model_and_input

__all__ = ["dtype_trace", "traced"]

Trace = list[list[str]]


def traced(module: nn.Module, x: torch.Tensor, dtype: torch.dtype | None, *, leaves: bool) -> Trace:
    """Return [name, dtype] of each output in order; without `dtype`, autocast is off.

    Traces only `leaves`, or all modules. Changes the module and the RNG state.
    """
    names = {part: name for name, part in module.named_modules()}
    found: Trace = []

    def note(part: nn.Module, inputs: Any, output: torch.Tensor) -> None:
        found.append([names[part], str(output.dtype).removeprefix("torch.")])

    for part in names:
        if not leaves or not list(part.children()):
            part.register_forward_hook(note)
    with torch.no_grad(), torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
        module(x)
    return found


def _run(inputs: Mapping[str, Any], dtype: str, *, leaves: bool = True) -> Trace:
    module, x = model_and_input(inputs["model"], inputs["training"], inputs["seed"])
    low = getattr(torch, dtype) if dtype else None
    with torch.random.fork_rng():
        return traced(module, x, low, leaves=leaves)


def _reference(inputs: Mapping[str, Any]) -> Trace:
    return _run(inputs, inputs["dtype"])


def _registered_order(inputs: Mapping[str, Any]) -> Trace:
    module, _ = model_and_input(inputs["model"], inputs["training"], inputs["seed"])
    order = [name for name, _ in module.named_modules()]
    return sorted(_reference(inputs), key=lambda entry: order.index(entry[0]))


def _each_once(inputs: Mapping[str, Any]) -> Trace:
    return list({name: [name, dtype] for name, dtype in _reference(inputs)}.values())


_MUTANTS: Mapping[str, Callable[[Mapping[str, Any]], Trace]] = {
    "without_autocast": lambda inputs: _run(inputs, ""),
    "always_bfloat16": lambda inputs: _run(inputs, "bfloat16"),
    "containers_too": lambda inputs: _run(inputs, inputs["dtype"], leaves=False),
    "each_once": _each_once,
    "registered_order": _registered_order,
    "low_for_all": lambda inputs: [[name, inputs["dtype"]] for name, _ in _reference(inputs)],
}


def _cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for model in MODELS:
        for dtype in ("bfloat16", "float16"):
            training = model != "rows" or dtype == "float16"
            seed = int(rng.integers(2**31))
            inputs = {"model": model, "training": training, "seed": seed, "dtype": dtype}
            cases.append(Case(("value",), inputs))
    return cases


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    return {"value": _finding(case.inputs, answer.value)}


def _finding(inputs: Mapping[str, Any], value: Any) -> Finding:
    if not isinstance(value, dict) or not isinstance(value.get("trace"), list):
        return Finding(False, "The answers came back garbled.")
    got, expected = _without_torch(value["trace"]), _reference(inputs)
    where = f"On {_ABOUT[inputs['model']]} with torch.{inputs['dtype']}"
    if not same(expected, got):
        differs = first_item("entry", ("value", expected), ("value", got), same, show)
        both = f"expected {show(expected, 400)}, but got {show(got, 400)}."
        said = f"{where}: {differs or both}"
        known = (name for name, mutant in _MUTANTS.items() if same(mutant(inputs), got))
        return Finding(False, said, (*known, *_left(value)))
    left = tuple(_left(value))
    return Finding(not left, f"{where} something changed." if left else "", left)


def _left(value: Mapping[str, Any]) -> Iterator[str]:
    """Every mistake visible in what the call left behind."""
    changes = {
        "hooks_left": not any(same(count, value.get("hooks")) for count in (0, -1)),
        "others_hooks": same(-1, value.get("hooks")),
        "state_changed": not same([], value.get("state")),
        "parameters_frozen": not same([], value.get("frozen")),
        "mode_changed": not same([], value.get("modes")),
        "random_numbers_drawn": value.get("rng") is not False,
    }
    yield from (name for name, changed in changes.items() if changed)


def _without_torch(trace: list[Any]) -> list[Any]:
    """Both "bfloat16" and "torch.bfloat16" name the dtype."""
    return [
        [entry[0], entry[1].removeprefix("torch.")]
        if isinstance(entry, list) and len(entry) == 2 and all(isinstance(e, str) for e in entry)
        else entry
        for entry in trace
    ]


_ABOUT = {
    "images": "a convolution, batch norm, ReLU, Flatten and Linear",
    "rows": "layer norm, Linear, Dropout and Softmax",
    "twice": "an embedding, a block that runs twice, dropout in training mode, and a head",
    "alone": "a single Linear, whose name is the empty string",
}

dtype_trace = Task(
    id="lab07-dtype_trace",
    parts={"value": 2},
    defines=("dtype_trace",),
    probe="dtype_trace",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "without_autocast": "Your forward runs without autocast, so every output is float32. Call "
        "the module within torch.autocast(x.device.type, dtype=dtype).",
        "always_bfloat16": "Your autocast ignores the dtype it was given. Pass it on: "
        "torch.autocast(x.device.type, dtype=dtype).",
        "low_for_all": "Your trace names the 16-bit dtype for every module. Read the output's own "
        "dtype: not all of them run in 16 bits.",
        "containers_too": "Your trace includes modules that contain others. A leaf has no "
        "children: `not list(part.children())`.",
        "registered_order": "Your trace is in the order in which the modules were made. Record "
        "each module in its hook, to get the order in which they run.",
        "each_once": "A module that runs twice appears only once in your trace. Keep a list, not "
        "a dict by name.",
        "hooks_left": "Your hooks stay on the module. Keep the handle that register_forward_hook "
        "returns, and call its remove().",
        "others_hooks": "You removed a hook that the module had before. Remove only your own "
        "hooks, by their handles, or trace a copy.",
        "state_changed": "Your forward changed the module: in training mode, batch norm updates "
        "its running statistics. Run a copy.deepcopy of the module, or put its buffers back.",
        "parameters_frozen": "The module's parameters no longer require a gradient. Run a copy, or "
        "run the module within torch.no_grad().",
        "mode_changed": "Your function changes the module's mode. Trace it in its current mode.",
        "random_numbers_drawn": "Dropout drew random numbers, so all later ones differ. Run the "
        "forward within torch.random.fork_rng().",
    },
)
