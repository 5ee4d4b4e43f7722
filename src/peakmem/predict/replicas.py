"""ZeRO applied to a step's ledger: one replica's shards, and the tensors replicas exchange."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from peakmem.specs.ledger import Ledger, Owner, Phase, Tensor
from peakmem.specs.recipes import Parallelism

__all__ = ["part_of_replica"]

# Owner -> the stage from which ZeRO cuts its tensors into as many parts as there are replicas.
_ZERO_STAGE: dict[Owner, int] = {
    "optimizer_state": 1,
    "master": 1,
    "gradient": 2,
    "parameter": 3,
}


def _exchanged(ledger: Ledger, parallelism: Parallelism) -> tuple[Tensor, ...]:
    """Return the tensors that a replica temporarily holds whole, although ZeRO shards them.

    Stage 3 gathers each layer's parameters for its forward and again for its backward; parameters
    outside the layers stay gathered until the end of backward. From stage 2 on, a layer's gradients
    are whole until its backward ends.
    """
    kinds: list[tuple[Owner, str, tuple[Phase, ...]]] = []
    if parallelism.zero >= 2:
        kinds.append(("gradient", "gradients to be shared", ("backward",)))
    if parallelism.gathers:
        kinds.append(("parameter", "gathered", ("forward", "backward")))
    spans = _spans(ledger)
    # Bytes of each tensor's first copy in another format.
    low = {t.copy_of: t.bytes for t in reversed(ledger.tensors) if t.copy_of}
    found = []
    for owner, words, phases in kinds:
        sizes: dict[str, int] = {}
        for tensor in {t.name: t for t in ledger.tensors if t.owner == owner}.values():
            n_bytes = low.get(tensor.gradient_of or tensor.name, tensor.bytes)
            sizes[tensor.layer] = sizes.get(tensor.layer, 0) + n_bytes
        for (layer, phase), span in spans:
            if phase in phases and sizes.get(layer):
                name = f"{layer or 'other parameters'}, {words}"
                found.append(Tensor(name, "communication", (), "uint8", sizes[layer], *span))
    return tuple(found)


def _spans(ledger: Ledger) -> list[tuple[tuple[str, Phase], tuple[int, int]]]:
    """Return each layer's runs with their first and last events; "" stands for no layer."""
    spans: dict[tuple[str, int], list[int]] = {}
    turns = 0  # how often the phase has changed
    for at, event in enumerate(ledger.events):
        turns += at > 0 and event.phase != ledger.events[at - 1].phase
        if event.layer:
            spans.setdefault((event.layer, turns), [at, at])[1] = at
    last = ledger.last_event("backward")
    first = next(i for i, event in enumerate(ledger.events) if event.phase == "backward")
    whole: list[tuple[tuple[str, Phase], tuple[int, int]]] = [
        (("", "forward"), (0, first - 1)),
        (("", "backward"), (first, last)),
    ]
    return whole + [
        ((layer, ledger.events[start].phase), (start, end))
        for (layer, _), (start, end) in spans.items()
    ]


def part_of_replica(ledger: Ledger, parallelism: Parallelism, *, eager: bool) -> Ledger:
    """Return the ledger of one replica; without temporaries if the profile isn't eager.

    Gathered parameters arrive in the compute format, so autocast copies nothing.
    """

    def cut(tensor: Tensor) -> Tensor:
        stage = _ZERO_STAGE.get(tensor.owner)
        if ledger.events[tensor.birth].phase == "optimizer":
            stage = 1  # the optimizer's temporaries: each replica updates only its own part
        if stage is None or stage > parallelism.zero:
            return tensor
        return replace(tensor, bytes=ceil(tensor.bytes / parallelism.shards))

    if not eager:
        kept = (t for t in ledger.tensors if t.owner != "temporary")
        return Ledger(tuple(map(cut, kept)), ledger.events)
    if parallelism.shards == 1 or parallelism.zero == 0:
        return ledger
    names = {t.name for t in ledger.tensors if t.owner == "parameter"}
    tensors = [
        cut(tensor)
        for tensor in ledger.tensors
        if not (parallelism.gathers and tensor.copy_of in names)
    ]
    return Ledger((*tensors, *_exchanged(ledger, parallelism)), ledger.events)
