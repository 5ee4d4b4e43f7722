"""The one executor of plans: runs a module's stages with exactly the simulated memory.

Steps and copies begin and end in the simulator's order, however long they really take, so memory
follows the simulated timeline.

Long because lab 6 hides the executor as one module: a part in another module would give lab 6's
answers away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from peakmem.execute.saved_tensors import (
    FileLink,
    Link,
    Slot,
    Slots,
    StreamLink,
    View,
    movable,
    view_of,
)
from peakmem.plan.chain import Chain
from peakmem.plan.plan import Plan
from peakmem.plan.simulator import Span, simulate

__all__ = ["Execution", "run"]


@dataclass(frozen=True)
class Execution:
    """A run of a plan: its wall time and when each part ran."""

    #: Wall time from the first step's start to the last one's end.
    seconds: float
    #: When each step and copy really ran, in seconds from the start.
    spans: tuple[Span, ...]


def run(
    plan: Plan,
    module: Sequence[torch.nn.Module] | torch.nn.Sequential,
    inputs: torch.Tensor,
    chain: Chain | None = None,
    gradient_of: Callable[[torch.Tensor], torch.Tensor] = torch.ones_like,
) -> Execution:
    """Run one forward and one backward pass as a plan says; gradients accumulate as usual.

    `module` is an nn.Sequential or its stages in order. `chain` has the times and sizes that the
    plan's copies were scheduled with; a plan with copies needs it. `gradient_of` maps the output to
    its gradient. The default is the gradient of output.sum(), which suits a module that ends in a
    scalar loss. Gradients equal those of an ordinary step: recomputation draws the same random
    numbers and updates copies of the buffers, the only bytes that a plan doesn't count. No stage
    may change its input in place.

    Copies go to files if `inputs` are on the CPU. If they are on a GPU, copies go to pinned memory
    while it computes. Everything is freed afterwards, even after an error.

    Raises ValueError if the number of stages isn't the plan's, if a plan with copies comes without
    a chain, if a stage works in place, or, as `peakmem.plan.simulator.simulate` does, if the plan
    is invalid.

    >>> from peakmem.plan.chain import Stage
    >>> from peakmem.plan.segments import every_k
    >>> layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
    >>> plan = every_k(Chain((Stage(1, 1, 16, 16),) * 3), 2)
    >>> _ = run(plan, layers, torch.ones(4, 2))
    >>> layers[2].bias.grad
    tensor([4.])
    """
    stages = list(module)
    n = 1 + max(step.stage for step in plan.steps)
    if len(stages) != n or (chain is not None and len(chain) != n):
        raise ValueError(
            f"plan {plan.name!r} is for {n} stages, but the module has {len(stages)}"
            + (f" and the chain {len(chain)}" if chain is not None else "")
            + "; plan for this very module"
        )
    if plan.copies and chain is None:
        raise ValueError(
            "a plan with copies needs the chain it was made for, but got none; give chain=..."
        )
    link = StreamLink(inputs.device) if inputs.device.type == "cuda" else FileLink()
    playback = _Playback(plan, stages, inputs, link, gradient_of)
    try:
        playback.play(_order(plan, chain))
    finally:
        playback.drop()
        link.close()
    return playback.execution()


def _order(plan: Plan, chain: Chain | None) -> list[tuple[bool, str, int]]:
    """Return (begins, kind, stage) for the start and the end of every step and copy, in order."""
    if chain is None:
        return [(begins, *step) for step in plan.steps for begins in (True, False)]
    return [(e.begins, e.kind, e.stage) for e in simulate(chain, plan).timeline]


def _returning(order: Sequence[tuple[bool, str, int]], place: int) -> Iterator[int]:
    """Yield the stages whose copies in begin during the step that begins at this place.

    Only up to the end of a copy out: memory for later ones isn't free when the step begins.
    """
    step = order[place][1:]
    for begins, kind, stage in order[place + 1 :]:
        if not begins and (kind == "out" or (kind, stage) == step):
            return
        if begins and kind == "in":
            yield stage


@dataclass
class _Kept:
    """What a stage's forward saved for its backward."""

    #: The stage's output, which may be on the host.
    output: View | torch.Tensor
    #: The place in autograd's graph where the output's gradient enters.
    edge: GradientEdge | None
    #: The input's gradient, once backward has made it; empty until then.
    gradient: list[torch.Tensor]
    #: The storages of all saved tensors.
    slots: Slots


class _Entry(torch.autograd.Function):
    """Start of a stage's graph: collects the input's gradient without holding the input."""

    @staticmethod
    def forward(
        ctx: Any, anchor: torch.Tensor, value: torch.Tensor, gradient: list[torch.Tensor]
    ) -> torch.Tensor:
        ctx.gradient = gradient
        return value.detach()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[None, None, None]:
        ctx.gradient.append(grad)
        return None, None, None


class _Playback:
    """The state of a run: outputs, saved tensors, and the gradient that backward has reached."""

    def __init__(
        self,
        plan: Plan,
        stages: list[torch.nn.Module],
        inputs: torch.Tensor,
        link: Link,
        gradient_of: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        self.stages, self.inputs, self.link, self.gradient_of = stages, inputs, link, gradient_of
        self.swaps = bool(plan.copies)
        # Gives a stage without weights a graph.
        self.anchor = torch.empty(0, requires_grad=True)
        self.outputs: dict[int, torch.Tensor] = {}
        self.kept: dict[int, _Kept] = {}
        self.gradient: torch.Tensor | None = None
        self.random = _RandomStates(inputs.device)
        self.moving: list[Slot] = []
        self.marks: list[tuple[str, int, Any, Any]] = []
        self.started: dict[tuple[str, int], Any] = {}
        self.ended: Any = None  # mark at the end of the last finished step
        self.last: Any = None  # mark at the end of the last issued step

    def play(self, order: Sequence[tuple[bool, str, int]]) -> None:
        self.start = self.link.mark()
        for place, (begins, kind, stage) in enumerate(order):
            if begins and kind not in ("out", "in"):
                for returning in _returning(order, place):
                    self.link.make_room(list(self.kept[returning].slots.values()))
            mark = (self.begin if begins else self.end)(kind, stage)
            if begins:
                self.started[kind, stage] = mark
            else:
                self.marks.append((kind, stage, self.started.pop((kind, stage)), mark))
        self.stop = self.link.mark()

    def begin(self, kind: str, stage: int) -> Any:
        """Begin a step or copy, and return when it began. A step is issued as a whole."""
        if kind in ("out", "in"):
            self.moving = list(self.kept[stage].slots.values())
            act = self.link.out_begins if kind == "out" else self.link.in_begins
            return act(self.moving, self.ended)
        begun = self.link.mark()
        if kind == "keep":
            self.keep(stage)
        elif kind == "backward":
            self.backward(stage)
        else:
            self.outputs[stage] = self.forward(stage)
            if kind == "drop":
                del self.outputs[stage - 1]
        self.last = self.link.mark()
        return begun

    def end(self, kind: str, stage: int) -> Any:
        if kind not in ("out", "in"):
            self.ended = self.last
            return self.last
        moved, self.moving = self.moving, []
        return (self.link.out_ends if kind == "out" else self.link.in_ends)(moved)

    def input_of(self, stage: int) -> torch.Tensor:
        if stage == 0:
            return self.inputs
        if stage - 1 in self.outputs:
            return self.outputs[stage - 1]
        output = self.kept[stage - 1].output
        return output.tensor() if isinstance(output, View) else output

    def forward(self, stage: int) -> torch.Tensor:
        """Run a forward that saves nothing for backward."""
        with torch.no_grad():
            return self.call(stage, self.input_of(stage))

    def keep(self, stage: int) -> None:
        """Run a forward that saves everything backward needs."""
        value, gradient, slots = self.input_of(stage), list[torch.Tensor](), Slots()
        with torch.enable_grad(), self.packing(stage, value, slots):
            if stage and (value.is_floating_point() or value.is_complex()):
                value = _Entry.apply(self.anchor, value, gradient)  # type: ignore[no-untyped-call]
            output = self.call(stage, value)
        edge = get_gradient_edge(output) if output.requires_grad else None
        output = output.detach()
        kept = view_of(output, slots) if self.swaps else output
        self.kept[stage] = _Kept(kept, edge, gradient, slots)

    def packing(self, stage: int, value: torch.Tensor, slots: Slots) -> AbstractContextManager[Any]:
        if not self.swaps:
            return nullcontext()
        module = self.stages[stage]
        staying = {x.untyped_storage().data_ptr() for x in module.parameters()}
        staying |= {x.untyped_storage().data_ptr() for x in module.buffers()}
        given = None
        if stage and stage - 1 not in self.outputs:
            output = self.kept[stage - 1].output
            given = output if isinstance(output, View) else None
        else:
            staying.add(value.untyped_storage().data_ptr())
        return movable(slots, given, staying)

    def call(self, stage: int, value: torch.Tensor) -> torch.Tensor:
        """Call a stage; a repeated call reproduces the first one's randomness and buffers."""
        module, version = self.stages[stage], value._version
        with self.random.of(stage) as again:
            buffers = {name: b.clone() for name, b in module.named_buffers()} if again else {}
            if buffers:
                output = torch.func.functional_call(module, buffers, (value,))
            else:
                output = module(value)
        if value._version != version:
            raise ValueError(
                f"stage {stage}, {type(module).__name__}, changes its input in place, which "
                "another step may need; give it inplace=False"
            )
        return output  # type: ignore[no-any-return]

    def backward(self, stage: int) -> None:
        kept = self.kept[stage]
        if stage == len(self.stages) - 1:
            output = kept.output.tensor() if isinstance(kept.output, View) else kept.output
            self.gradient = self.gradient_of(output)
            del output
        if kept.edge is not None and self.gradient is not None:
            torch.autograd.backward(kept.edge, self.gradient)
        self.gradient = kept.gradient.pop() if kept.gradient else None
        del self.kept[stage]
        self.outputs.pop(stage - 1, None)

    def drop(self) -> None:
        """Release every tensor; called after an error too."""
        self.outputs.clear()
        self.kept.clear()
        self.gradient, self.moving = None, []

    def execution(self) -> Execution:
        seconds, start = self.link.seconds, self.start
        spans = [
            Span(kind, stage, seconds(start, begun), seconds(start, ended))
            for kind, stage, begun, ended in self.marks
        ]
        return Execution(seconds(start, self.stop), tuple(spans))


@dataclass
class _RandomStates:
    """The RNG states before each stage that draws random numbers."""

    device: torch.device
    #: The stages that have run.
    seen: set[int] = field(default_factory=set)
    #: The states before the first run of each stage that draws random numbers.
    before: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    @contextmanager
    def of(self, stage: int) -> Iterator[bool]:
        """Reproduce the stage's first draw of random numbers; yield whether this is a repeat."""
        now = self.read()
        again = stage in self.seen
        if again and stage in self.before:
            self.write(self.before[stage])
        yield again
        if not again:
            self.seen.add(stage)
            if any(not np.array_equal(a, b) for a, b in zip(now, self.read(), strict=True)):
                self.before[stage] = now
        else:
            self.write(now)

    def read(self) -> tuple[Any, ...]:
        # As numpy arrays: host memory, which the meter doesn't count.
        states = [torch.get_rng_state()]
        if self.device.type == "cuda":
            states.append(torch.cuda.get_rng_state(self.device))
        return tuple(state.numpy().copy() for state in states)

    def write(self, states: tuple[Any, ...]) -> None:
        torch.set_rng_state(torch.from_numpy(states[0].copy()))
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(torch.from_numpy(states[1].copy()), self.device)
