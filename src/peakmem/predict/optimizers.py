"""The optimizer's step on a tape: the temporaries that torch's implementations allocate.

`for-loop` updates one parameter after another, `foreach` all at once, and `fused` works in place.
8-bit Adam is a fused kernel, as in bitsandbytes. Lion and Muon always loop over parameters: Muon is
`torch.optim.Muon`, and Lion makes one update at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from peakmem.predict.simulated_autograd import Tape, Value
from peakmem.specs.recipes import Recipe

__all__ = ["is_hidden", "play_step"]

_MUON_STEPS = 5  # torch.optim.Muon's default


def play_step(tape: Tape, parameters: Sequence[Value], recipe: Recipe, implementation: str) -> None:
    """Play the optimizer's step for the trained parameters.

    With master weights, all gradients are first copied to the master weights' format, unless they
    have it already. The step updates the master weights, and copies them back in place.
    """
    if not recipe.keeps_gradients:
        tape.event("step of the host" if recipe.offload else "lomo's step was part of backward")
        return
    copies: list[Value] = []
    master = recipe.formats.master
    if master and recipe.formats.gradients != master:
        for parameter in parameters:
            tape.event(f"{parameter.storage.name}: gradient for its master")
            name = f"{parameter.storage.name}.grad in {master}"
            copies.append(tape.make(name, parameter.shape, master))
    with tape.holding(*copies):
        if recipe.optimizer in ("adam", "adamw") and implementation != "fused":
            _adam(tape, parameters, recipe.formats.states, implementation)
        elif recipe.optimizer == "adafactor":
            _adafactor(tape, parameters, recipe.formats.states, implementation)
        elif recipe.optimizer == "muon":
            hidden = [p for p in parameters if is_hidden(p)]
            _muon(tape, hidden, recipe.formats.states)
            others = [p for p in parameters if not is_hidden(p)]
            if implementation != "fused":
                _adam(tape, others, recipe.formats.states, implementation)
        elif recipe.optimizer == "lion":
            for parameter in parameters:
                name = parameter.storage.name
                tape.event(f"{name}: update")
                tape.make(f"{name} (update)", parameter.shape, recipe.formats.states)
        else:
            tape.event(f"{recipe.optimizer} in place")


def _adam(tape: Tape, parameters: Sequence[Value], dtype: str, implementation: str) -> None:
    """Play Adam, which makes a root of the second moment and a divisor; the divisor stays."""
    if implementation == "foreach":
        tape.event("roots of all second moments")
        for parameter in parameters:
            tape.make(f"{parameter.storage.name} (root)", parameter.shape, dtype)
        return
    before: list[Value] = []  # the last divisor; the loop's variable holds it until the next one
    for parameter in parameters:
        name = parameter.storage.name
        tape.event(f"{name}: root", before)
        root = tape.make(f"{name} (root)", parameter.shape, dtype)
        tape.event(f"{name}: divisor", [*before, root])
        before = [tape.make(f"{name} (divisor)", parameter.shape, dtype)]


def is_hidden(parameter: Value) -> bool:
    """Whether Muon trains a parameter: a layer's matrix, but no vector or embedding."""
    return bool(parameter.storage.layer) and len(parameter.shape) == 2


def _muon(tape: Tape, parameters: Sequence[Value], dtype: str) -> None:
    """Play Muon, which brings an update's singular values near 1 by five iterations in bf16."""
    before: list[Value] = []  # the last update; the loop's variable holds it until the next one
    for parameter in parameters:
        name, size = parameter.storage.name, parameter.shape
        square = (min(size), min(size))
        tape.event(f"{name}: momentum and gradient", before)
        update = tape.make(f"{name} (update)", size, dtype)
        x = update
        if dtype != "bf16":
            tape.event(f"{name}: update in bf16", [update])
            x = tape.make(f"{name} (update in bf16)", size, "bf16")
        products: list[Value] = []
        for _ in range(_MUON_STEPS):
            for part in range(2):
                tape.event(f"{name}: x times itself", [update, x, *products])
                made = tape.make(f"{name} (x times itself)", square, "bf16")
                products = [*products[:part], made, *products[part + 1 :]]
            tape.event(f"{name}: next x", [update, x, *products])
            x = tape.make(f"{name} (next x)", size, "bf16")
        before = [x]


def _adafactor(tape: Tape, parameters: Sequence[Value], dtype: str, implementation: str) -> None:
    """Play Adafactor, which expands its factors to an estimate as large as the parameter."""
    if implementation == "foreach":
        matrices = [parameter for parameter in parameters if len(parameter.shape) > 1]
        vectors = [parameter for parameter in parameters if len(parameter.shape) <= 1]
        updates: list[Value] = []
        for group in filter(None, (matrices, vectors)):
            for part in _adafactor_parts(group[0].shape):
                tape.event(f"all of a kind: {part}", updates)
                sizes = [(p.storage.name, _adafactor_parts(p.shape)[part]) for p in group]
                made = [tape.make(f"{name} ({part})", size, dtype) for name, size in sizes]
            updates += made
        tape.touch(updates)
        return
    names: dict[str, Value] = {}  # the loop's variables, which hold tensors until they are rebound
    for parameter in parameters:
        name = parameter.storage.name
        for part, size in _adafactor_parts(parameter.shape).items():
            tape.event(f"{name}: {part}", names.values())
            names[part] = tape.make(f"{name} ({part})", size, dtype)
        tape.event(f"{name}: norm of update", names.values())
        tape.make(f"{name} (norm of update)", (), dtype)


def _adafactor_parts(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the tensors that the step of one parameter makes, in order: name -> shape."""
    if len(shape) <= 1:
        return {"squares": shape, "update": shape}
    row, column = (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])
    return {"row mean": row, "column mean": column, "update": shape}
