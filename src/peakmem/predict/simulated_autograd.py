"""Simulated autograd: operators run by name and size only, and a ledger records their tensors.

A `Tape` plays a training step without numbers. Each operator is an event: it makes tensors and
touches others. A `Rule` (see `autograd_rules`) says which tensors the operator saves for backward,
and which gradients backward makes. A tensor lives from the event that makes it to the last event
that touches it, so the whole `Ledger` follows from the order of the operators.

Long because a tape is one state: making, saving and freeing tensors belongs in one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from math import prod

from peakmem.predict.autograd_rules import Rule
from peakmem.specs.ledger import Event, Ledger, Owner, Phase, Tensor
from peakmem.specs.recipes import storage_bytes

__all__ = ["Side", "Tape", "Value"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """A side output of an operator, such as a mask."""

    #: Its name, such as "mask".
    name: str
    #: Its shape.
    shape: Shape
    #: Its dtype, such as "bool".
    dtype: str


@dataclass(slots=True)
class _Storage:
    """A ledger's tensor while the step is played; its fields are those of `Tensor`."""

    name: str
    owner: Owner
    shape: Shape
    dtype: str
    birth: int
    #: The last event that used it so far.
    last: int
    layer: str
    module: str = ""
    copy_of: str = ""
    gradient_of: str = ""


@dataclass(eq=False, slots=True)
class Value:
    """A tensor; views of one another share a storage."""

    #: Its storage.
    storage: _Storage
    #: Its shape.
    shape: Shape
    #: Its dtype.
    dtype: str
    #: The dtype of its gradient.
    gradient_dtype: str
    #: Whether it is a parameter, whose gradients add up and stay.
    is_parameter: bool = False
    #: Whether backward makes a gradient for it.
    requires_grad: bool = True


@dataclass(eq=False, slots=True)
class _Saved:
    """A node's saved tensor, or a placeholder that the segment's second run fills."""

    value: Value | None
    segment: _Segment | None = None


@dataclass(eq=False, slots=True)
class _Segment:
    """A checkpointed part of forward: how to run it again, and the places to fill."""

    run: Callable[[], object]
    kept: Value
    autocast: bool
    places: list[_Saved] = field(default_factory=list)
    filled: int | None = None  # places filled so far; None until the second run


@dataclass(eq=False, slots=True)
class _Node:
    """One operator of forward, as backward finds it."""

    operands: Mapping[str, Value]
    outputs: tuple[Value, ...]
    #: Which tensors it saves, and what its backward makes.
    rule: Rule
    saved: list[_Saved]
    name: str
    #: Its layer and module.
    place: tuple[str, str]
    #: What its backward has beside gradients, from its start to its end.
    scratch: tuple[Side, ...] = ()


class _Filled(Exception):
    """Every place of a segment is filled, so the rest of its second run can be skipped."""


class Tape:
    """The events and storages of a training step as it is played.

    With `keep_gradients=False`, a parameter's gradient is freed as soon as it is complete.

    >>> tape = Tape()
    >>> x = tape.resident("x", "activation", (8, 4), "fp32")
    >>> y = tape.apply("relu", Rule(saves=("output",)), {"x": x}, (8, 4), "fp32")
    >>> tape.ledger().peak_bytes
    256
    """

    def __init__(self, *, keep_gradients: bool = True) -> None:
        self.phase: Phase = "forward"
        self._keep_gradients = keep_gradients
        self._events = [Event("start", "forward")]
        self._storages: list[_Storage] = []
        self._residents: list[Value] = []
        self._gradients: dict[Value, Value] = {}  # parameter -> gradient
        self._nodes: list[_Node] = []
        self._segment: _Segment | None = None  # the one that is running
        self._casts: dict[Value, Value] | None = None  # copies of parameters, under autocast
        self.place = ("", "")  # layer and module of the operators that run now

    def ledger(self) -> Ledger:
        """Return the ledger of everything played so far."""
        self.touch([*self._residents, *self._gradients.values()])
        sizes = {(s.shape, s.dtype) for s in self._storages}
        n_bytes = {(shape, dtype): storage_bytes(prod(shape), dtype) for shape, dtype in sizes}
        tensors = tuple(
            Tensor(
                name=s.name,
                owner=s.owner,
                shape=s.shape,
                dtype=s.dtype,
                bytes=n_bytes[s.shape, s.dtype],
                birth=s.birth,
                death=s.last,
                layer=s.layer,
                module=s.module,
                copy_of=s.copy_of,
                gradient_of=s.gradient_of,
            )
            for s in self._storages
        )
        return Ledger(tensors, tuple(self._events))

    # Tensors and events.

    def resident(
        self,
        name: str,
        owner: Owner,
        shape: Shape,
        dtype: str,
        *,
        gradient_dtype: str = "",
        requires_grad: bool = True,
        layer: str = "",
        module: str = "",
    ) -> Value:
        """Return a tensor that lives from the start to the end."""
        value = self._new(name, owner, shape, dtype, birth=0)
        value.storage.layer, value.storage.module = layer, module
        value.gradient_dtype = gradient_dtype or dtype
        value.requires_grad = requires_grad
        value.is_parameter = owner == "parameter"
        self._residents.append(value)
        return value

    def event(self, name: str, touches: Iterable[Value] = ()) -> None:
        """Run an operator; calls of `make` right after it declare its allocations."""
        self._events.append(Event(name, self.phase, self.place[0]))
        self.touch(touches)

    def make(self, name: str, shape: Shape, dtype: str, owner: Owner = "temporary") -> Value:
        """Return a tensor that the latest operator allocated."""
        return self._new(name, owner, shape, dtype, birth=len(self._events) - 1)

    def touch(self, values: Iterable[Value]) -> None:
        """Keep these tensors alive until the latest event."""
        now = len(self._events) - 1
        for value in values:
            value.storage.last = now

    @contextmanager
    def holding(self, *values: Value) -> Iterator[list[Value]]:
        """Keep values alive until the block ends, as a running function's local names do.

        Yields a list to which you can add more.
        """
        names = list(values)
        try:
            yield names
        finally:
            self.touch(names)

    def in_layer(self, layer: str, module: str = "") -> AbstractContextManager[None]:
        """Until the block ends, operators and their tensors belong to this layer and module."""
        return _Within(self, (layer, module))

    def in_module(self, module: str) -> AbstractContextManager[None]:
        """Do the same for a module of the current layer."""
        return _Within(self, (self.place[0], module))

    def _new(self, name: str, owner: Owner, shape: Shape, dtype: str, birth: int) -> Value:
        storage = _Storage(name, owner, shape, dtype, birth, birth, *self.place)
        self._storages.append(storage)
        return Value(storage, shape, dtype, gradient_dtype=dtype)

    # Forward.

    def apply(
        self,
        name: str,
        rule: Rule,
        operands: Mapping[str, Value],
        shape: Shape,
        dtype: str,
        sides: Iterable[Side] = (),
        scratch: Iterable[Side] = (),
    ) -> Value:
        """Run an operator, remember its backward if it has one, and return its output.

        `sides` are its side outputs; `scratch` is the data that backward exchanges with other
        devices.
        """
        wanted = {key for key, x in operands.items() if x.requires_grad and key in rule.gradients}
        keeps = [
            key for key in rule.saves if wanted and dict(rule.only).get(key) in {None, *wanted}
        ]
        saved = [self._save(operands[key]) for key in keeps if key in operands]
        self.event(name, operands.values())
        output = self.make(name, shape, dtype)
        output.requires_grad = bool(wanted)
        results = {side.name: self.make(side.name, side.shape, side.dtype) for side in sides}
        results["output"] = output
        saved += [self._save(results[key]) for key in keeps if key in results]
        if wanted:
            node = _Node(operands, (output,), rule, saved, name, self.place, tuple(scratch))
            self._record(node)
        return output

    def views(
        self, name: str, value: Value, shapes: Iterable[Shape], rule: Rule
    ) -> tuple[Value, ...]:
        """Return views of a value, which the rule calls "whole", without allocating anything."""
        outputs = tuple(
            Value(value.storage, s, value.dtype, value.dtype, requires_grad=value.requires_grad)
            for s in shapes
        )
        if value.requires_grad:
            self._record(_Node({"whole": value}, outputs, rule, [], name, self.place))
        return outputs

    @contextmanager
    def autocast(self, active: bool) -> Iterator[None]:
        """Reuse each copy that `cast` makes of a trained parameter until the block ends."""
        before, self._casts = self._casts, {} if active else None
        try:
            yield
        finally:
            self.touch((self._casts or {}).values())
            self._casts = before

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a value in another format: itself, an existing copy, or a new one.

        A copy belongs to the value's layer, wherever it is made.
        """
        if value.dtype == dtype:
            return value
        if self._casts is not None and value in self._casts:
            return self._casts[value]
        rule = Rule(backward=(("cast backward", ("x",)),))
        name = f"{value.storage.name} in {dtype}"
        with self.in_layer(value.storage.layer, value.storage.module):
            copy = self.apply(name, rule, {"x": value}, value.shape, dtype)
        copy.storage.copy_of = value.storage.name
        if self._casts is not None and value.is_parameter and value.requires_grad:
            self._casts[value] = copy
        return copy

    def checkpoint(self, run: Callable[[], Value], kept: Value, *beside: Value) -> Value:
        """Run a part of forward and keep only its inputs; backward runs it again for the rest.

        `kept` stays until everything is recomputed, the inputs `beside` it until the part has used
        them again. It includes torch's early stop: the second run ends once everything that
        backward asked for is available. Checkpointed parts do not nest.
        """
        for value in (kept, *beside):
            _own(value, "activation")
        self._segment = _Segment(run, kept, autocast=self._casts is not None)
        output = run()
        self._segment = None
        return output

    def _record(self, node: _Node) -> None:
        if self._segment is None or self._segment.filled is None:
            self._nodes.append(node)

    def _save(self, value: Value) -> _Saved:
        segment = self._segment
        if segment is None:
            _own(value, "activation")
            return _Saved(value)
        if segment.filled is None:
            segment.places.append(_Saved(None, segment))
            return segment.places[-1]
        _own(value, "activation")
        place = segment.places[segment.filled]
        place.value = value
        segment.filled += 1
        if segment.filled == len(segment.places):
            raise _Filled
        return place

    # Backward.

    @contextmanager
    def graph(self, nodes: list[_Node]) -> Iterator[None]:
        """Record nodes in this list, and run those backwards, until the block ends."""
        before, self._nodes = self._nodes, nodes
        try:
            yield
        finally:
            self._nodes = before

    def backward(self, output: Value, gradient: Value) -> dict[Value, Value]:
        """Run all nodes backwards from the gradient of `output`, and free their saved tensors.

        Returns the gradients of values that no node made, except parameters.
        """
        flowing = {output: gradient}
        uses = Counter(
            value for node in self._nodes for value in node.operands.values() if value.is_parameter
        )
        while self._nodes:
            node = self._nodes.pop()
            incoming = [flowing.pop(value) for value in node.outputs if value in flowing]
            if not incoming:
                continue  # its outputs were not used
            with _Within(self, node.place):
                gradients = self._run_backward(node, incoming)
            for value, new in gradients:
                if value in flowing:
                    self.event("add", [flowing[value], new])
                    new = self._gradient_of(value)
                flowing[value] = new
                uses[value] -= 1
                if value.is_parameter and not uses[value]:
                    self._accumulate(value, flowing.pop(value))
        return flowing

    def _run_backward(self, node: _Node, incoming: list[Value]) -> list[tuple[Value, Value]]:
        """Run a node's backward; return each operand with a gradient, and the gradient."""
        kept = [self._unpack(saved) for saved in node.saved]
        # A segment's input stays alive while a saved tensor could need it.
        kept += [saved.segment.kept for saved in node.saved if saved.segment]
        operands = {key: x for key, x in node.operands.items() if x.requires_grad}
        made: dict[str, Value] = {}
        if node.scratch:
            self.event(f"{node.name}: exchange", [*incoming, *kept])
            for side in node.scratch:
                made[f"~{side.name}"] = self.make(
                    f"{node.name}: {side.name}", side.shape, side.dtype, "communication"
                )
        for name, keys in node.rule.backward:
            there = [key for key in keys if key in operands or key[0] == "~"]
            if there:
                self.event(f"{node.name}: {name}", [*incoming, *kept, *made.values()])
                for key in there:
                    slot = f"{key}{len(made)}" if key[0] == "~" else key  # scratch stays apart
                    made[slot] = self._made_by(node, key, incoming[0])
        # Recomputed tensors are freed here, and others when the node is done.
        kept = [saved.value for saved in node.saved if saved.value and not saved.segment]
        everything = [*incoming, *kept, *made.values()]
        for key in (*node.rule.wide, *node.rule.sums, *node.rule.passes):
            if key not in operands:
                continue
            operand = operands[key]
            ready = made.get(key, incoming[0])
            fits = key in node.rule.passes or (key in made and ready.shape == operand.shape)
            if fits and ready.dtype == operand.gradient_dtype:
                made[key] = ready
            else:
                self.event(f"{node.name}: sum or cast", everything)
                made[key] = self._gradient_of(operand)
                everything.append(made[key])
        return [(operands[key], gradient) for key, gradient in made.items() if key in operands]

    def _made_by(self, node: _Node, key: str, incoming: Value) -> Value:
        """Make a backward operator's result: a gradient, or scratch."""
        if key in node.rule.wide:
            return self.make(f"{node.name}: wide", incoming.shape, incoming.dtype)
        if key[0] == "~":
            return self.make(f"{node.name}: scratch", node.operands[key[1:]].shape, incoming.dtype)
        return self._gradient_of(node.operands[key])

    def _gradient_of(self, value: Value) -> Value:
        owner: Owner = "gradient" if value.is_parameter else "temporary"
        name = f"{value.storage.name}.grad"
        gradient = self.make(name, value.shape, value.gradient_dtype, owner)
        gradient.storage.layer, gradient.storage.module = value.storage.layer, value.storage.module
        if value.is_parameter:
            gradient.storage.gradient_of = value.storage.name
        return gradient

    def _accumulate(self, parameter: Value, gradient: Value) -> None:
        if parameter in self._gradients:
            self.event("add_", [self._gradients[parameter], gradient])
        elif self._keep_gradients:
            self._gradients[parameter] = gradient

    def _unpack(self, saved: _Saved) -> Value:
        if saved.value is None and saved.segment is not None:
            self._run_again(saved.segment)
        assert saved.value is not None
        return saved.value

    def _run_again(self, segment: _Segment) -> None:
        self._segment, segment.filled = segment, 0
        with self.autocast(segment.autocast), suppress(_Filled):
            segment.run()
        self._segment = None


class _Within:
    """A place for operators until a block ends; as a generator, it would take three times as long.

    A large model's step enters thousands.
    """

    __slots__ = ("_before", "_place", "_tape")

    def __init__(self, tape: Tape, place: tuple[str, str]) -> None:
        self._tape, self._place = tape, place

    def __enter__(self) -> None:
        self._before = self._tape.place
        self._tape.place = self._place

    def __exit__(self, *_: object) -> None:
        self._tape.place = self._before


def _own(value: Value, owner: Owner) -> None:
    """Give a tensor an owner, unless it already has one."""
    if value.storage.owner == "temporary":
        value.storage.owner = owner
