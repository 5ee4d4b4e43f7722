"""Probe of lab 10's module times, on a fake clock that only the modules' forwards advance.

So the machine's load can't matter. While the clock is active, all functions of Python's module
`time` read it, even those that the student's notebook imported by name.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from peakmem.probes import Namespace, as_sent
from peakmem.probes.hooks import hooks_on

__all__ = ["module_times", "timed"]

_CLOCKS = ("perf_counter", "monotonic", "time", "process_time", "thread_time")

Spec = Mapping[str, Any]


class _Clock:
    """A time in nanoseconds that only `advance` moves."""

    def __init__(self) -> None:
        self._nanoseconds = 10**9
        self.reads = 0

    def advance(self, milliseconds: int) -> None:
        self._nanoseconds += 10**6 * milliseconds

    def seconds(self) -> float:
        return self.nanoseconds() / 1e9

    def nanoseconds(self) -> int:
        self.reads += 1
        return self._nanoseconds


class _Worker(nn.Module):
    """A module whose forward takes some milliseconds before and after its children's forwards.

    `spec` has the `name`, `before` and `after`, how often the parent calls it (`calls`, possibly
    0), `children`, and perhaps a second name in the parent (`again`). Children of a `list` are in
    an nn.ModuleList, which has no forward. The spec can't be read from the module.
    """

    def __init__(self, spec: Spec, clock: _Clock) -> None:
        super().__init__()
        parts = {child["name"]: _Worker(child, clock) for child in spec["children"]}
        order = [(parts[child["name"]], child["calls"]) for child in spec["children"]]
        if spec.get("list"):
            self.parts = nn.ModuleList(parts.values())
        else:
            for name, part in parts.items():
                self.add_module(name, part)
            for child in spec["children"]:
                if "again" in child:
                    owner, _, name = child["again"].rpartition(".")
                    self.get_submodule(owner).add_module(name, parts[child["name"]])

        def work(x: Tensor) -> Tensor:
            clock.advance(spec["before"])
            _refuse_replaced(x)
            for part, calls in order:
                for _ in range(calls):
                    x = part(x)
                    _refuse_replaced(x)
            clock.advance(spec["after"])
            return x + 1

        self._work = work

    def forward(self, x: Tensor) -> Tensor:
        return self._work(x)


def _refuse_replaced(x: Any) -> None:
    """Raise TypeError unless x is a tensor, which only a hook's return value can change."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"a hook returned a {type(x).__name__}, which replaced a module's input or output; "
            "a hook that only watches returns nothing"
        )


def module_times(student: Namespace, tree: Spec) -> dict[str, Any]:
    """Time a tree of modules by the student's `module_times`; see `timed`."""
    return timed(student.module_times, tree)


def timed(function: Callable[..., Any], tree: Spec) -> dict[str, Any]:
    """Call `function(model, x)` on a model of `tree`, a module with `before`, `after`, `children`.

    It's called twice. Returns the `seconds` from the second call, how often that call `reads` the
    clock, how many `hooks` are left, whether the hook that the model had before is still there
    (`others_stay`), and whether its modules' training modes are as they were (`modes_stay`).
    """
    clock = _Clock()
    model = _Worker(tree, clock)
    before = model.register_forward_hook(lambda *_: None)
    model.eval()
    next(model.children(), model).train()  # as if one part weren't frozen
    modes = [module.training for module in model.modules()]
    with _in_force(clock, _globals_of(function)):
        function(model, torch.zeros(2))  # traces of this call must not affect the next one
        reads_before = clock.reads
        found = function(model, torch.zeros(2))
    others_stay = before.id in model._forward_hooks
    modes_stay = [module.training for module in model.modules()] == modes
    before.remove()
    left = hooks_on(model)
    for of_all in (torch_modules._global_forward_hooks, torch_modules._global_forward_pre_hooks):
        of_all.clear()
    results = {"seconds": as_sent(found), "reads": clock.reads - reads_before}
    return {**results, "hooks": left, "others_stay": others_stay, "modes_stay": modes_stay}


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the notebook's variables, given its function, a decorated function or an object.

    A decorator's own function belongs to the decorator's module.
    """
    function = inspect.unwrap(function)
    if isinstance(function, functools.partial):
        return _globals_of(function.func)
    if not hasattr(function, "__globals__"):
        function = inspect.unwrap(type(function).__call__)
    found: dict[str, Any] = getattr(function, "__globals__", {})
    return found


@contextmanager
def _in_force(clock: _Clock, names: dict[str, Any]) -> Iterator[None]:
    """Replace Python's clocks with this one, in `time` and in a notebook's variables, `names`."""
    ours: dict[str, Callable[[], Any]] = {}
    for name in _CLOCKS:
        ours |= {name: clock.seconds, f"{name}_ns": clock.nanoseconds}
    before = {name: getattr(time, name) for name in ours}
    bound = {n: v for n, v in names.items() if any(v is real for real in before.values())}
    try:
        for name, real in before.items():
            setattr(time, name, ours[name])
            names.update({n: ours[name] for n, v in bound.items() if v is real})
        yield
    finally:
        for name, real in before.items():
            setattr(time, name, real)
        names.update(bound)
