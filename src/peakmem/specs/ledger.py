"""A training step's memory, tensor by tensor: owner, size, and lifetime.

Time is counted in events; each operator is one event. A tensor made at event 3 and last used at
event 7 has birth 3 and death 7, and is live at both, because an operator's inputs and outputs
coexist. Tensors that exist before the first event have birth 0.

Predictions, traces and measurements all return a Ledger, so they can be compared directly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, get_args

from peakmem.core.units import both

__all__ = ["Event", "Ledger", "Owner", "Phase", "Tensor"]

Owner = Literal[
    "parameter",
    "gradient",
    "master",
    "optimizer_state",
    "activation",
    "logits",
    "temporary",
    "communication",
]
Phase = Literal["forward", "backward", "optimizer"]

_OWNERS: tuple[Owner, ...] = get_args(Owner)
_PLURALS = {
    "parameter": "parameters",
    "gradient": "gradients",
    "master": "master weights",
    "optimizer_state": "optimizer state",
    "activation": "activations saved for backward",
    "logits": "logits",
    "temporary": "temporaries",
    "communication": "communication buffers",
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One allocation; tensors that share storage are one row.

    Raises ValueError if the owner is unknown, or if bytes or lifetime are out of range.
    """

    #: A name for readers, such as "blocks.3.mlp.up.weight".
    name: str
    #: Its purpose. Tensors saved for backward are activations; logits, and the tensors that the
    #: loss saves of them, have an owner of their own.
    owner: Owner
    #: The shape it was allocated with.
    shape: tuple[int, ...]
    #: A name from `formats` ("fp32"), or "int64", "uint8", "bool".
    dtype: str
    #: Size of the whole storage.
    bytes: int
    #: The first event at which it is live.
    birth: int
    #: The last event at which it is live.
    death: int
    #: Its layer, such as "blocks.3"; empty if it has none or the layer is unknown.
    layer: str = ""
    #: The module within its layer, or outside all layers, such as "attention"; empty if unknown.
    module: str = ""
    #: The name of the tensor it copies in another format; empty if it isn't such a copy.
    copy_of: str = ""
    #: The name of the parameter whose gradient it is; empty if it isn't a parameter's gradient.
    gradient_of: str = ""

    def __post_init__(self) -> None:
        if self.owner not in _OWNERS:
            raise ValueError(
                f"{self.name}: owner {self.owner!r} is unknown; use one of {', '.join(_OWNERS)}"
            )
        if self.bytes < 0 or not 0 <= self.birth <= self.death:
            raise ValueError(
                f"{self.name}: expected bytes >= 0 and 0 <= birth <= death, but got "
                f"{self.bytes} bytes from event {self.birth} to {self.death}"
            )


@dataclass(frozen=True, slots=True)
class Event:
    """One operator of a step."""

    #: The operator's name.
    name: str
    #: The part of the step that it belongs to.
    phase: Phase
    #: Its layer, such as "blocks.3"; empty if it has none or the layer is unknown.
    layer: str = ""


@dataclass(frozen=True)
class Ledger:
    """All tensors of one training step, and its events in order.

    Raises ValueError if there are no events, or if a tensor outlives the last one.

    >>> weights = Tensor("w", "parameter", (256,), "fp32", 1024, birth=0, death=1)
    >>> product = Tensor("y", "activation", (512,), "fp32", 2048, birth=1, death=1)
    >>> ledger = Ledger((weights, product), (Event("start", "forward"), Event("mul", "forward")))
    >>> ledger.peak_bytes, ledger.by_owner()
    (3072, {'parameter': 1024, 'activation': 2048})
    """

    #: All tensors, in any order.
    tensors: tuple[Tensor, ...]
    #: All events; a tensor's birth and death are positions in them.
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not self.events:
            raise ValueError("a ledger without events has no peak; record at least one")
        for tensor in self.tensors:
            if tensor.death >= len(self.events):
                raise ValueError(
                    f"{tensor.name} lives until event {tensor.death}, but the last event is "
                    f"{len(self.events) - 1}"
                )

    @cached_property
    def live_bytes(self) -> tuple[int, ...]:
        """Bytes live at each event."""
        return self._swept(self.tensors)

    def live_by_owner(self) -> dict[Owner, tuple[int, ...]]:
        """Return the bytes live at each event by owner, in the order of first appearance."""
        of: dict[Owner, list[Tensor]] = {}
        for tensor in self.tensors:
            of.setdefault(tensor.owner, []).append(tensor)
        return {owner: self._swept(tensors) for owner, tensors in of.items()}

    def _swept(self, tensors: Iterable[Tensor]) -> tuple[int, ...]:
        """Return these tensors' live bytes at each event, by one sweep over births and deaths."""
        change = [0] * (len(self.events) + 1)
        for tensor in tensors:
            change[tensor.birth] += tensor.bytes
            change[tensor.death + 1] -= tensor.bytes
        return tuple(accumulate(change[:-1]))

    @property
    def peak_bytes(self) -> int:
        """The most bytes live at once."""
        return max(self.live_bytes)

    @property
    def peak_event(self) -> int:
        """The first event of the peak."""
        return self.live_bytes.index(self.peak_bytes)

    @property
    def peak_phase(self) -> Phase:
        """The phase of the peak's event."""
        return self.events[self.peak_event].phase

    def timeline(self) -> list[tuple[Event, int]]:
        """Return each event with the bytes live at it."""
        return list(zip(self.events, self.live_bytes, strict=True))

    def live(self, event: int | None = None) -> list[Tensor]:
        """Return the tensors live at an event (default: the peak's), the largest first.

        Raises ValueError if there is no such event.
        """
        at = self.peak_event if event is None else event
        if not 0 <= at < len(self.events):
            raise ValueError(f"expected an event from 0 to {len(self.events) - 1}, but got {at}")
        there = [tensor for tensor in self.tensors if tensor.birth <= at <= tensor.death]
        return sorted(there, key=lambda tensor: -tensor.bytes)

    def by_owner(self, event: int | None = None) -> dict[Owner, int]:
        """Return the live bytes by owner at an event (default: the peak's), without zeros."""
        return _by_owner(self.live(event))

    def by_layer(self, event: int | None = None) -> dict[str, dict[Owner, int]]:
        """Return each layer's live bytes by owner at an event (default: the peak's).

        Layers are in the order of the ledger's tensors; tensors without a layer are under "".
        """
        layers: dict[str, list[Tensor]] = {}
        there = {id(tensor) for tensor in self.live(event)}
        for tensor in self.tensors:
            if id(tensor) in there:
                layers.setdefault(tensor.layer, []).append(tensor)
        return {layer: _by_owner(tensors) for layer, tensors in layers.items()}

    def by_module(self, event: int | None = None) -> dict[str, dict[str, dict[Owner, int]]]:
        """Return bytes by layer, module within it, and owner, in the order of the tensors."""
        there = {id(tensor) for tensor in self.live(event)}
        found: dict[str, dict[str, list[Tensor]]] = {}
        for tensor in self.tensors:
            if id(tensor) in there:
                modules = found.setdefault(tensor.layer, {})
                modules.setdefault(tensor.module, []).append(tensor)
        return {
            layer: {module: _by_owner(tensors) for module, tensors in modules.items()}
            for layer, modules in found.items()
        }

    def last_event(self, phase: Phase) -> int:
        """Return the last event of a phase. Raises ValueError if the phase has no event."""
        found = [i for i, event in enumerate(self.events) if event.phase == phase]
        if not found:
            phases = ", ".join(dict.fromkeys(event.phase for event in self.events))
            raise ValueError(f"this ledger has no {phase} phase; it has {phases}")
        return found[-1]

    def explain(self, largest: int = 3) -> str:
        """Return the peak as text: when it is, its owners, and the largest single tensors."""
        event = self.events[self.peak_event]
        lines = [f"Peak: {both(self.peak_bytes)}, in the {event.phase} phase, at {event.name}."]
        owners = sorted(self.by_owner().items(), key=lambda item: -item[1])
        for owner, n_bytes in owners:
            share = n_bytes / self.peak_bytes if self.peak_bytes else 0.0
            lines.append(f"{share:6.1%}  {_PLURALS[owner]}: {both(n_bytes)}")
        for tensor in self.live()[:largest]:
            size = " x ".join(map(str, tensor.shape)) or "one number"
            lines.append(f"large: {tensor.name} ({size}, {tensor.dtype}): {both(tensor.bytes)}")
        return "\n".join(lines)


def _by_owner(tensors: Iterable[Tensor]) -> dict[Owner, int]:
    """Return the sums of bytes by owner, in the order of `Owner`, without zeros."""
    total = dict.fromkeys(_OWNERS, 0)
    for tensor in tensors:
        total[tensor.owner] += tensor.bytes
    return {owner: n_bytes for owner, n_bytes in total.items() if n_bytes}
