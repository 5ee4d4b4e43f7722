"""Exercise: replicas that start equal and average their gradients.

Long because the exercise's cases, their comparisons, and a message for each mistake belong
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import nn

from autograder.content.lab08.forbidden import NO_WRAPPERS
from autograder.content.lab08.sent import between
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab08.replicas import Branches, batch, loss, told

__all__ = ["data_parallel"]

_START, _GRADIENTS, _NO_SYNC = "start", "gradients", "no_sync"
_WIDE = 128
_TOLERANCE = 1e-9
_ROUNDING = 1e-7  # relative to a norm
_MOST_QUIET_BYTES = 2**14  # text that a student's code prints counts, too

Arrays = Mapping[str, Any]  # a rank's tensors by name


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(parts: tuple[str, ...], **sizes: Any) -> Case:
        width = int(rng.integers(3, 8))
        sizes = {"metered": False, **sizes}
        return Case(parts, {"width": width, "seed": int(rng.integers(2**31)), **sizes})

    return [
        case((_START, _GRADIENTS), world=2, passes=1),
        case((_START, _GRADIENTS), world=3, passes=2),
        case((_NO_SYNC,), world=3, passes=7, quiet=5),
        case((_NO_SYNC,), world=2, passes=5, quiet=4, width=_WIDE, brief=True, metered=True),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    inputs = case.inputs
    ranks = answer.value.get("ranks") if isinstance(answer.value, dict) else None
    models = [Branches(inputs["width"], inputs["seed"] + rank) for rank in range(inputs["world"])]
    if not _has_form(ranks, models):
        return dict.fromkeys(case.parts, Finding(False, "The answers came back garbled."))
    if inputs.get("brief"):
        return dict.fromkeys(case.parts, _talks_once(inputs, ranks, answer))
    start = _start(models, ranks)  # before the models get the ranks' own tensors
    gradients = _gradients(inputs, models, ranks)
    if _NO_SYNC in case.parts:
        return {_NO_SYNC: _beside(ranks) if gradients.ok else gradients}
    if gradients.ok:
        gradients = _untouched(models[0], ranks)
    return {_START: start, _GRADIENTS: gradients}


def _has_form(ranks: Any, models: Sequence[nn.Module]) -> TypeGuard[list[dict[str, Any]]]:
    def is_one(rank: Any, model: nn.Module) -> bool:
        return (
            isinstance(rank, dict)
            and rank.keys() - {"beside"} == {"start", "gradients"}
            and isinstance(rank["start"], dict)
            and rank["start"].keys() == model.state_dict().keys()
            and isinstance(rank["gradients"], dict)
            and rank["gradients"].keys() == dict(model.named_parameters()).keys()
        )

    return isinstance(ranks, list) and len(ranks) == len(models) and all(map(is_one, ranks, models))


def _start(models: Sequence[nn.Module], ranks: Sequence[Mapping[str, Any]]) -> Finding:
    expected = {name: told(tensor, False) for name, tensor in models[0].state_dict().items()}
    for number, rank in enumerate(ranks):
        for name, right in expected.items():
            if not _are_close(right, rank["start"][name]):
                said = f"With {len(ranks)} ranks, {name} of rank {number} isn't what rank 0 had."
                return Finding(False, said, tuple(_of_start(models, ranks)))
    return Finding(True)


def _of_start(models: Sequence[nn.Module], ranks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    def has(rank: Mapping[str, Any], model: nn.Module, names: set[str]) -> bool:
        tensors = model.state_dict()
        return all(_are_close(told(tensors[n], False), rank["start"][n]) for n in names)

    everything, parameters = set(models[0].state_dict()), set(dict(models[0].named_parameters()))
    trained = parameters - {"fixed"}
    if all(has(rank, model, everything) for rank, model in zip(ranks, models, strict=True)):
        yield "own_start"
    if all(has(rank, models[-1], everything) for rank in ranks):
        yield "last_rank"
    if all(has(rank, models[0], parameters) for rank in ranks):
        yield "own_buffers"
    elif all(has(rank, models[0], trained) for rank in ranks):
        yield "own_frozen"


def _passes(inputs: Mapping[str, Any], models: Sequence[nn.Module]) -> list[list[dict[str, Any]]]:
    """The gradients of each rank's own samples, by rank and pass."""
    found = []
    for rank, model in enumerate(models):
        of_rank = []
        for number in range(inputs["passes"]):
            model.zero_grad()
            x = batch(inputs["width"], number, rank, inputs["seed"])
            loss(model(x)).backward()  # type: ignore[no-untyped-call]
            of_rank.append(
                {
                    name: torch.zeros_like(p).numpy() if p.grad is None else p.grad.numpy().copy()
                    for name, p in model.named_parameters()
                }
            )
        found.append(of_rank)
    return found


def _exchanged(each: Any, quiet: int, exchange: Callable[[Any], Any]) -> Any:
    """Gradients of all ranks, stacked, if they `exchange` after each pass that isn't quiet."""
    held = np.zeros_like(each[:, 0])
    for number in range(each.shape[1]):
        held = held + each[:, number]
        if number >= quiet:
            held = np.broadcast_to(exchange(held), held.shape)
    return held


def _but(exchange: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    return lambda each, quiet: _exchanged(each, quiet, exchange)


_right = _but(lambda held: held.mean(0))

# Each takes gradients by rank and pass and the number of quiet passes; it returns those by rank.
_MUTANTS: dict[str, Callable[[Any, int], Any]] = {
    "sums": _but(lambda held: held.sum(0)),
    "own": _but(lambda held: held),
    "divided_twice": _but(lambda held: held.mean(0) / len(held)),
    "last_pass": lambda each, quiet: np.broadcast_to(each.mean(0)[-1], each[:, 0].shape),
    "quiet_left_out": lambda each, quiet: (
        each[:, :quiet].sum(1) + each.mean(0, keepdims=True)[:, quiet:].sum(1)
    ),
}


def _gradients(
    inputs: Mapping[str, Any],
    models: Sequence[nn.Module],
    ranks: Sequence[Mapping[str, Any]],
) -> Finding:
    """Judge the mean over ranks, given their weights; another part checks that these are equal."""
    for model, rank in zip(models, ranks, strict=True):
        if not _load(model, rank["start"]):
            return Finding(False, "The answers came back garbled.")
    each = _passes(inputs, models)
    quiet = inputs.get("quiet", 0)

    def differs(made: Callable[[Any, int], Any]) -> str:
        for name in ranks[0]["gradients"]:
            stacked = np.stack([[one[name] for one in of_rank] for of_rank in each])
            for number, (right, rank) in enumerate(zip(made(stacked, quiet), ranks, strict=True)):
                got = rank["gradients"][name]
                if not (_are_close(right, got) or (got is None and not right.any())):
                    return f"{name} of rank {number}"
        return ""

    where = differs(_right)
    if not where:
        return Finding(True)
    passes = f"{inputs['passes']} backward passes" + (f", {quiet} in no_sync()," if quiet else "")
    said = f"With {inputs['world']} ranks and {passes} the gradient of {where} isn't the mean."
    if inputs["passes"] > 1:
        said += " Another pass and zero_grad() came before."
    known = [name for name, made in _MUTANTS.items() if not differs(made)]
    if quiet and "own" in known:
        known.append("never_again")
    return Finding(False, said, tuple(known))


def _beside(ranks: Sequence[Mapping[str, Any]]) -> Finding:
    """Another replica must average 0, 1, 2, ... of the ranks while the first is in no_sync()."""
    right = (len(ranks) - 1) / 2
    for number, rank in enumerate(ranks):
        got = rank.get("beside")
        if type(got) is not float or not np.isclose(got, right):
            said = (
                f"In no_sync() of one replica, another one's gradient on rank {number} isn't the "
            )
            return Finding(False, f"{said}mean.", ("shares_its_state",))
    return Finding(True)


def _untouched(model: nn.Module, ranks: Sequence[Mapping[str, Any]]) -> Finding:
    """A parameter that no rank used must have no gradient; otherwise zeros count as none."""
    for name, p in model.named_parameters():
        for number, rank in enumerate(ranks):
            if p.grad is None and rank["gradients"][name] is not None:
                said = f"No rank used {name}, but on rank {number} its gradient isn't None."
                return Finding(False, said, ("unused_filled",))
    return Finding(True)


def _load(model: nn.Module, start: Arrays) -> bool:
    tensors = model.state_dict()
    for name, array in start.items():
        if not isinstance(array, np.ndarray) or array.shape != tuple(tensors[name].shape):
            return False
        if array.dtype.kind != told(tensors[name], False).dtype.kind:
            return False
        tensors[name].copy_(torch.from_numpy(array))
    return True


def _talks_once(
    inputs: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]], answer: Answer
) -> Finding:
    """After one start and one exchange, no rank may have sent much more than these take."""
    if not all(_are_alike(rank["gradients"], ranks[0]["gradients"]) for rank in ranks):
        said = "After no_sync() and another pass the ranks' gradients differ."
        return Finding(False, said, ("never_again", "own", "quiet_left_out"))
    if not _are_counted_alike(answer.value.get("quiet_sent_bytes"), answer.value.get("sent_bytes")):
        return Finding(False, "The answers came back garbled.")
    known = [n for n in answer.value["quiet_sent_bytes"] if n is not None]
    if max(known, default=0) > _MOST_QUIET_BYTES:
        said = (
            f"In {inputs['quiet']} passes in no_sync(), a rank may send nothing. "
            f"Yours sends {max(known) / 2**10:.0f} KiB."
        )
        return Finding(False, said, ("talks_always",))
    once = sum(8 * p.numel() for p in Branches(inputs["width"], 0).parameters())

    def too_much(sent: tuple[int, ...]) -> Finding:
        said = (
            f"With {inputs['quiet']} passes in no_sync() and one after it, a rank may send "
            f"{most / 2**10:.0f} KiB here. Yours sends {max(sent) / 2**10:.0f} KiB."
        )
        return Finding(False, said, ("talks_always",))

    # Gradients go there and back, except unused ones; another part judges the start.
    least = 2 * (inputs["world"] - 1) * 0.95 * once
    most = 3.5 * once + 2**16
    return between(answer, least, most, too_much)


def _are_counted_alike(quiet: Any, sent: Any) -> bool:
    """Tell whether these figures belong to the same ranks, with None in the same places."""
    return (
        isinstance(quiet, list)
        and isinstance(sent, list)
        and len(quiet) == len(sent)
        and all(
            type(q) is type(s) and type(q) in (int, NoneType)
            for q, s in zip(quiet, sent, strict=True)
        )
    )


def _are_alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Tell whether two ranks' gradients have the same sums and norms, up to rounding."""

    def alike(one: Any, other: Any) -> bool:
        if one is None or other is None:
            return one is other
        (_, norm), (_, of_other) = one, other
        return bool(np.allclose(one, other, 0, _ROUNDING * max(norm, of_other)))

    return all(alike(a[name], b[name]) for name in a)


def _are_close(expected: Any, got: Any) -> bool:
    if not isinstance(got, np.ndarray) or got.shape != expected.shape:
        return False
    if got.dtype.kind != expected.dtype.kind:
        return False
    size = float(np.abs(expected).max(initial=0.0))
    return bool(np.allclose(got, expected, 0, _TOLERANCE * max(size, 1e-3)))


data_parallel = Task(
    id="lab08-data_parallel",
    parts={_START: 1, _GRADIENTS: 2, _NO_SYNC: 1},
    defines=("DataParallel",),
    probe="data_parallel",
    cases=_cases,
    judge=_judge,
    mistakes={
        "own_start": "Each rank starts with its own tensors. Send rank 0's to all: "
        "dist.broadcast(tensor, 0).",
        "last_rank": "All ranks start with the last rank's tensors. Start them with rank 0's.",
        "own_buffers": "Parameters are equal on all ranks, but buffers aren't. Send them too: "
        "module.buffers().",
        "own_frozen": "A parameter that needs no gradient is part of the model, too: send all "
        "parameters.",
        "sums": "Your gradients are sums over ranks. Divide by the world size to get the mean.",
        "never_again": "Your ranks no longer exchange gradients after no_sync(). Turn the "
        "exchange on again where the block ends, and average all of .grad.",
        "shares_its_state": "One replica's no_sync() also turns off another's exchange. Keep the "
        "switch in self, not in the class or in a global variable.",
        "own": "Each rank has only its own gradients: your ranks exchanged nothing.",
        "divided_twice": "You divide by the world size twice.",
        "last_pass": "Your gradients come from the last pass only. Gradients add up until they "
        "are zeroed.",
        "unused_filled": "A parameter that no rank used has a gradient. Leave its .grad None, so "
        "that optimizers skip it.",
        "quiet_left_out": "You never average the gradients added up in no_sync(). Exchange the "
        "whole .grad, not only the last pass's part.",
        "talks_always": "Your ranks exchange gradients in no_sync(), or send more than they need "
        "to. In no_sync(), only add gradients up.",
    },
    ban=NO_WRAPPERS,
    ranks=True,
    seconds=60.0,
)
